// LayerNorm in sixteen lanes: the contract is kernels/layer_norm.hpp's.
#pragma once

#include "../../simd/lanes.hpp"
#include "../layer_norm.hpp"

#define NIHAO_KERNEL_FILE "../kernels/cpu/layer_norm.inl"
#include "../../simd/foreach_isa.inl"

namespace nihao {

/// One row on the instruction set `isa`. x, weight, y: n floats each, n > 0; bias: as many, or none; y may be x, nothing else
/// overlaps.
inline void layer_norm(Isa isa, std::span<const float> x, std::span<const float> weight, std::span<const float> bias, float eps,
                       std::span<float> y) noexcept {
  NIHAO_ASSERT(x.size() == weight.size() && x.size() == y.size() && !x.empty() && (bias.empty() || bias.size() == x.size()));
  NIHAO_ON_ISA(isa, layer_norm(x.data(), weight.data(), bias.empty() ? nullptr : bias.data(), eps, x.size(), y.data()));
}

}  // namespace nihao
