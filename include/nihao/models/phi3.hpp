// Phi-3 and Phi-4-mini: Abdin et al. 2024, arXiv:2404.14219; PhiMoE is of the same report.
#pragma once

#include "decoder.hpp"
#include "load_decoder.hpp"

namespace nihao {

/// Llama whose files have q, k and v in one matrix, and gate and up in another; some turn a part of each head alone, with factors
/// for contexts short and long.
template <Sizes S = Sizes{}, class Q = Quant<Any>, class D = Cpu>
using Phi3 = Decoder<S, Layers<Block<PreNorm<RmsNorm>, Attention<GQA<>>, FFN<Dense<SiLU>>>>, Q, D>;

/// LayerNorm, biases on all of attention, two of sixteen experts by SparseMixer.
template <Sizes S = Sizes{}, class Q = Quant<Any>, class D = Cpu>
using PhiMoe = Decoder<S, Layers<Block<PreNorm<LayerNorm>, Attention<GQA<>>, FFN<MoE<SparseMixer, SiLU>>>>, Q, D>;

}  // namespace nihao
