// Llama 1 to 3, Mistral, SmolLM2 and many more: Touvron et al. 2023, arXiv:2302.13971; sliding window: Jiang et al. 2023,
// arXiv:2310.06825.
#pragma once

#include "decoder.hpp"
#include "load_decoder.hpp"

namespace nihao {

/// RMSNorm before each layer, grouped-query attention with rotary positions, a SiLU-gated feed-forward.
template <Sizes S = Sizes{}, class Q = Quant<Any>, class D = Cpu>
using Llama = Decoder<S, Layers<Block<PreNorm<RmsNorm>, Attention<GQA<>>, FFN<Dense<SiLU>>>>, Q, D>;

}  // namespace nihao
