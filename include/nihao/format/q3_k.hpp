// Q3_K: 256 three-bit codes around zero in sixteen groups of 16, each group with a 6-bit scale.
#pragma once

#include "../base/floats.hpp"
#include "format.hpp"

namespace nihao {

/// Scale g, 0 to 15, of the twelve bytes in which Q3_K packs sixteen of 6 bits: the low four bits of scales 0 to 7 in the low
/// halves of bytes 0 to 7, of 8 to 15 in their high halves; the upper two of scale g at bits 2 (g / 4) of byte 8 + g % 4.
[[nodiscard]] constexpr int q3_k_scale(const std::uint8_t (&packed)[12], std::size_t g) noexcept {
  return (packed[g % 8] >> 4 * (g / 8) & 15) | (packed[8 + g % 4] >> 2 * (g / 4) & 3) << 4;
}

/// 3.4375 bits a weight. value = (d * (scale - 32)) * (q - 4), exact in float (11 + 6 + 3 significant bits at most).
/// Layout: ggml's block_q3_K. The low two bits lie as in Q2_K; the third of value i of group pair t is bit t of hmask's byte i.
struct Q3_K {
  struct [[gnu::packed]] Block {
    std::uint8_t hmask[32];   ///< third bits
    std::uint8_t qs[64];      ///< low two bits
    std::uint8_t scales[12];  ///< sixteen scales of 6 bits, see q3_k_scale
    f16 d;                    ///< scale of the scales
  };
  static constexpr std::size_t block_size = 256;
  static constexpr std::string_view name = "Q3_K";
  static constexpr FormatId id = FormatId::Q3_K;

  static constexpr void dequantize(const Block& block, std::span<float, block_size> out) noexcept {
    const float d = to_float(block.d);
    for (std::size_t g = 0; g < 16; ++g) {
      const float scale = d * static_cast<float>(q3_k_scale(block.scales, g) - 32);
      const std::uint8_t* qs = block.qs + 32 * (g / 8) + 16 * (g % 2);
      const std::uint8_t* hmask = block.hmask + 16 * (g % 2);
      for (std::size_t i = 0; i < 16; ++i) {
        const int q = (qs[i] >> 2 * (g % 8 / 2) & 3) | (hmask[i] >> g / 2 & 1) << 2;
        out[16 * g + i] = scale * static_cast<float>(q - 4);
      }
    }
  }
};

static_assert(block_bytes<Q3_K> == 110);

}  // namespace nihao
