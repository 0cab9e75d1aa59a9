// IQ3_XXS: 256 weights, four at a time from a grid of 256 points, with signs; each 32 with a 4-bit scale.
#pragma once

#include "../base/floats.hpp"
#include "format.hpp"
#include "grids.hpp"

namespace nihao {

/// The magnitudes that a coordinate of IQ3_XXS's grid stands for.
inline constexpr std::uint8_t iq3_xxs_values[8] = {4, 12, 20, 28, 36, 44, 52, 62};

/// 3.0625 bits a weight. value = d * (2 s + 1) / 4 * v, v one of 4, 12, ..., 52, 62 with a sign, exact in float. Layout: ggml's
/// block_iq3_xxs.
struct IQ3_XXS {
  struct [[gnu::packed]] Block {
    f16 d;                           ///< scale of the scales
    std::uint8_t qs[64];             ///< a point for four weights
    std::uint8_t signs_and_s[8][4];  ///< a little-endian word for 32 weights: 7 bits of signs for each eight, and s above
  };
  static constexpr std::size_t block_size = 256;
  static constexpr std::string_view name = "IQ3_XXS";
  static constexpr FormatId id = FormatId::IQ3_XXS;

  static constexpr void dequantize(const Block& block, std::span<float, block_size> out) noexcept {
    const float d = to_float(block.d);
    for (std::size_t g = 0; g < 8; ++g) {
      const std::uint32_t word = little_endian(block.signs_and_s[g]);
      const float scale = d * static_cast<float>(2 * (word >> 28) + 1) * 0.25f;
      for (std::size_t i = 0; i < 32; ++i) {
        const std::uint32_t level = detail::coordinate_of_four(detail::iq3_xxs_grid[block.qs[8 * g + i / 4]], i % 4);
        const float v = scale * static_cast<float>(iq3_xxs_values[level]);
        out[32 * g + i] = detail::even_signs(word >> 7 * (i / 8) & 127) >> i % 8 & 1 ? -v : v;
      }
    }
  }
};

static_assert(block_bytes<IQ3_XXS> == 98);

}  // namespace nihao
