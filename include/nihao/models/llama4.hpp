// Llama 4: Meta 2025, the model card and the reference code that came with its weights.
#pragma once

#include "decoder.hpp"
#include "load_decoder.hpp"

namespace nihao {

/// Layers that turn see their own chunk of the context alone, and normalise q and k after turning; every few layers nothing
/// turns, and queries grow with the position. Experts, one chosen and one shared, in all layers or in every other.
template <Sizes S = Sizes{}, class Q = Quant<Any>, class D = Cpu>
using Llama4 =
    Decoder<S,
            Layers<Block<PreNorm<RmsNorm>, Attention<GQA<GqaOptions{.qk_norm = QkNorm::turned}>>, FFN<Dense<SiLU>>>,
                   Block<PreNorm<RmsNorm>, Attention<GQA<GqaOptions{.qk_norm = QkNorm::turned}>>, FFN<MoE<SigmoidInput, SiLU>>>>,
            Q, D>;

}  // namespace nihao
