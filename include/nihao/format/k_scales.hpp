// The twelve bytes in which Q4_K and Q5_K pack eight 6-bit scales and eight 6-bit minima.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace nihao {

/// The scale and the minimum of one group of 32 weights, 0 to 63 each; both are multiplied by the block's floats.
struct KScale {
  std::uint8_t scale, min;
};

/// Those of group g, 0 to 7:
///
///     bytes 0..3    scale g in the low six bits,      upper two bits of scale g + 4 above
///     bytes 4..7    minimum g in the low six bits,    upper two bits of minimum g + 4 above
///     bytes 8..11   low four bits of scale g + 4,     low four bits of minimum g + 4 above
[[nodiscard]] constexpr KScale k_scale(const std::uint8_t (&packed)[12], std::size_t g) noexcept {
  if (g < 4) return {static_cast<std::uint8_t>(packed[g] & 63), static_cast<std::uint8_t>(packed[g + 4] & 63)};
  const int scale = (packed[g + 4] & 0xf) | (packed[g - 4] >> 6) << 4;
  const int min = (packed[g + 4] >> 4) | (packed[g] >> 6) << 4;
  return {static_cast<std::uint8_t>(scale), static_cast<std::uint8_t>(min)};
}

/// The other way round: the twelve bytes from the groups' scales and minima.
constexpr void put_k_scales(std::span<const KScale, 8> groups, std::uint8_t (&packed)[12]) noexcept {
  for (std::size_t g = 0; g < 4; ++g) {
    const KScale low = groups[g], high = groups[g + 4];
    packed[g] = static_cast<std::uint8_t>(low.scale | (high.scale >> 4) << 6);
    packed[g + 4] = static_cast<std::uint8_t>(low.min | (high.min >> 4) << 6);
    packed[g + 8] = static_cast<std::uint8_t>((high.scale & 0xf) | (high.min & 0xf) << 4);
  }
}

}  // namespace nihao
