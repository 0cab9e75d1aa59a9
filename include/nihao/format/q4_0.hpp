// Q4_0: 32 four-bit codes around zero and one scale.
#pragma once

#include "../base/floats.hpp"
#include "format.hpp"

namespace nihao {

/// 4.5 bits a weight. value[i] = d * (q[i] - 8), exact in float. Layout: ggml's block_q4_0.
struct Q4_0 {
  struct [[gnu::packed]] Block {
    f16 d;                ///< scale
    std::uint8_t qs[16];  ///< byte j: code j in the low four bits, code j + 16 in the high four
  };
  static constexpr std::size_t block_size = 32;
  static constexpr std::string_view name = "Q4_0";
  static constexpr FormatId id = FormatId::Q4_0;

  static constexpr void dequantize(const Block& block, std::span<float, block_size> out) noexcept {
    const float d = to_float(block.d);
    for (std::size_t j = 0; j < 16; ++j) {
      out[j] = static_cast<float>((block.qs[j] & 0xf) - 8) * d;
      out[j + 16] = static_cast<float>((block.qs[j] >> 4) - 8) * d;
    }
  }
};

static_assert(block_bytes<Q4_0> == 18);

}  // namespace nihao
