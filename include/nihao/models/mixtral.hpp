// Mixtral: Jiang et al. 2024, arXiv:2401.04088.
#pragma once

#include "decoder.hpp"
#include "load_decoder.hpp"

namespace nihao {

/// Llama with two of eight experts for each token.
template <Sizes S = Sizes{}, class Q = Quant<Any>, class D = Cpu>
using Mixtral = Decoder<S, Layers<Block<PreNorm<RmsNorm>, Attention<GQA<>>, FFN<MoE<SoftmaxTopK, SiLU>>>>, Q, D>;

}  // namespace nihao
