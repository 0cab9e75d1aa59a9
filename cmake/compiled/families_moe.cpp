#include "nihao/models/load_family.hpp"

template struct nihao::FamilyLoader<nihao::Dbrx<>>;
template struct nihao::FamilyLoader<nihao::GptOss<>>;
template struct nihao::FamilyLoader<nihao::Mixtral<>>;
template struct nihao::FamilyLoader<nihao::PhiMoe<>>;
template struct nihao::FamilyLoader<nihao::Qwen3Moe<>>;
