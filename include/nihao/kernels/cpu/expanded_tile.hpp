// Tiles for many tokens: a format's codes are unpacked once into bytes, and all tokens of a slab multiply with those.
//
// The arithmetic is that of matmul.inl, step by step, so one token and many have the same bits: an exact integer sum a block,
// times its scales as floats, in the order of the blocks. What differs is the register tile. Two tiles of sixteen rows share each
// broadcast of four activations, for the load ports limit a kernel that broadcasts one for every dot product.
#pragma once

#include "matmul.hpp"

namespace nihao {

/// 32 columns of sixteen rows, ready to be multiplied.
struct ExpandedBlock {
  std::uint8_t codes[8][64];  ///< as `codes` of matmul.inl gives them
  float scale[16];
  float second[16];  ///< the minimum, negated; or, where sixteen columns have a scale, that of the upper sixteen
};

/// What a format's blocks come to.
enum class ExpandedKind : std::uint8_t {
  scaled,               ///< scale * (codes - zero point)
  with_minimum,         ///< scale * codes + second
  halves,               ///< scale * (codes - zero point) for the lower sixteen columns, second for the upper
  signed_bytes,         ///< scale * codes, which are signed
  signed_halves,        ///< as halves, with signed codes
  signed_with_minimum,  ///< as with_minimum, with signed codes
};

inline constexpr std::size_t expanded_panel = 64;      ///< blocks of a row that are expanded at a time: 80 KiB for two tiles
inline constexpr std::size_t expanded_rows = 256;      ///< rows of x whose sums wait for the next panel
inline constexpr std::size_t most_expanded_tiles = 2;  ///< tiles that share a broadcast
inline constexpr std::size_t few_rows = 64;            ///< rows of x for which nothing is expanded

/// Floats that one worker needs.
[[nodiscard]] constexpr std::size_t expanded_scratch() noexcept {
  return most_expanded_tiles * (expanded_panel * sizeof(ExpandedBlock) / sizeof(float) + expanded_rows * tile_rows);
}

[[nodiscard]] constexpr bool has_signed_codes(ExpandedKind k) noexcept { return k >= ExpandedKind::signed_bytes; }
[[nodiscard]] constexpr bool has_second_scale(ExpandedKind k) noexcept {
  return k == ExpandedKind::halves || k == ExpandedKind::signed_halves;
}
[[nodiscard]] constexpr bool adds_minimum(ExpandedKind k) noexcept {
  return k == ExpandedKind::with_minimum || k == ExpandedKind::signed_with_minimum;
}

}  // namespace nihao

#define NIHAO_KERNEL_FILE "../kernels/cpu/expanded_tile.inl"
#define NIHAO_KERNEL_DOTS
#include "../../simd/foreach_isa.inl"
