// Floats of eight and of four bits: bit patterns and their conversion to and from float, in plain integer code.
// e4m3 and e5m2: OCP 8-bit Floating Point Specification 1.0; e2m1 and e8m0: OCP Microscaling Formats Specification 1.0.
#pragma once

#include "floats.hpp"

#include <limits>

namespace nihao {

/// 1 sign, 4 exponent (bias 7), 3 fraction bits: magnitudes up to 448, steps of 2^-9 below 2^-6. No infinity; 0x7f and 0xff are
/// NaN. (torch calls it e4m3fn.)
struct e4m3 {
  std::uint8_t bits;
};

/// 1 sign, 5 exponent (bias 15), 2 fraction bits: the upper byte of a binary16, magnitudes up to 57344, infinities and NaNs.
struct e5m2 {
  std::uint8_t bits;
};

/// What becomes of a number beyond the largest: that one, or what the format has for too much (infinity; NaN in e4m3).
enum class Overflow : std::uint8_t { saturate, mark };

namespace detail {
// The code of a finite magnitude (a float's bits without the sign), rounded to nearest even; a carry runs into the exponent, also
// beyond what the format has.
constexpr std::uint32_t small_float_code(std::uint32_t magnitude, std::uint32_t bias, std::uint32_t fraction_bits) noexcept {
  const std::uint32_t shift = 23 - fraction_bits;
  if (magnitude < (128 - bias) << 23) {  // subnormal: a multiple of 2^(1 - bias - fraction_bits), found by adding 2^23 of those
    const float quantum = std::bit_cast<float>((128 - bias - fraction_bits) << 23);
    return std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) / quantum + 0x1p23f) - 0x4b000000u;
  }
  const std::uint32_t odd = magnitude >> shift & 1u;
  return (magnitude - ((127 - bias) << 23) + (1u << (shift - 1)) - 1 + odd) >> shift;
}
// A float of eight bits; `beyond` is the first code that is no finite magnitude, and 0x7f NaN.
constexpr std::uint8_t eight_bit_float(float value, std::uint32_t bias, std::uint32_t fraction_bits, std::uint32_t beyond,
                                       Overflow overflow) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value), magnitude = bits & 0x7fffffffu;
  std::uint32_t code = 0x7f;
  if (magnitude <= 0x7f800000u) {
    code = small_float_code(magnitude, bias, fraction_bits);
    if (code >= beyond) code = overflow == Overflow::saturate ? beyond - 1 : beyond;
  }
  return static_cast<std::uint8_t>((bits >> 24 & 0x80u) | code);
}
}  // namespace detail

/// Exact for every pattern.
[[nodiscard]] constexpr float to_float(e4m3 x) noexcept {
  const std::uint32_t magnitude = x.bits & 0x7fu, sign = static_cast<std::uint32_t>(x.bits & 0x80u) << 24;
  if (magnitude == 0x7fu) return std::bit_cast<float>(sign | 0x7fc00000u);
  const float value =
      magnitude < 8 ? static_cast<float>(magnitude) * 0x1p-9f : std::bit_cast<float>((magnitude << 20) + (120u << 23));
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
}
[[nodiscard]] constexpr float to_float(e5m2 x) noexcept { return to_float(f16{static_cast<std::uint16_t>(x.bits << 8)}); }

/// Round to nearest even; NaN stays NaN.
[[nodiscard]] constexpr e4m3 to_e4m3(float value, Overflow overflow = Overflow::saturate) noexcept {
  return {detail::eight_bit_float(value, 7, 3, 0x7f, overflow)};
}
[[nodiscard]] constexpr e5m2 to_e5m2(float value, Overflow overflow = Overflow::saturate) noexcept {
  return {detail::eight_bit_float(value, 15, 2, 0x7c, overflow)};
}

/// The sixteen values of e2m1 (1 sign, 2 exponent, 1 fraction bit: 0, 0.5, 1, 1.5, 2, 3, 4, 6), doubled so that they are whole.
inline constexpr std::int8_t doubled_e2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// The code of the e2m1 nearest to `value`, ties to even; beyond 6 it is 6's. `value` is a number.
[[nodiscard]] constexpr std::uint8_t to_e2m1(float value) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value), magnitude = bits & 0x7fffffffu;
  const std::uint32_t code = magnitude >= 0x7f800000u ? 7 : detail::small_float_code(magnitude, 1, 1);
  return static_cast<std::uint8_t>((bits >> 28 & 8u) | (code < 7 ? code : 7));
}

/// e8m0: 2^(e - 127); 255 is NaN.
[[nodiscard]] constexpr float power_of_two(std::uint8_t e) noexcept {
  if (e == 255) return std::numeric_limits<float>::quiet_NaN();
  return std::bit_cast<float>(e == 0 ? 0x00400000u : std::uint32_t{e} << 23);
}
/// 2^(e - 128), for e = 255 too.
[[nodiscard]] constexpr float half_power_of_two(std::uint8_t e) noexcept {
  return std::bit_cast<float>(e < 2 ? 0x00200000u << e : (std::uint32_t{e} - 1) << 23);
}

}  // namespace nihao
