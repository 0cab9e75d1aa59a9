// IQ2_S: 256 weights, eight at a time from a grid of 1024 points, with signs; each 16 with a 4-bit scale.
#pragma once

#include "../base/floats.hpp"
#include "format.hpp"
#include "grids.hpp"

namespace nihao {

/// 2.5625 bits a weight. value = d * (2 s + 1) / 8 * v, v one of 8, 25, 43 with a sign, exact in float. Layout: ggml's
/// block_iq2_s.
struct IQ2_S {
  struct [[gnu::packed]] Block {
    f16 d;                   ///< scale of the scales
    std::uint8_t qs[32];     ///< low eight bits of a point's number
    std::uint8_t signs[32];  ///< bit i: weight i of the eight is negative
    std::uint8_t qh[8];      ///< upper two bits of four points each
    std::uint8_t scales[8];  ///< s of the first 16 of 32 weights in the low half, of the others in the high half
  };
  static constexpr std::size_t block_size = 256;
  static constexpr std::string_view name = "IQ2_S";
  static constexpr FormatId id = FormatId::IQ2_S;

  static constexpr void dequantize(const Block& block, std::span<float, block_size> out) noexcept {
    const float d = to_float(block.d);
    for (std::size_t e = 0; e < 32; ++e) {
      const std::size_t point = block.qs[e] | (block.qh[e / 4] >> 2 * (e % 4) & 3u) << 8;
      const auto s = static_cast<std::uint32_t>(block.scales[e / 4]) >> 4 * (e % 4 / 2) & 15;
      detail::iq2_eight(detail::iq2_s_grid[point], block.signs[e], d * static_cast<float>(2 * s + 1) * 0.125f, &out[8 * e]);
    }
  }
};

static_assert(block_bytes<IQ2_S> == 82);

}  // namespace nihao
