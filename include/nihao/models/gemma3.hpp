// Gemma 3, text: Gemma Team 2025, arXiv:2503.19786.
#pragma once

#include "decoder.hpp"
#include "load_decoder.hpp"

namespace nihao {

/// Norms before and after each layer, each head of q and k normalised, GELU-gated feed-forward. Layers with a sliding window and
/// a rope base of their own alternate with global ones, and embeddings are scaled by sqrt(d_model): the config says so.
template <Sizes S = Sizes{}, class Q = Quant<Any>, class D = Cpu>
using Gemma3 = Decoder<
    S, Layers<Block<SandwichNorm<RmsNorm>, Attention<GQA<GqaOptions{.qk_norm = QkNorm::per_head}>>, FFN<Dense<GeluTanh>>>>, Q, D>;

}  // namespace nihao
