// IQ2_XS: 256 weights, eight at a time from a grid of 512 points, with signs; each 16 with a 4-bit scale.
#pragma once

#include "../base/floats.hpp"
#include "format.hpp"
#include "grids.hpp"

namespace nihao {

/// 2.3125 bits a weight. value = d * (2 s + 1) / 8 * v, v one of 8, 25, 43 with a sign, exact in float. Layout: ggml's
/// block_iq2_xs.
struct IQ2_XS {
  struct [[gnu::packed]] Block {
    f16 d;                   ///< scale of the scales
    std::uint8_t qs[32][2];  ///< a little-endian word for eight weights: 9 bits of the point, 7 of signs
    std::uint8_t scales[8];  ///< s of the first 16 of 32 weights in the low half, of the others in the high half
  };
  static constexpr std::size_t block_size = 256;
  static constexpr std::string_view name = "IQ2_XS";
  static constexpr FormatId id = FormatId::IQ2_XS;

  static constexpr void dequantize(const Block& block, std::span<float, block_size> out) noexcept {
    const float d = to_float(block.d);
    for (std::size_t e = 0; e < 32; ++e) {
      const std::uint32_t word = block.qs[e][0] | std::uint32_t{block.qs[e][1]} << 8;
      const auto s = static_cast<std::uint32_t>(block.scales[e / 4]) >> 4 * (e % 4 / 2) & 15;
      detail::iq2_eight(detail::iq2_xs_grid[word & 511], detail::even_signs(word >> 9),
                        d * static_cast<float>(2 * s + 1) * 0.125f, &out[8 * e]);
    }
  }
};

static_assert(block_bytes<IQ2_XS> == 74);

}  // namespace nihao
