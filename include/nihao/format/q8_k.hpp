// Q8_K: 256 signed eight-bit codes and one scale.
#pragma once

#include "format.hpp"

namespace nihao {

/// 9.125 bits a weight. value[i] = d * q[i], rounded once. ggml rounds activations to it for its K formats, and files may hold
/// it. Layout: ggml's block_q8_K.
struct Q8_K {
  struct [[gnu::packed]] Block {
    float d;  ///< scale
    std::int8_t q[256];
    std::int16_t bsums[16];  ///< sum of the codes 16 g to 16 g + 15; says nothing new
  };
  static constexpr std::size_t block_size = 256;
  static constexpr std::string_view name = "Q8_K";
  static constexpr FormatId id = FormatId::Q8_K;

  static constexpr void dequantize(const Block& block, std::span<float, block_size> out) noexcept {
    const float d = block.d;
    for (std::size_t i = 0; i < block_size; ++i) out[i] = d * static_cast<float>(block.q[i]);
  }
};

static_assert(block_bytes<Q8_K> == 292);

}  // namespace nihao
