// IQ2_XXS: 256 weights, eight at a time from a grid of 256 points, with signs; each 32 with a 4-bit scale.
#pragma once

#include "../base/floats.hpp"
#include "format.hpp"
#include "grids.hpp"

namespace nihao {

/// 2.0625 bits a weight. value = d * (2 s + 1) / 8 * v, v one of 8, 25, 43 with a sign: exact in float (11 + 5 + 6 significant
/// bits at most). Layout: ggml's block_iq2_xxs.
struct IQ2_XXS {
  struct [[gnu::packed]] Block {
    f16 d;  ///< scale of the scales
    std::uint8_t qs[8]
                   [8];  ///< of 32 weights: four points, then a little-endian word: 7 bits of signs for each point, and s above
  };
  static constexpr std::size_t block_size = 256;
  static constexpr std::string_view name = "IQ2_XXS";
  static constexpr FormatId id = FormatId::IQ2_XXS;

  static constexpr void dequantize(const Block& block, std::span<float, block_size> out) noexcept {
    const float d = to_float(block.d);
    for (std::size_t g = 0; g < 8; ++g) {
      const std::uint8_t* q = block.qs[g];
      const std::uint32_t word = little_endian(q + 4);
      const float scale = d * static_cast<float>(2 * (word >> 28) + 1) * 0.125f;
      for (std::size_t l = 0; l < 4; ++l)
        detail::iq2_eight(detail::iq2_xxs_grid[q[l]], detail::even_signs(word >> 7 * l & 127), scale, &out[32 * g + 8 * l]);
    }
  }
};

static_assert(block_bytes<IQ2_XXS> == 66);

}  // namespace nihao
