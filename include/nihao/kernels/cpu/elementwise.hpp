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
void gated(Isa isa, std::span<const float> gate, std::span<const float> up, std::span<float> y, float limit = 0) noexcept {
  NIHAO_ASSERT(gate.size() == y.size() && up.size() == y.size());
  NIHAO_ON_ISA(isa, gated<F>(gate.data(), up.data(), y.size(), y.data(), limit));
}

/// y += factor * x, of equal length.
inline void add_multiple(Isa isa, std::span<const float> x, float factor, std::span<float> y) noexcept {
  NIHAO_ASSERT(x.size() == y.size());
  NIHAO_ON_ISA(isa, add_multiple(x.data(), factor, y.size(), y.data()));
}

/// y = factor * x, and with a cap above 0 cap * tanh(factor * x / cap): within cap * 2^-22 of it. y may be x.
inline void scale_and_cap(Isa isa, std::span<const float> x, float factor, float cap, std::span<float> y) noexcept {
  NIHAO_ASSERT(x.size() == y.size());
  NIHAO_ON_ISA(isa, scale_and_cap(x.data(), factor, cap, y.size(), y.data()));
}

/// x cut off at +- limit, in place; NaN stays.
inline void clip(Isa isa, std::span<float> x, float limit) noexcept { NIHAO_ON_ISA(isa, clip(x.data(), limit, x.size())); }

/// Turns one head in place, to the bits of the reference.
inline void rope(Isa isa, std::span<float> head, std::span<const float> cos, std::span<const float> sin,
                 RopeStyle style) noexcept {
  NIHAO_ASSERT(cos.size() == sin.size() && 2 * cos.size() <= head.size());
  if (style == RopeStyle::neighbours) NIHAO_ON_ISA(isa, rope_neighbours(head.data(), cos.data(), sin.data(), cos.size()));
  else NIHAO_ON_ISA(isa, rope_halves(head.data(), cos.data(), sin.data(), cos.size()));
}

}  // namespace nihao
