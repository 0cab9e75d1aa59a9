// Q2_0: 64 two-bit codes and one scale.
#pragma once

#include "../base/floats.hpp"
#include "format.hpp"

namespace nihao {

/// 2.25 bits a weight. value = d * (q - 1): -1, 0, 1 and 2 times d, exact in float. Layout: ggml's block_q2_0.
struct Q2_0 {
  struct [[gnu::packed]] Block {
    f16 d;                ///< scale
    std::uint8_t qs[16];  ///< value i: bits 2 (i % 4) and the next of byte i / 4
  };
  static constexpr std::size_t block_size = 64;
  static constexpr std::string_view name = "Q2_0";
  static constexpr FormatId id = FormatId::Q2_0;

  static constexpr void dequantize(const Block& block, std::span<float, block_size> out) noexcept {
    const float d = to_float(block.d);
    for (std::size_t i = 0; i < block_size; ++i) out[i] = d * static_cast<float>((block.qs[i / 4] >> 2 * (i % 4) & 3) - 1);
  }
};

static_assert(block_bytes<Q2_0> == 18);

}  // namespace nihao
