// gpt-oss: OpenAI 2025, arXiv:2508.10925.
#pragma once

#include "decoder.hpp"
#include "load_decoder.hpp"

namespace nihao {

/// Each head has a sink; every other layer a sliding window; biases everywhere; four experts with a gate that is cut off.
template <Sizes S = Sizes{}, class Q = Quant<Any>, class D = Cpu>
using GptOss =
    Decoder<S, Layers<Block<PreNorm<RmsNorm>, Attention<GQA<GqaOptions{.sinks = true}>>, FFN<MoE<TopKSoftmax, ClampedSwiGLU>>>>,
            Q, D>;

}  // namespace nihao
