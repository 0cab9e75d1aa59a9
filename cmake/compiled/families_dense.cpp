#include "nihao/models/load_family.hpp"

template struct nihao::FamilyLoader<nihao::Cohere2<>>;
template struct nihao::FamilyLoader<nihao::Gemma2<>>;
template struct nihao::FamilyLoader<nihao::Gemma3<>>;
template struct nihao::FamilyLoader<nihao::Llama<>>;
template struct nihao::FamilyLoader<nihao::Olmo2<>>;
template struct nihao::FamilyLoader<nihao::Qwen3<>>;
