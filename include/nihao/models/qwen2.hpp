// Qwen 2 and 2.5: Yang et al. 2024, arXiv:2407.10671 and arXiv:2412.15115.
#pragma once

#include "decoder.hpp"
#include "load_decoder.hpp"

namespace nihao {

/// Llama with biases on q, k and v; the upper layers of some models have a sliding window. The config says both.
template <Sizes S = Sizes{}, class Q = Quant<Any>, class D = Cpu>
using Qwen2 = Decoder<S, Layers<Block<PreNorm<RmsNorm>, Attention<GQA<>>, FFN<Dense<SiLU>>>>, Q, D>;

}  // namespace nihao
