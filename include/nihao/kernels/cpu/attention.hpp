// Attention on the CPU with an online softmax (Milakov and Gimelshein 2018, arXiv:1805.02867; tiled as in Dao et al. 2022,
// arXiv:2205.14135): scores exist for one tile of 64 positions and eight query rows at a time.
//
// Bits: a row goes through tiles at fixed positions (multiples of 64) in order, and starts anew at fixed splits (multiples of
// 512), whose results are merged in order. What other rows are in flight, how a prompt is cut, and who computes which split
// change nothing: a position that a row does not see is left out of its sums.
#pragma once

#include "../../simd/lanes.hpp"
#include "../attention.hpp"

#include <vector>

namespace nihao {

inline constexpr std::size_t attention_tile = 64;     ///< positions per softmax step
inline constexpr std::size_t attention_split = 512;   ///< positions after which a row starts anew
inline constexpr std::size_t attention_rows = 64;     ///< query rows (of one kv head) that share one expansion of K and V
inline constexpr std::size_t few_attention_rows = 8;  ///< query rows for which K and V are not expanded: read once, as stored

/// The online softmax of one query row after one tile of positions, in the numbers of the kernel. A split starts anew.
struct AttentionTile {
  float most;        ///< m: the largest score of the split so far
  float total;       ///< l: the sum of e^(score - m) of the split so far
  float correction;  ///< e^(m before - m), with which l and the output so far were multiplied; 0 in a split's first tile
};

/// Query rows of one kv head of one sequence: row i is token i / group, head kv_head * group + i % group.
struct AttentionRows {
  const float* q;  ///< [tokens, q_stride]
  float* out;      ///< [tokens, out_stride]
  std::size_t q_stride, out_stride;
  const std::int32_t* position;  ///< [tokens], rising by one
  std::size_t kv_head, group;
  std::size_t first, count;  ///< rows [first, first + count), count <= attention_rows
};

/// Floats that one worker needs, for keys and values of such widths.
[[nodiscard]] constexpr std::size_t attention_scratch(std::size_t key_width, std::size_t value_width) noexcept {
  const std::size_t k = round_up<std::size_t>(key_width, 16), v = round_up<std::size_t>(value_width, 16);
  return attention_tile * (k + v)             // one tile of K and V
         + 8 * attention_tile                 // scores of eight rows
         + attention_rows * (k + 2 * v + 4);  // scaled queries, sums of this split and of all, their maxima and totals
}

/// What one split gives for one row: sum[value width padded to 16], then maximum and total.
[[nodiscard]] constexpr std::size_t attention_partial(std::size_t value_width) noexcept {
  return round_up<std::size_t>(value_width, 16) + 16;
}

}  // namespace nihao

#define NIHAO_KERNEL_FILE "../kernels/cpu/attention.inl"
#include "../../simd/foreach_isa.inl"

namespace nihao {

/// Every tile of one query row, for who wants to see the softmax at work: the kernel runs over the row again (a row's bits do not
/// depend on the rows beside it) and writes down its state after each tile. q: [heads * head_dim], rotated, not scaled.
/// tiles: [heads][position / attention_tile + 1], tile i being the positions from 64 i on; zeros where a window hides all of it.
inline void attention_tiles(Isa isa, const AttentionShape& shape, const KvView& kv, std::int32_t position,
                            std::span<const float> q, std::span<AttentionTile> tiles) {
  const std::size_t count = static_cast<std::size_t>(position) / attention_tile + 1, group = shape.heads / shape.kv_heads;
  NIHAO_ASSERT(tiles.size() == count * shape.heads && q.size() == std::size_t{shape.heads} * shape.head_dim);
  std::fill(tiles.begin(), tiles.end(), AttentionTile{});
  std::vector<float> scratch(attention_scratch(shape.head_dim, shape.value_width()));
  for (std::size_t head = 0; head < shape.kv_heads; ++head)
    for (std::size_t first = 0; first < group; first += attention_rows) {
      const AttentionRows rows{
          q.data(), nullptr, q.size(), 0, &position, head, group, first, std::min(attention_rows, group - first)};
      AttentionTile* to = tiles.data() + (head * group + first) * count;
      NIHAO_ON_ISA(isa, attention_watch(shape, kv, rows, to, count, scratch.data()));
    }
}

}  // namespace nihao
