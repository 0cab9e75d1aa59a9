// IQ1_M: as IQ1_S with a 3-bit scale for each 16 weights and a shift for each eight.
#pragma once

#include "../base/floats.hpp"
#include "format.hpp"
#include "grids.hpp"

namespace nihao {

/// 1.75 bits a weight. value = d * (2 s + 1) * (v + shift), v one of -1, 0, 1, shift 1/8 or -1/8, exact in float. Layout: ggml's
/// block_iq1_m, whose d is spread over the upper four bits of the four words of scales.
struct IQ1_M {
  struct [[gnu::packed]] Block {
    std::uint8_t qs[32];        ///< low eight bits of a point's number
    std::uint8_t qh[16];        ///< four bits a point, two points a byte: 3 upper bits of its number, and the shift's sign
    std::uint8_t scales[4][2];  ///< a little-endian word for 64 weights: four s of 3 bits, and four bits of d
  };
  static constexpr std::size_t block_size = 256;
  static constexpr std::string_view name = "IQ1_M";
  static constexpr FormatId id = FormatId::IQ1_M;

  static constexpr f16 scale_of_scales(const Block& block) noexcept {
    std::uint32_t bits = 0;
    for (std::uint32_t i = 0; i < 4; ++i) bits |= static_cast<std::uint32_t>(block.scales[i][1] >> 4) << 4 * i;
    return {static_cast<std::uint16_t>(bits)};
  }
  static constexpr void dequantize(const Block& block, std::span<float, block_size> out) noexcept {
    const float d = to_float(scale_of_scales(block));
    for (std::size_t e = 0; e < 32; ++e) {
      const std::uint32_t word = block.scales[e / 8][0] | std::uint32_t{block.scales[e / 8][1]} << 8;
      const float scale = d * static_cast<float>(2 * (word >> 3 * (e % 8 / 2) & 7) + 1);
      const std::uint32_t high = static_cast<std::uint32_t>(block.qh[e / 2]) >> 4 * (e % 2) & 15;
      const std::uint16_t point = detail::iq1_grid[block.qs[e] | (high & 7) << 8];
      for (std::size_t i = 0; i < 8; ++i)
        out[8 * e + i] = scale * (static_cast<float>(detail::coordinate_of_eight(point, i)) - (high & 8 ? 1.125f : 0.875f));
    }
  }
};

static_assert(block_bytes<IQ1_M> == 56);

}  // namespace nihao
