// Qwen 2 and 2.5: Yang et al. 2024, arXiv:2407.10671.
#pragma once

#include "decoder.hpp"
#include "load_decoder.hpp"

namespace nihao {

/// Llama's block, with biases on q, k and v.
template <Sizes S = Sizes{}, class Q = Quant<Any>, class D = Cpu>
using Qwen2 = Decoder<S, Layers<Block<PreNorm<RmsNorm>, Attention<GQA<GqaOptions{.qkv_bias = true}>>, FFN<Dense<SiLU>>>>, Q, D>;

}  // namespace nihao
