// Q1_0: 128 signs and one scale.
#pragma once

#include "../base/floats.hpp"
#include "format.hpp"

namespace nihao {

/// 1.125 bits a weight. value = d where the bit is 1, -d where it is 0. Layout: ggml's block_q1_0.
struct Q1_0 {
  struct [[gnu::packed]] Block {
    f16 d;                ///< scale
    std::uint8_t qs[16];  ///< value i: bit i % 8 of byte i / 8
  };
  static constexpr std::size_t block_size = 128;
  static constexpr std::string_view name = "Q1_0";
  static constexpr FormatId id = FormatId::Q1_0;

  static constexpr void dequantize(const Block& block, std::span<float, block_size> out) noexcept {
    const float d = to_float(block.d);
    for (std::size_t i = 0; i < block_size; ++i) out[i] = block.qs[i / 8] >> i % 8 & 1 ? d : -d;
  }
};

static_assert(block_bytes<Q1_0> == 18);

}  // namespace nihao
