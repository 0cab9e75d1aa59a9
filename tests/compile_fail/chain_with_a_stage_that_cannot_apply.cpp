// expect: every policy of a sampler chain but its selector needs a static `name`
#include "nihao/sampling/sampler.hpp"

struct Nothing {};
auto sampler = nihao::Chain<Nothing, nihao::Dist>::make(8, 0, {}, {});
