// Q2_K: 256 two-bit codes in sixteen groups of 16, each group with a 4-bit scale and a 4-bit minimum.
#pragma once

#include "../base/floats.hpp"
#include "format.hpp"

namespace nihao {

/// 2.625 bits a weight. value = (d * scale) * q - (dmin * min); the products are exact in float (at most 11 + 4 + 2 significant
/// bits), so the difference is rounded once. Layout: ggml's block_q2_K. Two halves of 128 values share 32 bytes each: bits 2 t
/// and 2 t + 1 of byte i are the code of value i of the half's quarter t.
struct Q2_K {
  struct [[gnu::packed]] Block {
    std::uint8_t scales[16];  ///< of values 16 g to 16 g + 15: the scale in the low half, the minimum in the high half
    std::uint8_t qs[64];
    f16 d;     ///< scale of the scales
    f16 dmin;  ///< scale of the minima
  };
  static constexpr std::size_t block_size = 256;
  static constexpr std::string_view name = "Q2_K";
  static constexpr FormatId id = FormatId::Q2_K;

  static constexpr void dequantize(const Block& block, std::span<float, block_size> out) noexcept {
    const float d = to_float(block.d), dmin = to_float(block.dmin);
    for (std::size_t g = 0; g < 16; ++g) {
      const float scale = d * static_cast<float>(block.scales[g] & 15), min = dmin * static_cast<float>(block.scales[g] >> 4);
      const std::uint8_t* qs = block.qs + 32 * (g / 8) + 16 * (g % 2);
      for (std::size_t i = 0; i < 16; ++i) out[16 * g + i] = scale * static_cast<float>(qs[i] >> 2 * (g % 8 / 2) & 3) - min;
    }
  }
};

static_assert(block_bytes<Q2_K> == 84);

}  // namespace nihao
