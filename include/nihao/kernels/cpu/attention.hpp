// Attention on the CPU with an online softmax (Milakov and Gimelshein 2018, arXiv:1805.02867; tiled as in Dao et al. 2022,
// arXiv:2205.14135): scores exist for one tile of 64 positions and eight query rows at a time.
//
// Bits: a row goes through tiles at fixed positions (multiples of 64) in order, and starts anew at fixed splits (multiples of
// 512), whose results are merged in order. What other rows are in flight, how a prompt is cut, and who computes which split
// change nothing: a position that a row does not see is left out of its sums.
#pragma once

#include "../../simd/lanes.hpp"
#include "../attention.hpp"

namespace nihao {

inline constexpr std::size_t attention_tile = 64;    ///< positions per softmax step
inline constexpr std::size_t attention_split = 512;  ///< positions after which a row starts anew
inline constexpr std::size_t attention_rows = 64;    ///< query rows (of one kv head) that share one expansion of K and V

/// Query rows of one kv head of one sequence: row i is token i / group, head kv_head * group + i % group.
struct AttentionRows {
  const float* q;  ///< [tokens, q_stride]
  float* out;      ///< [tokens, out_stride]
  std::size_t q_stride, out_stride;
  const std::int32_t* position;  ///< [tokens], rising by one
  std::size_t kv_head, group;
  std::size_t first, count;  ///< rows [first, first + count), count <= attention_rows
};

/// Floats that one worker needs.
[[nodiscard]] constexpr std::size_t attention_scratch(std::size_t head_dim) noexcept {
  const std::size_t padded = round_up<std::size_t>(head_dim, 16);
  return 2 * attention_tile * padded           // one tile of K and V
         + 8 * attention_tile                  // scores of eight rows
         + attention_rows * (3 * padded + 4);  // scaled queries, sums of this split and of all, their maxima and totals
}

/// What one split gives for one row: sum[head_dim padded to 16], then maximum and total.
[[nodiscard]] constexpr std::size_t attention_partial(std::size_t head_dim) noexcept {
  return round_up<std::size_t>(head_dim, 16) + 16;
}

}  // namespace nihao

#define NIHAO_KERNEL_FILE "../kernels/cpu/attention.inl"
#include "../../simd/foreach_isa.inl"
