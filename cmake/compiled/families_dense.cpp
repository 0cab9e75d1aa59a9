#include "nihao/models/load_family.hpp"

template struct nihao::GroupLoader<nihao::DenseFamilies<nihao::Cpu>>;
