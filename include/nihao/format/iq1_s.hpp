// IQ1_S: 256 weights, eight at a time from a grid of 2048 points of -1, 0 and 1; each 32 with a 3-bit scale and a shift.
#pragma once

#include "../base/floats.hpp"
#include "format.hpp"
#include "grids.hpp"

namespace nihao {

/// 1.5625 bits a weight. value = d * (2 s + 1) * (v + shift), v one of -1, 0, 1, shift 1/8 or -1/8, exact in float. Layout:
/// ggml's block_iq1_s.
struct IQ1_S {
  struct [[gnu::packed]] Block {
    f16 d;                  ///< scale of the scales
    std::uint8_t qs[32];    ///< low eight bits of a point's number
    std::uint8_t qh[8][2];  ///< a little-endian word for 32 weights: 3 upper bits of each of four points, s, and the shift's sign
  };
  static constexpr std::size_t block_size = 256;
  static constexpr std::string_view name = "IQ1_S";
  static constexpr FormatId id = FormatId::IQ1_S;

  static constexpr void dequantize(const Block& block, std::span<float, block_size> out) noexcept {
    const float d = to_float(block.d);
    for (std::size_t e = 0; e < 32; ++e) {
      const std::uint32_t word = block.qh[e / 4][0] | std::uint32_t{block.qh[e / 4][1]} << 8;
      const float scale = d * static_cast<float>(2 * (word >> 12 & 7) + 1);
      const std::uint16_t point = detail::iq1_grid[block.qs[e] | (word >> 3 * (e % 4) & 7) << 8];
      for (std::size_t i = 0; i < 8; ++i)
        out[8 * e + i] = scale * (static_cast<float>(detail::coordinate_of_eight(point, i)) - (word & 0x8000 ? 1.125f : 0.875f));
    }
  }
};

static_assert(block_bytes<IQ1_S> == 50);

}  // namespace nihao
