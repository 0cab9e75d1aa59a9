// IQ3_S: 256 weights, four at a time from a grid of 512 points, with signs; each 32 with a 4-bit scale.
#pragma once

#include "../base/floats.hpp"
#include "format.hpp"
#include "grids.hpp"

namespace nihao {

/// 3.4375 bits a weight. value = d * (2 s + 1) * v, v one of 1, 3, ..., 15 with a sign, exact in float. Layout: ggml's
/// block_iq3_s.
struct IQ3_S {
  struct [[gnu::packed]] Block {
    f16 d;                   ///< scale of the scales
    std::uint8_t qs[64];     ///< low eight bits of a point's number, for four weights
    std::uint8_t qh[8];      ///< the ninth bits of eight points each
    std::uint8_t signs[32];  ///< bit i of a byte: weight i of eight is negative
    std::uint8_t scales[4];  ///< s of the first 32 of 64 weights in the low half, of the others in the high half
  };
  static constexpr std::size_t block_size = 256;
  static constexpr std::string_view name = "IQ3_S";
  static constexpr FormatId id = FormatId::IQ3_S;

  static constexpr void dequantize(const Block& block, std::span<float, block_size> out) noexcept {
    const float d = to_float(block.d);
    for (std::size_t e = 0; e < 64; ++e) {
      const std::size_t point = block.qs[e] | (block.qh[e / 8] >> e % 8 & 1u) << 8;
      const int s = block.scales[e / 16] >> 4 * (e % 16 / 8) & 15;
      const float scale = d * static_cast<float>(2 * s + 1);
      for (std::size_t i = 0; i < 4; ++i) {
        const float v = scale * static_cast<float>(2 * detail::coordinate_of_four(detail::iq3_s_grid[point], i) + 1);
        out[4 * e + i] = block.signs[e / 2] >> (4 * (e % 2) + i) & 1 ? -v : v;
      }
    }
  }
};

static_assert(block_bytes<IQ3_S> == 110);

}  // namespace nihao
