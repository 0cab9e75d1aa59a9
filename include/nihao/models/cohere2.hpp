// Command R7B and A: Cohere 2025, arXiv:2504.00698.
#pragma once

#include "decoder.hpp"
#include "load_decoder.hpp"

namespace nihao {

/// Attention and feed-forward side by side on one LayerNorm without bias; layers with a sliding window turn neighbours, the
/// others turn nothing; the logits are scaled.
template <Sizes S = Sizes{}, class Q = Quant<Any>, class D = Cpu>
using Cohere2 = Decoder<S, Layers<ParallelBlock<LayerNorm, Attention<GQA<>>, FFN<Dense<SiLU>>>>, Q, D>;

}  // namespace nihao
