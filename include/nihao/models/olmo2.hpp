// OLMo 2: Team OLMo 2024, arXiv:2501.00656.
#pragma once

#include "decoder.hpp"
#include "load_decoder.hpp"

namespace nihao {

/// Norms after each layer instead of before, q and k normalised over their whole width.
template <Sizes S = Sizes{}, class Q = Quant<Any>, class D = Cpu>
using Olmo2 =
    Decoder<S, Layers<Block<PostNorm<RmsNorm>, Attention<GQA<GqaOptions{.qk_norm = QkNorm::whole}>>, FFN<Dense<SiLU>>>>, Q, D>;

}  // namespace nihao
