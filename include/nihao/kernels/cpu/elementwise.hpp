// What the CPU does value by value: gates, sums, rotations. The contracts are those of kernels/activation.hpp and
// kernels/rope.hpp.
#pragma once

#include "../../simd/lanes.hpp"
#include "../activation.hpp"
#include "../rope.hpp"

#define NIHAO_KERNEL_FILE "../kernels/cpu/elementwise.inl"
#include "../../simd/foreach_isa.inl"

namespace nihao {

/// y = F(gate) * up, all of equal length; y may be gate or up. Within 4 units in the last place of the reference; of GELU below
/// zero, where the exponent e of its sigmoid is rounded, within 4 + 2 e.
template <class F>
void gated(Isa isa, std::span<const float> gate, std::span<const float> up, std::span<float> y) noexcept {
  NIHAO_ASSERT(gate.size() == y.size() && up.size() == y.size());
  NIHAO_ON_ISA(isa, gated<F>(gate.data(), up.data(), y.size(), y.data()));
}

/// y = a + b, all of equal length; y may be a or b.
inline void add(Isa isa, std::span<const float> a, std::span<const float> b, std::span<float> y) noexcept {
  NIHAO_ASSERT(a.size() == y.size() && b.size() == y.size());
  NIHAO_ON_ISA(isa, add_arrays(a.data(), b.data(), y.size(), y.data()));
}

/// Turns one head in place, to the bits of the reference.
inline void rope(Isa isa, std::span<float> head, std::span<const float> cos, std::span<const float> sin,
                 RopeStyle style) noexcept {
  NIHAO_ASSERT(cos.size() == sin.size() && 2 * cos.size() <= head.size());
  if (style == RopeStyle::neighbours) NIHAO_ON_ISA(isa, rope_neighbours(head.data(), cos.data(), sin.data(), cos.size()));
  else NIHAO_ON_ISA(isa, rope_halves(head.data(), cos.data(), sin.data(), cos.size()));
}

}  // namespace nihao
