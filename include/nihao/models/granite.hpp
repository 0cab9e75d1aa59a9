// Granite 3: IBM Granite Team 2024; the multipliers follow Yang et al. 2022, arXiv:2203.03466.
#pragma once

#include "decoder.hpp"
#include "load_decoder.hpp"

namespace nihao {

/// Llama with a factor for embeddings, scores, every branch and the logits: the config has them.
template <Sizes S = Sizes{}, class Q = Quant<Any>, class D = Cpu>
using Granite = Decoder<S, Layers<Block<PreNorm<RmsNorm>, Attention<GQA<>>, FFN<Dense<SiLU>>>>, Q, D>;

}  // namespace nihao
