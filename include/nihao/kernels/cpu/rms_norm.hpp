// RMSNorm in sixteen lanes: the contract is kernels/rms_norm.hpp's, to within 2 units in the last place of each y.
#pragma once

#include "../../simd/lanes.hpp"
#include "../rms_norm.hpp"

#define NIHAO_KERNEL_FILE "../kernels/cpu/rms_norm.inl"
#include "../../simd/foreach_isa.inl"

namespace nihao {

/// One row on the instruction set `isa`. x, weight, y: n floats each, n > 0; y may be x, nothing else overlaps.
inline void rms_norm(Isa isa, std::span<const float> x, std::span<const float> weight, float eps, std::span<float> y) noexcept {
  NIHAO_ASSERT(x.size() == weight.size() && x.size() == y.size() && !x.empty());
  NIHAO_ON_ISA(isa, rms_norm(x.data(), weight.data(), eps, x.size(), y.data()));
}

}  // namespace nihao
