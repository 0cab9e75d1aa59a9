// DBRX: Databricks 2024, the technical report that came with its weights.
#pragma once

#include "decoder.hpp"
#include "load_decoder.hpp"

namespace nihao {

/// LayerNorm without bias, queries, keys and values cut off at a magnitude, four of sixteen experts.
template <Sizes S = Sizes{}, class Q = Quant<Any>, class D = Cpu>
using Dbrx = Decoder<S, Layers<Block<PreNorm<LayerNorm>, Attention<GQA<>>, FFN<MoE<SoftmaxTopK, SiLU>>>>, Q, D>;

}  // namespace nihao
