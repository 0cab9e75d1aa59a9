// Q4_1: 32 four-bit codes, a scale and a minimum.
#pragma once

#include "../base/floats.hpp"
#include "format.hpp"

namespace nihao {

/// 5 bits a weight. value[i] = d * q[i] + m. The product is exact in float, so the sum is rounded once, with or without a
/// fused multiply-add. Layout: ggml's block_q4_1.
struct Q4_1 {
  struct [[gnu::packed]] Block {
    f16 d;                ///< scale
    f16 m;                ///< the value of code 0
    std::uint8_t qs[16];  ///< byte j: code j in the low four bits, code j + 16 in the high four
  };
  static constexpr std::size_t block_size = 32;
  static constexpr std::string_view name = "Q4_1";
  static constexpr FormatId id = FormatId::Q4_1;

  static constexpr void dequantize(const Block& block, std::span<float, block_size> out) noexcept {
    const float d = to_float(block.d);
    const float m = to_float(block.m);
    for (std::size_t j = 0; j < 16; ++j) {
      out[j] = static_cast<float>(block.qs[j] & 0xf) * d + m;
      out[j + 16] = static_cast<float>(block.qs[j] >> 4) * d + m;
    }
  }
};

static_assert(block_bytes<Q4_1> == 20);

}  // namespace nihao
