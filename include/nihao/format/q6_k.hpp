// Q6_K: 256 six-bit codes around zero in sixteen groups of 16, each group with a signed 8-bit scale.
#pragma once

#include "../base/floats.hpp"
#include "format.hpp"

namespace nihao {

/// 6.5625 bits a weight. value = d * scale * (q - 32), exact in float (11 + 7 + 6 significant bits at most).
/// Layout: ggml's block_q6_K. A block is two halves of 128 values, a half four quarters of 32: quarters 0 and 1 have the low
/// four bits of ql's bytes 0..31 and 32..63, quarters 2 and 3 the high four bits of the same bytes.
struct Q6_K {
  struct [[gnu::packed]] Block {
    std::uint8_t ql[128];    ///< low four bits, 64 bytes a half
    std::uint8_t qh[64];     ///< upper two bits, 32 bytes a half: value i of quarter t has bits 2t and 2t + 1 of byte i
    std::int8_t scales[16];  ///< scale of values 16 g to 16 g + 15
    f16 d;                   ///< scale of the scales
  };
  static constexpr std::size_t block_size = 256;
  static constexpr std::string_view name = "Q6_K";
  static constexpr FormatId id = FormatId::Q6_K;

  static constexpr void dequantize(const Block& block, std::span<float, block_size> out) noexcept {
    const float d = to_float(block.d);
    for (std::size_t g = 0; g < 16; ++g) {
      const std::size_t half = g / 8, quarter = g % 8 / 2, first = g % 2 * 16;
      const std::uint8_t* ql = block.ql + 64 * half + 32 * (quarter % 2) + first;
      const std::uint8_t* qh = block.qh + 32 * half + first;
      const int shift_low = quarter < 2 ? 0 : 4;
      const float scale = d * static_cast<float>(block.scales[g]);
      for (std::size_t i = 0; i < 16; ++i) {
        const int q = (ql[i] >> shift_low & 0xf) | (qh[i] >> (2 * quarter) & 3) << 4;
        out[16 * g + i] = scale * static_cast<float>(q - 32);
      }
    }
  }
};

static_assert(block_bytes<Q6_K> == 210);

}  // namespace nihao
