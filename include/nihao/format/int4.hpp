// INT4: 32 four-bit codes, a scale and a zero point. What AWQ, GPTQ, HQQ and compressed-tensors make of four-bit weights.
#pragma once

#include "../base/floats.hpp"
#include "format.hpp"

namespace nihao {

/// 5 bits a weight. value = (q - z) * d. No file has these blocks: checkpoints have codes, scales and zero points in tensors of
/// their own, each in its own order, with a scale for 32 to 128 columns or more (models/hf_quantization.hpp), and all come to
/// this arithmetic. Their scales and zero points are kept to the bit.
struct INT4 {
  struct [[gnu::packed]] Block {
    f16 d;                ///< scale
    f16 z;                ///< zero point: the code of 0; whole but for HQQ
    std::uint8_t qs[16];  ///< byte j: code j in the low four bits, code j + 16 in the high four
  };
  static constexpr std::size_t block_size = 32;
  static constexpr std::string_view name = "INT4";
  static constexpr FormatId id = FormatId::INT4;

  static constexpr void dequantize(const Block& block, std::span<float, block_size> out) noexcept {
    const float d = to_float(block.d), z = to_float(block.z);
    for (std::size_t j = 0; j < 16; ++j) {
      out[j] = (static_cast<float>(block.qs[j] & 0xf) - z) * d;
      out[j + 16] = (static_cast<float>(block.qs[j] >> 4) - z) * d;
    }
  }
};

static_assert(block_bytes<INT4> == 20);

/// The methods by their names, for a model's type: Quant<AWQ, F16>.
using AWQ = INT4;
using GPTQ = INT4;  ///< of four bits; of eight they are INT8
using HQQ = INT4;

}  // namespace nihao
