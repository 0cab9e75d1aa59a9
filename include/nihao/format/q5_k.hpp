// Q5_K: 256 five-bit codes in eight groups of 32, each group with a 6-bit scale and a 6-bit minimum.
#pragma once

#include "../base/floats.hpp"
#include "format.hpp"
#include "k_scales.hpp"

namespace nihao {

/// 5.5 bits a weight. With s, m the group's scale and minimum: value = (d * s) * q - (dmin * m). All three products are exact
/// in float (at most 11 + 6 + 5 significant bits), so the difference is rounded once, with or without a fused multiply-add.
/// Layout: ggml's block_q5_K.
struct Q5_K {
  struct [[gnu::packed]] Block {
    f16 d;                    ///< scale of the scales
    f16 dmin;                 ///< scale of the minima
    std::uint8_t scales[12];  ///< eight scales and eight minima, see k_scale
    std::uint8_t qh[32];      ///< fifth bits: bit g of byte i belongs to code i of group g
    std::uint8_t qs[128];  ///< low four bits, 32 bytes per pair of groups: the first group's in the low halves, the second's high
  };
  static constexpr std::size_t block_size = 256;
  static constexpr std::string_view name = "Q5_K";
  static constexpr FormatId id = FormatId::Q5_K;

  static constexpr void dequantize(const Block& block, std::span<float, block_size> out) noexcept {
    const float d = to_float(block.d);
    const float dmin = to_float(block.dmin);
    for (std::size_t g = 0; g < 8; ++g) {
      const KScale k = k_scale(block.scales, g);
      const float scale = d * static_cast<float>(k.scale);
      const float min = dmin * static_cast<float>(k.min);
      const int shift = g % 2 == 0 ? 0 : 4;
      for (std::size_t i = 0; i < 32; ++i) {
        const int low = block.qs[32 * (g / 2) + i] >> shift & 0xf;
        const int fifth = block.qh[i] >> g & 1;
        out[32 * g + i] = scale * static_cast<float>(low + 16 * fifth) - min;
      }
    }
  }
};

static_assert(block_bytes<Q5_K> == 176);

}  // namespace nihao
