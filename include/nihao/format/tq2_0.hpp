// TQ2_0: 256 weights of -1, 0 and 1, two bits each, and one scale.
#pragma once

#include "../base/floats.hpp"
#include "format.hpp"

namespace nihao {

/// 2.0625 bits a weight. value = d * (q - 1), exact in float. Layout: ggml's block_tq2_0: two halves of 128 values, bits 2 t and
/// 2 t + 1 of byte i being value i of the half's quarter t.
struct TQ2_0 {
  struct [[gnu::packed]] Block {
    std::uint8_t qs[64];
    f16 d;  ///< scale
  };
  static constexpr std::size_t block_size = 256;
  static constexpr std::string_view name = "TQ2_0";
  static constexpr FormatId id = FormatId::TQ2_0;

  static constexpr void dequantize(const Block& block, std::span<float, block_size> out) noexcept {
    const float d = to_float(block.d);
    for (std::size_t i = 0; i < block_size; ++i)
      out[i] = d * static_cast<float>((block.qs[32 * (i / 128) + i % 32] >> 2 * (i % 128 / 32) & 3) - 1);
  }
};

static_assert(block_bytes<TQ2_0> == 66);

}  // namespace nihao
