// Encoders of the formats of 32 codes with a scale and a minimum: Q4_1 and Q5_1.
#pragma once

#include "../format/q4_1.hpp"
#include "../format/q5_1.hpp"
#include "one_scale.hpp"

namespace nihao {

template <>
struct Quantizer<Q4_1> {
  static void encode(std::span<const float, 32> x, std::span<const float, 32> w, Q4_1::Block& block) noexcept {
    const AffineFit fit = best_affine<15, 32>(x, w, true);
    block.d = to_f16(fit.scale), block.m = to_f16(-fit.min);
    const float d = to_float(block.d), m = to_float(block.m), inverse = d != 0 ? 1 / d : 0;
    detail::put_halves(block.qs,
                       [&](std::size_t i) { return static_cast<int>(EvenLevels<0, 15>::nearest((x[i] - m) * inverse)); });
  }
};

template <>
struct Quantizer<Q5_1> {
  static void encode(std::span<const float, 32> x, std::span<const float, 32> w, Q5_1::Block& block) noexcept {
    const AffineFit fit = best_affine<31, 32>(x, w, true);
    block.d = to_f16(fit.scale), block.m = to_f16(-fit.min);
    const float d = to_float(block.d), m = to_float(block.m), inverse = d != 0 ? 1 / d : 0;
    const auto code = [&](std::size_t i) { return static_cast<int>(EvenLevels<0, 31>::nearest((x[i] - m) * inverse)); };
    detail::put_halves(block.qs, code);
    detail::put_fifth_bits(block.qh, code);
  }
};

}  // namespace nihao
