// IQ4_XS: 256 four-bit codes that IQ4_NL's table makes into values, in eight groups of 32, each with a 6-bit scale.
#pragma once

#include "iq4_nl.hpp"

namespace nihao {

/// 4.25 bits a weight. value = (d * (scale - 32)) * iq4_values[q], exact in float (11 + 6 + 7 significant bits at most).
/// Layout: ggml's block_iq4_xs.
struct IQ4_XS {
  struct [[gnu::packed]] Block {
    f16 d;                     ///< scale of the scales
    std::uint8_t scales_h[2];  ///< upper two bits of scale g: bits 2 g and 2 g + 1 of this little-endian word
    std::uint8_t scales_l[4];  ///< low four bits: of even groups in the low halves, of odd ones in the high halves
    std::uint8_t qs[128];      ///< sixteen bytes a group, as in IQ4_NL
  };
  static constexpr std::size_t block_size = 256;
  static constexpr std::string_view name = "IQ4_XS";
  static constexpr FormatId id = FormatId::IQ4_XS;

  static constexpr void dequantize(const Block& block, std::span<float, block_size> out) noexcept {
    const float d = to_float(block.d);
    for (std::size_t g = 0; g < 8; ++g) {
      const int scale = (block.scales_l[g / 2] >> 4 * (g % 2) & 15) | (block.scales_h[g / 4] >> 2 * (g % 4) & 3) << 4;
      const float step = d * static_cast<float>(scale - 32);
      for (std::size_t j = 0; j < 16; ++j) {
        out[32 * g + j] = step * static_cast<float>(iq4_values[block.qs[16 * g + j] & 15]);
        out[32 * g + j + 16] = step * static_cast<float>(iq4_values[block.qs[16 * g + j] >> 4]);
      }
    }
  }
};

static_assert(block_bytes<IQ4_XS> == 136);

}  // namespace nihao
