// Q5_0: 32 five-bit codes around zero and one scale.
#pragma once

#include "../base/floats.hpp"
#include "format.hpp"

namespace nihao {

/// 5.5 bits a weight. value[i] = d * (q[i] - 16), exact in float. Layout: ggml's block_q5_0.
struct Q5_0 {
  struct [[gnu::packed]] Block {
    f16 d;                ///< scale
    std::uint8_t qh[4];   ///< the codes' fifth bits: bit i of this little-endian word belongs to code i
    std::uint8_t qs[16];  ///< their low four bits: code j in the low half of byte j, code j + 16 in the high half
  };
  static constexpr std::size_t block_size = 32;
  static constexpr std::string_view name = "Q5_0";
  static constexpr FormatId id = FormatId::Q5_0;

  static constexpr void dequantize(const Block& block, std::span<float, block_size> out) noexcept {
    const float d = to_float(block.d);
    for (std::size_t j = 0; j < 16; ++j) {
      const int fifth_low = block.qh[j / 8] >> (j % 8) & 1;
      const int fifth_high = block.qh[2 + j / 8] >> (j % 8) & 1;
      out[j] = static_cast<float>((block.qs[j] & 0xf) + 16 * fifth_low - 16) * d;
      out[j + 16] = static_cast<float>((block.qs[j] >> 4) + 16 * fifth_high - 16) * d;
    }
  }
};

static_assert(block_bytes<Q5_0> == 22);

}  // namespace nihao
