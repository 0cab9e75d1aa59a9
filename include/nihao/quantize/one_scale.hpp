// Encoders of the formats of 32 codes with one scale: Q8_0, Q5_0, Q4_0, and IQ4_NL, whose codes mean values of a table.
#pragma once

#include "../format/iq4_nl.hpp"
#include "../format/q4_0.hpp"
#include "../format/q5_0.hpp"
#include "../format/q8_0.hpp"
#include "fit.hpp"
#include "quantizer.hpp"

namespace nihao {

/// iq4_values as levels: a value's code is the number of borders between levels that lie below it.
struct Iq4Levels {
  static constexpr float low = iq4_values[0], high = iq4_values[15];
  static constexpr float pitch = 1.5f;
  [[nodiscard]] static constexpr float border(std::size_t above) noexcept {
    return 0.5f * static_cast<float>(iq4_values[above - 1] + iq4_values[above]);
  }
  template <class T>  // float or Four
  [[nodiscard]] static T nearest(T v) noexcept {
    T level = T{} + low;
    for (std::size_t k = 1; k < 16; ++k) level = v > border(k) ? T{} + static_cast<float>(iq4_values[k]) : level;
    return level;
  }
  [[nodiscard]] static std::uint8_t code(float v) noexcept {
    int code = 0;
    for (std::size_t k = 1; k < 16; ++k) code += v > border(k) ? 1 : 0;
    return static_cast<std::uint8_t>(code);
  }
};

namespace detail {
/// Codes j and j + 16 of 32 share byte j: low four bits, high four bits.
template <class F>
void put_halves(std::uint8_t (&qs)[16], F&& code) noexcept {
  for (std::size_t j = 0; j < 16; ++j) qs[j] = static_cast<std::uint8_t>((code(j) & 15) | (code(j + 16) & 15) << 4);
}
/// Bit 4 of code i becomes bit i of four bytes.
template <class F>
void put_fifth_bits(std::uint8_t (&qh)[4], F&& code) noexcept {
  for (std::size_t k = 0; k < 4; ++k) qh[k] = 0;
  for (std::size_t i = 0; i < 32; ++i) qh[i / 8] = static_cast<std::uint8_t>(qh[i / 8] | (code(i) >> 4 & 1) << (i % 8));
}
}  // namespace detail

/// The largest value gets 127: with that many codes nothing is gained by cutting it off.
template <>
struct Quantizer<Q8_0> {
  static void encode(std::span<const float, 32> x, std::span<const float, 32>, Q8_0::Block& block) noexcept {
    float largest = 0;
    for (const float v : x) largest = std::max(largest, std::abs(v));
    block.d = to_f16(largest / 127);
    const float d = to_float(block.d), inverse = d > 0 ? 1 / d : 0;
    for (std::size_t i = 0; i < 32; ++i) block.q[i] = static_cast<std::int8_t>(EvenLevels<-127, 127>::nearest(x[i] * inverse));
  }
};

template <>
struct Quantizer<Q4_0> {
  static void encode(std::span<const float, 32> x, std::span<const float, 32> w, Q4_0::Block& block) noexcept {
    using Levels = EvenLevels<-8, 7>;
    block.d = to_f16(best_scale<Levels, 32>(x, w));
    const float d = to_float(block.d), inverse = d != 0 ? 1 / d : 0;
    detail::put_halves(block.qs, [&](std::size_t i) { return static_cast<int>(Levels::nearest(x[i] * inverse)) + 8; });
  }
};

template <>
struct Quantizer<Q5_0> {
  static void encode(std::span<const float, 32> x, std::span<const float, 32> w, Q5_0::Block& block) noexcept {
    using Levels = EvenLevels<-16, 15>;
    block.d = to_f16(best_scale<Levels, 32>(x, w));
    const float d = to_float(block.d), inverse = d != 0 ? 1 / d : 0;
    const auto code = [&](std::size_t i) { return static_cast<int>(Levels::nearest(x[i] * inverse)) + 16; };
    detail::put_halves(block.qs, code);
    detail::put_fifth_bits(block.qh, code);
  }
};

template <>
struct Quantizer<IQ4_NL> {
  static void encode(std::span<const float, 32> x, std::span<const float, 32> w, IQ4_NL::Block& block) noexcept {
    block.d = to_f16(best_scale<Iq4Levels, 32>(x, w));
    const float d = to_float(block.d), inverse = d != 0 ? 1 / d : 0;
    detail::put_halves(block.qs, [&](std::size_t i) { return int{Iq4Levels::code(x[i] * inverse)}; });
  }
};

}  // namespace nihao
