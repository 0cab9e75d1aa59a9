// The 16-bit float formats: bit patterns and their conversion to and from float, in plain integer code.
// IEEE 754 binary16 (f16): 1 sign, 5 exponent, 10 fraction bits. bfloat16 (bf16): the upper half of a float.
#pragma once

#include <bit>
#include <cstdint>

namespace nihao {

/// IEEE binary16, by its bits.
struct f16 {
  std::uint16_t bits;
};

/// bfloat16, by its bits.
struct bf16 {
  std::uint16_t bits;
};

/// Exact for every pattern; a NaN keeps its payload's upper bits.
[[nodiscard]] constexpr float to_float(f16 h) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(h.bits & 0x8000u) << 16;
  const std::uint32_t magnitude = h.bits & 0x7fffu;
  if (magnitude >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));  // inf, NaN
  if (magnitude < 0x0400u) {  // zero and subnormals: magnitude * 2^-24, exact in float
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));  // exponent bias 15 -> 127
}

[[nodiscard]] constexpr float to_float(bf16 b) noexcept { return std::bit_cast<float>(static_cast<std::uint32_t>(b.bits) << 16); }

[[nodiscard]] constexpr float to_float(float f) noexcept { return f; }

/// Round to nearest even; beyond 65504 + half a step gives infinity; NaN stays NaN (quiet).
[[nodiscard]] constexpr f16 to_f16(float value) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return {static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu))};
  if (magnitude >= 0x477ff000u) return {static_cast<std::uint16_t>(sign | 0x7c00u)};  // 65520 and above round to infinity
  if (magnitude < 0x38800000u) {
    // Below 2^-14: adding 0.5 leaves round(|value| * 2^24) in the low bits of the sum's fraction, rounded to even by the FPU.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return {static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u))};
  }
  const std::uint32_t odd = (magnitude >> 13) & 1u;
  return {static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13))};
}

/// Round to nearest even; NaN stays NaN (quiet).
[[nodiscard]] constexpr bf16 to_bf16(float value) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<std::uint16_t>((bits >> 16) | 0x40u)};
  return {static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

/// The value of T nearest to `value`, for T one of float, f16, bf16.
template <class T>
[[nodiscard]] constexpr T round_to(float value) noexcept;
template <>
constexpr float round_to<float>(float value) noexcept {
  return value;
}
template <>
constexpr f16 round_to<f16>(float value) noexcept {
  return to_f16(value);
}
template <>
constexpr bf16 round_to<bf16>(float value) noexcept {
  return to_bf16(value);
}

}  // namespace nihao
