// Qwen 3: Yang et al. 2025, arXiv:2505.09388.
#pragma once

#include "decoder.hpp"
#include "load_decoder.hpp"

namespace nihao {

/// Llama with each head of q and k normalised.
template <Sizes S = Sizes{}, class Q = Quant<Any>, class D = Cpu>
using Qwen3 =
    Decoder<S, Layers<Block<PreNorm<RmsNorm>, Attention<GQA<GqaOptions{.qk_norm = QkNorm::per_head}>>, FFN<Dense<SiLU>>>>, Q, D>;

/// The same with experts in all layers, or in those that the config names; others are dense.
template <Sizes S = Sizes{}, class Q = Quant<Any>, class D = Cpu>
using Qwen3Moe =
    Decoder<S,
            Layers<Block<PreNorm<RmsNorm>, Attention<GQA<GqaOptions{.qk_norm = QkNorm::per_head}>>, FFN<Dense<SiLU>>>,
                   Block<PreNorm<RmsNorm>, Attention<GQA<GqaOptions{.qk_norm = QkNorm::per_head}>>, FFN<MoE<SoftmaxTopK, SiLU>>>>,
            Q, D>;

}  // namespace nihao
