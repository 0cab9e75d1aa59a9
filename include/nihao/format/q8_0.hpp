// Q8_0: 32 signed bytes and one scale.
#pragma once

#include "../base/floats.hpp"
#include "format.hpp"

namespace nihao {

/// 8.5 bits a weight. value[i] = d * q[i]. The product of an 11-bit and an 8-bit significand is exact in float.
/// Layout: ggml's block_q8_0.
struct Q8_0 {
  struct [[gnu::packed]] Block {
    f16 d;              ///< scale
    std::int8_t q[32];  ///< codes, -128 to 127 (ggml's quantizer stays within +-127)
  };
  static constexpr std::size_t block_size = 32;
  static constexpr std::string_view name = "Q8_0";
  static constexpr FormatId id = FormatId::Q8_0;

  static constexpr void dequantize(const Block& block, std::span<float, block_size> out) noexcept {
    const float d = to_float(block.d);
    for (std::size_t i = 0; i < 32; ++i) out[i] = static_cast<float>(block.q[i]) * d;
  }
};

static_assert(block_bytes<Q8_0> == 34);

}  // namespace nihao
