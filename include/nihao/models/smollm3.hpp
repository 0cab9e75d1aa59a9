// SmolLM3: Bakouch et al. 2025 (Hugging Face); layers without rope: Yang et al. 2025, arXiv:2501.18795.
#pragma once

#include "decoder.hpp"
#include "load_decoder.hpp"

namespace nihao {

/// Llama with every fourth layer without rope: the config says which.
template <Sizes S = Sizes{}, class Q = Quant<Any>, class D = Cpu>
using SmolLM3 = Decoder<S, Layers<Block<PreNorm<RmsNorm>, Attention<GQA<>>, FFN<Dense<SiLU>>>>, Q, D>;

}  // namespace nihao
