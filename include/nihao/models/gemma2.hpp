// Gemma 2: Gemma Team 2024, arXiv:2408.00118.
#pragma once

#include "decoder.hpp"
#include "load_decoder.hpp"

namespace nihao {

/// Norms before and after each layer, scores and logits soft-capped, every other layer with a sliding window; embeddings are
/// scaled by sqrt(d_model): the config says so.
template <Sizes S = Sizes{}, class Q = Quant<Any>, class D = Cpu>
using Gemma2 = Decoder<S, Layers<Block<SandwichNorm<RmsNorm>, Attention<GQA<>>, FFN<Dense<GeluTanh>>>>, Q, D>;

}  // namespace nihao
