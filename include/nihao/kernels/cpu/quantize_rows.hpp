// Activations as int8: blocks of 32 with one float scale, made once per matmul input and shared by all that multiply with it.
#pragma once

#include "../../simd/lanes.hpp"

namespace nihao {

inline constexpr std::size_t activation_block = 32;

/// Quantized rows, token-major. With b = block, x[t, 32 b + i] is about d[t, b] * q[t, 32 b + i].
struct QuantizedRows {
  static constexpr std::size_t scales = 1;  ///< of a block
  std::int8_t* q;                           ///< [tokens, k], -127 to 127; k is padded to whole blocks with zeros
  float* d;                                 ///< [tokens, scales * k / 32] scale: largest magnitude / 127
  float* d_sum;                             ///< [tokens, k / 32] sum of the block's d * q: repairs a format's minimum
  std::int32_t* sum;                        ///< [tokens, k / 16] sum of sixteen q: repairs a format's zero point
  std::size_t k;                            ///< padded
};

/// The same with a scale for each sixteen: x[t, 16 h + i] is about d[t, h] * q[t, 16 h + i].
struct FineRows : QuantizedRows {
  static constexpr std::size_t scales = 2;
};

}  // namespace nihao

#define NIHAO_KERNEL_FILE "../kernels/cpu/quantize_rows.inl"
#include "../../simd/foreach_isa.inl"
