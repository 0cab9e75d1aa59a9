#include "nihao/models/load_family.hpp"

template struct nihao::FamilyLoader<nihao::DeepSeekV2<>>;
template struct nihao::FamilyLoader<nihao::DeepSeekV3<>>;
template struct nihao::FamilyLoader<nihao::Llama4<>>;
