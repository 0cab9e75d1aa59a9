// How the CPU keeps weights: sixteen rows side by side, so that a SIMD lane is an output row and no sum crosses lanes.
//
// A tile holds one block of each of sixteen rows. Its codes lie in groups of four consecutive k: 64 bytes, byte 4 r + j being
// row r's value at k = 4 s + j for group s. One vpdpbusd multiplies such a group with four activations, broadcast. The files' own
// packing of nibbles and high bits is kept inside each byte, so packing a tile is a transposition of 4-byte pieces, and a packed
// tensor is as large as the file's but for the K formats' scales, which become whole bytes.
#pragma once

#include "../../base/checked.hpp"
#include "../../format/registry.hpp"

#include <cstring>

namespace nihao {

inline constexpr std::size_t tile_rows = 16;

/// The packed form of sixteen blocks of format F. Specialised below for every format that has a kernel.
template <class F>
struct Tile {
  static_assert(sizeof(F) == 0,
                "This weight format has no CPU tile: specialise nihao::Tile<F> and `codes<F>` in kernels/cpu/matmul.inl.");
};

template <>
struct Tile<F32> {
  float w[16];
};
template <>
struct Tile<F16> {
  f16 w[16];
};
template <>
struct Tile<BF16> {
  bf16 w[16];
};
template <>
struct Tile<Q4_0> {
  f16 d[16];
  std::uint8_t q[4][64];
};
template <>
struct Tile<Q4_1> {
  f16 d[16], m[16];
  std::uint8_t q[4][64];
};
// h: bit s of byte 4 r + j is the fifth bit of row r's code at k = 4 s + j.
template <>
struct Tile<Q5_0> {
  f16 d[16];
  std::uint8_t h[64], q[4][64];
};
template <>
struct Tile<Q5_1> {
  f16 d[16], m[16];
  std::uint8_t h[64], q[4][64];
};
template <>
struct Tile<Q8_0> {
  f16 d[16];
  std::uint8_t q[8][64];
};
// Of blocks 2 p and 2 p + 1: their scales and minima, then q[s], group s of the first in the low halves, of the second in the
// high halves. The minima's factor is kept with its sign turned. Fields of the K formats lie in the order in which they are read:
// more streams than one are too many for a prefetcher.
template <>
struct Tile<Q4_K> {
  f16 d[16], negative_dmin[16];
  struct {
    std::uint8_t q[8][64], scale[2][16], min[2][16];
  } pair[4];
};
// Bit 2 i + t of h[u] is the fifth bit of block 2 p + t's group 2 i + u.
template <>
struct Tile<Q5_K> {
  f16 d[16], negative_dmin[16];
  struct {
    std::uint8_t h[2][64], q[8][64], scale[2][16], min[2][16];
  } pair[4];
};
// Block 4 f + t (half f, quarter t): low bits in group[s].q[t % 2], low halves for t < 2; upper two bits at bits 2 t of
// group[s].h. The four blocks share their bytes, and few rows of x take them all at once: so a half is read once, front to back.
template <>
struct Tile<Q6_K> {
  f16 d[16];
  std::int8_t scale[16][16];
  struct {
    struct {
      std::uint8_t h[64], q[2][64];
    } group[8];
  } half[2];
};

// Formats whose codes a table of sixteen turns into values: four bits a code, group S of a 32-block in the low halves of q[S] for
// S < 4, in the high halves of q[S - 4] for the others.
template <>
struct Tile<IQ4_NL> {
  f16 d[16];
  std::uint8_t q[4][64];
};
template <>
struct Tile<MXFP4> {
  std::uint8_t e[16];  // the scale is 2^(e - 127)
  std::uint8_t q[4][64];
};
template <>
struct Tile<NVFP4> {
  struct {
    std::uint8_t q[4][64];
    f16 half_scale[2][16];  // of sixteen columns: e4m3 has no more digits than a half
  } block[2];
};
// Of 32-block b: codes, and its scale. IQ3, IQ2 and IQ1, whose points of a grid are numbers in the file, have the values that
// those stand for here, so that the kernel needs no table larger than a register.
template <std::size_t ScalesOfBlock>
struct CodebookTile {
  float d[16];
  struct {
    std::uint8_t q[4][64];
    std::int8_t scale[ScalesOfBlock][16];
  } block[8];
};
template <>
struct Tile<IQ4_XS> : CodebookTile<1> {};
template <>
struct Tile<IQ3_XXS> : CodebookTile<1> {};
template <>
struct Tile<IQ3_S> : CodebookTile<1> {};
template <>
struct Tile<IQ2_XXS> : CodebookTile<1> {};
template <>
struct Tile<IQ2_XS> : CodebookTile<2> {};
template <>
struct Tile<IQ2_S> : CodebookTile<2> {};
template <>
struct Tile<IQ1_S> : CodebookTile<1> {};
template <>
struct Tile<IQ1_M> : CodebookTile<2> {};
// Two bits a code, around 1: group S of 32-block b at bits 2 (S % 4) of q[b][S / 4].
template <std::size_t Blocks>
struct TwoBitTile {
  f16 d[16];
  std::uint8_t q[Blocks][2][64];
};
template <>
struct Tile<TQ1_0> : TwoBitTile<8> {};
template <>
struct Tile<TQ2_0> : TwoBitTile<8> {};
template <>
struct Tile<Q2_0> : TwoBitTile<2> {};
template <>
struct Tile<Q1_0> {  // bit S of q[b] for group S
  f16 d[16];
  std::uint8_t q[4][64];
};
template <>
struct Tile<Q8_K> {
  float d[16];
  std::uint8_t q[8][8][64];
};
// Block 4 f + t (half f, quarter t): bits 2 t of half[f].q[s], group s.
template <>
struct Tile<Q2_K> {
  f16 d[16], negative_dmin[16];
  std::uint8_t scale[16][16], min[16][16];
  struct {
    std::uint8_t q[8][64];
  } half[2];
};
// The same with third bits: of half f and group s, bit t is quarter t's, in the low halves of half[f].h[s / 2] for even s.
template <>
struct Tile<Q3_K> {
  f16 d[16];
  std::int8_t scale[16][16];
  struct {
    std::uint8_t h[4][64], q[8][64];
  } half[2];
};

// The zero point is kept with its sign turned: what is added to d * codes is d * negative_z.
template <>
struct Tile<INT4> {
  f16 d[16], negative_z[16];
  std::uint8_t q[4][64];
};
template <>
struct Tile<INT8> {
  float d[16];
  f16 negative_z[16];
  std::uint8_t q[8][64];
};
// Of formats that are multiplied as floats: column after column, sixteen rows side by side.
template <>
struct Tile<FP8_E4M3> {
  float d[16];  // NaN where a code of the block is
  e4m3 q[32][16];
};
template <>
struct Tile<FP8_E5M2> {
  float d[16];
  e5m2 q[32][16];
};
template <>
struct Tile<NF4> {
  float d[16];
  std::uint8_t q[16][16];  // column i in the low halves of q[i], column i + 16 in the high halves
};

namespace detail {

// Row r's bytes out of groups of 64.
inline void collect(const std::uint8_t* groups, std::size_t r, void* bytes, std::size_t size) noexcept {
  auto* to = static_cast<std::uint8_t*>(bytes);
  for (std::size_t s = 0; s < size / 4; ++s) std::memcpy(to + 4 * s, groups + 64 * s + 4 * r, 4);
}

// Bit s of byte j becomes bit 4 s + j of the word.
inline void collect_fifth_bits(const std::uint8_t* h, std::size_t r, std::uint8_t (&qh)[4]) noexcept {
  std::uint32_t in, word = 0;
  std::memcpy(&in, h + 4 * r, 4);
  for (std::uint32_t s = 0; s < 8; ++s) {
    const std::uint32_t four = in >> s & 0x01010101u;
    word |= ((four | four >> 7 | four >> 14 | four >> 21) & 15u) << (4 * s);
  }
  std::memcpy(qh, &word, 4);
}

constexpr f16 negated(f16 x) noexcept { return {static_cast<std::uint16_t>(x.bits ^ 0x8000u)}; }

template <class T>
void unpack_k_scales(const T& tile, std::size_t r, std::uint8_t (&scales)[12]) noexcept {
  KScale groups[8];
  for (std::size_t b = 0; b < 8; ++b) groups[b] = {tile.pair[b / 2].scale[b % 2][r], tile.pair[b / 2].min[b % 2][r]};
  put_k_scales(groups, scales);
}

// Row r of a tile as the file had it, to the bit.
inline void unpack(const Tile<F32>& tile, std::size_t r, F32::Block& b) noexcept { b.value = tile.w[r]; }
inline void unpack(const Tile<F16>& tile, std::size_t r, F16::Block& b) noexcept { b.value = tile.w[r]; }
inline void unpack(const Tile<BF16>& tile, std::size_t r, BF16::Block& b) noexcept { b.value = tile.w[r]; }
inline void unpack(const Tile<Q4_0>& tile, std::size_t r, Q4_0::Block& b) noexcept {
  b.d = tile.d[r];
  collect(tile.q[0], r, b.qs, 16);
}
inline void unpack(const Tile<Q4_1>& tile, std::size_t r, Q4_1::Block& b) noexcept {
  b.d = tile.d[r], b.m = tile.m[r];
  collect(tile.q[0], r, b.qs, 16);
}
inline void unpack(const Tile<Q5_0>& tile, std::size_t r, Q5_0::Block& b) noexcept {
  b.d = tile.d[r];
  collect_fifth_bits(tile.h, r, b.qh);
  collect(tile.q[0], r, b.qs, 16);
}
inline void unpack(const Tile<Q5_1>& tile, std::size_t r, Q5_1::Block& b) noexcept {
  b.d = tile.d[r], b.m = tile.m[r];
  collect_fifth_bits(tile.h, r, b.qh);
  collect(tile.q[0], r, b.qs, 16);
}
inline void unpack(const Tile<Q8_0>& tile, std::size_t r, Q8_0::Block& b) noexcept {
  b.d = tile.d[r];
  collect(tile.q[0], r, b.q, 32);
}
inline void unpack(const Tile<INT4>& tile, std::size_t r, INT4::Block& b) noexcept {
  b.d = tile.d[r], b.z = negated(tile.negative_z[r]);
  collect(tile.q[0], r, b.qs, 16);
}
inline void unpack(const Tile<INT8>& tile, std::size_t r, INT8::Block& b) noexcept {
  b.d = tile.d[r], b.z = negated(tile.negative_z[r]);
  collect(tile.q[0], r, b.q, 32);
}
// A block with a NaN comes back as NaNs alone.
template <class F>
  requires requires(const Tile<F>& tile) { tile.q[0][0].bits; }
void unpack(const Tile<F>& tile, std::size_t r, typename F::Block& b) noexcept {
  b.d = tile.d[r];
  for (std::size_t i = 0; i < 32; ++i) b.q[i] = tile.q[i][r];
}
inline void unpack(const Tile<NF4>& tile, std::size_t r, NF4::Block& b) noexcept {
  b.d = tile.d[r];
  for (std::size_t i = 0; i < 16; ++i) b.qs[i] = tile.q[i][r];
}
inline void unpack(const Tile<Q4_K>& tile, std::size_t r, Q4_K::Block& b) noexcept {
  b.d = tile.d[r], b.dmin = negated(tile.negative_dmin[r]);
  unpack_k_scales(tile, r, b.scales);
  for (std::size_t p = 0; p < 4; ++p) collect(tile.pair[p].q[0], r, b.qs + 32 * p, 32);
}
inline void unpack(const Tile<Q5_K>& tile, std::size_t r, Q5_K::Block& b) noexcept {
  b.d = tile.d[r], b.dmin = negated(tile.negative_dmin[r]);
  unpack_k_scales(tile, r, b.scales);
  std::uint32_t groups[8] = {};
  for (std::uint32_t p = 0; p < 4; ++p) {
    for (std::uint32_t u = 0; u < 2; ++u) {
      std::uint32_t in;
      std::memcpy(&in, tile.pair[p].h[u] + 4 * r, 4);
      for (std::uint32_t i = 0; i < 4; ++i) groups[2 * i + u] |= (in >> 2 * i & 0x03030303u) << 2 * p;
    }
    collect(tile.pair[p].q[0], r, b.qs + 32 * p, 32);
  }
  std::memcpy(b.qh, groups, 32);
}
inline void unpack(const Tile<Q6_K>& tile, std::size_t r, Q6_K::Block& b) noexcept {
  b.d = tile.d[r];
  for (std::size_t g = 0; g < 16; ++g) b.scales[g] = tile.scale[g][r];
  for (std::size_t f = 0; f < 2; ++f) {
    for (std::size_t g = 0; g < 8; ++g) {
      std::memcpy(b.qh + 32 * f + 4 * g, tile.half[f].group[g].h + 4 * r, 4);
      for (std::size_t i = 0; i < 2; ++i) std::memcpy(b.ql + 64 * f + 32 * i + 4 * g, tile.half[f].group[g].q[i] + 4 * r, 4);
    }
  }
}

}  // namespace detail

/// Bytes of a packed [rows, cols] matrix: rows are padded to whole tiles with zero weights.
[[nodiscard]] constexpr std::size_t packed_bytes(FormatId format, std::size_t rows, std::size_t cols) noexcept {
  return visit_format(format, [&]<class F>(F) { return ceil_div(rows, tile_rows) * (cols / F::block_size) * sizeof(Tile<F>); });
}

/// Whether a packed matrix gives the file's blocks back. Of the formats that have another form here it does not.
template <class F>
inline constexpr bool unpacks = requires(const Tile<F>& tile, typename F::Block& block) { detail::unpack(tile, 0, block); };

/// `f(block, i)` for each block i of a row of a packed matrix with `cols` columns, the block being what the file had, to the bit.
template <BlockFormat F, class Use>
void unpack_row(const std::byte* packed, std::size_t row, std::size_t cols, Use&& f) noexcept {
  const std::size_t blocks = cols / F::block_size;
  const Tile<F>* tiles = reinterpret_cast<const Tile<F>*>(packed) + row / tile_rows * blocks;
  for (std::size_t b = 0; b < blocks; ++b) {
    typename F::Block block;
    detail::unpack(tiles[b], row % tile_rows, block);
    f(block, b);
  }
}

}  // namespace nihao
