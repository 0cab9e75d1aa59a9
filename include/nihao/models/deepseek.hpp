// DeepSeek-V2 and V3 (R1): DeepSeek-AI 2024, arXiv:2405.04434 and arXiv:2412.19437.
#pragma once

#include "decoder.hpp"
#include "load_decoder.hpp"

namespace nihao {

/// Latent attention; the first layers are dense, the others have experts in groups, softmax-routed, and shared ones.
template <Sizes S = Sizes{}, class Q = Quant<Any>, class D = Cpu>
using DeepSeekV2 = Decoder<S,
                           Layers<Block<PreNorm<RmsNorm>, Attention<MLA<>>, FFN<Dense<SiLU>>>,
                                  Block<PreNorm<RmsNorm>, Attention<MLA<>>, FFN<MoE<SoftmaxTopK, SiLU>>>>,
                           Q, D>;

/// The same with sigmoid routing, and a bias of the choice alone.
template <Sizes S = Sizes{}, class Q = Quant<Any>, class D = Cpu>
using DeepSeekV3 = Decoder<S,
                           Layers<Block<PreNorm<RmsNorm>, Attention<MLA<>>, FFN<Dense<SiLU>>>,
                                  Block<PreNorm<RmsNorm>, Attention<MLA<>>, FFN<MoE<SigmoidGroups, SiLU>>>>,
                           Q, D>;

}  // namespace nihao
