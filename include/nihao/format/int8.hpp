// INT8: 32 signed bytes, a scale and a zero point. What compressed-tensors, GPTQ and LLM.int8() make of eight-bit weights.
#pragma once

#include "../base/floats.hpp"
#include "format.hpp"

namespace nihao {

/// 9.5 bits a weight. value = (q - z) * d. No file has these blocks: see INT4. The scale is a float, for that is what checkpoints
/// have of a row of eight-bit weights.
struct INT8 {
  struct [[gnu::packed]] Block {
    float d;            ///< scale
    f16 z;              ///< zero point: the code of 0; 0 where weights are symmetric
    std::int8_t q[32];  ///< unsigned codes less 128
  };
  static constexpr std::size_t block_size = 32;
  static constexpr std::string_view name = "INT8";
  static constexpr FormatId id = FormatId::INT8;

  static constexpr void dequantize(const Block& block, std::span<float, block_size> out) noexcept {
    const float z = to_float(block.z);
    for (std::size_t j = 0; j < block_size; ++j) out[j] = (static_cast<float>(block.q[j]) - z) * block.d;
  }
};

static_assert(block_bytes<INT8> == 38);

}  // namespace nihao
