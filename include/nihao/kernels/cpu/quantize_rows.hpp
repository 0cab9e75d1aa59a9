// Activations as int8: blocks of 32 with one float scale, made once per matmul input and shared by all that multiply with it.
#pragma once

#include "../../simd/lanes.hpp"

namespace nihao {

inline constexpr std::size_t activation_block = 32;

/// Quantized rows, token-major. With b = block, x[t, 32 b + i] is about d[t, b] * q[t, 32 b + i]. With two parts a token has two
/// rows, and the second is what the first leaves, quantized: together they have about 15 bits.
struct QuantizedRows {
  std::int8_t* q;     ///< [tokens * parts, k], -127 to 127; k is padded to whole blocks with zeros
  float* d;           ///< [tokens * parts, k / 32] scale: largest magnitude / 127
  float* d_sum;       ///< [tokens * parts, k / 32] d * (sum of the block's q): repairs a format's minimum
  std::int32_t* sum;  ///< [tokens * parts, k / 16] sum of sixteen q: repairs a format's zero point
  std::size_t k;      ///< padded
  std::size_t parts;  ///< rows of a token, 1 or 2
};

}  // namespace nihao

#define NIHAO_KERNEL_FILE "../kernels/cpu/quantize_rows.inl"
#include "../../simd/foreach_isa.inl"
