// expect: a sampler chain ends in a selector, nihao::Greedy or nihao::Dist
#include "nihao/sampling/sampler.hpp"

auto sampler = nihao::Chain<nihao::TopK, nihao::Temperature>::make(8, 0, {}, {});
