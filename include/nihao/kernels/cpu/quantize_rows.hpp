// Activations as int8: blocks of 32 with one float scale, made once per matmul input and shared by all that multiply with it.
#pragma once

#include "../../simd/lanes.hpp"

namespace nihao {

inline constexpr std::size_t activation_block = 32;

inline constexpr std::size_t most_grouped_rows = 8;

/// Quantized rows: x[t, 32 b + i] is about d[block(t, b)] * q[32 block(t, b) + i]. Block b of the rows of a group lie side by
/// side, so that a register tile of some rows finds all that it multiplies with at constant distances from one address.
struct QuantizedRows {
  static constexpr std::size_t scales = 1;  ///< of a block
  std::int8_t* q;                           ///< [blocks][32], -127 to 127; k is padded to whole blocks with zeros
  float* d;                                 ///< [blocks][scales] scale: largest magnitude / 127
  float* d_sum;                             ///< [blocks] sum of the block's d * q: repairs a format's minimum
  std::int32_t* sum;                        ///< [blocks][2] sums of sixteen q: repair a format's zero point
  std::size_t k;                            ///< padded
  std::size_t group;                        ///< rows whose blocks lie side by side: 1, 2, 4 or 8

  [[nodiscard]] std::size_t block(std::size_t row, std::size_t b) const noexcept {
    return (row / group * (k / activation_block) + b) * group + row % group;
  }
};

/// The same with a scale for each sixteen: d is [blocks][2].
struct FineRows : QuantizedRows {
  static constexpr std::size_t scales = 2;
};

/// One block of a row after the other, and of the rows behind it in its group.
template <class X>
struct BlockCursor {
  const std::int8_t* q;
  const float *d, *d_sum;
  const std::int32_t* sum;
  std::size_t group;

  BlockCursor() noexcept = default;
  BlockCursor(const X& x, std::size_t row, std::size_t b) noexcept
      : q(x.q + activation_block * x.block(row, b)),
        d(x.d + X::scales * x.block(row, b)),
        d_sum(x.d_sum + x.block(row, b)),
        sum(x.sum + 2 * x.block(row, b)),
        group(x.group) {}
  void next() noexcept { q += activation_block * group, d += X::scales * group, d_sum += group, sum += 2 * group; }
};

}  // namespace nihao

#define NIHAO_KERNEL_FILE "../kernels/cpu/quantize_rows.inl"
#include "../../simd/foreach_isa.inl"
