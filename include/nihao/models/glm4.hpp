// GLM-4 of April 2025 (GLM-4-0414, GLM-Z1): Team GLM 2024, arXiv:2406.12793.
#pragma once

#include "decoder.hpp"
#include "load_decoder.hpp"

namespace nihao {

/// Norms before and after each layer, biases on q, k and v, gate and up in one matrix; of each head the first half turns, in
/// pairs of neighbours: the config says so.
template <Sizes S = Sizes{}, class Q = Quant<Any>, class D = Cpu>
using Glm4 = Decoder<S, Layers<Block<SandwichNorm<RmsNorm>, Attention<GQA<>>, FFN<Dense<SiLU>>>>, Q, D>;

}  // namespace nihao
