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
// q[p][s]: group s of block 2 p in the low halves, of block 2 p + 1 in the high halves.
template <>
struct Tile<Q4_K> {
  f16 d[16], dmin[16];
  std::uint8_t scale[8][16], min[8][16], q[4][8][64];
};
// h[p][u]: bit 2 i + t is the fifth bit of block 2 p + t's group 2 i + u.
template <>
struct Tile<Q5_K> {
  f16 d[16], dmin[16];
  std::uint8_t scale[8][16], min[8][16], h[4][2][64], q[4][8][64];
};
// Block 4 f + t (half f, quarter t): low bits in q[2 f + t % 2], low halves for t < 2; upper two bits at bits 2 t of h[f].
template <>
struct Tile<Q6_K> {
  f16 d[16];
  std::int8_t scale[16][16];
  std::uint8_t h[2][8][64], q[4][8][64];
};

namespace detail {

// Puts `size` bytes of row r into groups of 64.
inline void spread(std::uint8_t* groups, std::size_t r, const void* bytes, std::size_t size) noexcept {
  const auto* from = static_cast<const std::uint8_t*>(bytes);
  for (std::size_t s = 0; s < size / 4; ++s) std::memcpy(groups + 64 * s + 4 * r, from + 4 * s, 4);
}

// The way back: row r's bytes out of groups of 64.
inline void collect(const std::uint8_t* groups, std::size_t r, void* bytes, std::size_t size) noexcept {
  auto* to = static_cast<std::uint8_t*>(bytes);
  for (std::size_t s = 0; s < size / 4; ++s) std::memcpy(to + 4 * s, groups + 64 * s + 4 * r, 4);
}

// Bit 4 s + j of the word becomes bit s of byte j.
inline void spread_fifth_bits(std::uint8_t* h, std::size_t r, const std::uint8_t (&qh)[4]) noexcept {
  std::uint32_t word, out = 0;
  std::memcpy(&word, qh, 4);
  for (std::uint32_t s = 0; s < 8; ++s) {
    const std::uint32_t four = (word >> (4 * s)) & 15u;
    out |= ((four * 0x00204081u) & 0x01010101u) << s;  // bit j of `four` to bit 8 j
  }
  std::memcpy(h + 4 * r, &out, 4);
}

inline void collect_fifth_bits(const std::uint8_t* h, std::size_t r, std::uint8_t (&qh)[4]) noexcept {
  std::uint32_t in, word = 0;
  std::memcpy(&in, h + 4 * r, 4);
  for (std::uint32_t s = 0; s < 8; ++s) {
    const std::uint32_t four = in >> s & 0x01010101u;
    word |= ((four | four >> 7 | four >> 14 | four >> 21) & 15u) << (4 * s);
  }
  std::memcpy(qh, &word, 4);
}

template <class T>
void pack_k_scales(T& tile, std::size_t r, const std::uint8_t (&scales)[12]) noexcept {
  for (std::size_t b = 0; b < 8; ++b) {
    const KScale k = k_scale(scales, b);
    tile.scale[b][r] = k.scale;
    tile.min[b][r] = k.min;
  }
}

template <class T>
void unpack_k_scales(const T& tile, std::size_t r, std::uint8_t (&scales)[12]) noexcept {
  KScale groups[8];
  for (std::size_t b = 0; b < 8; ++b) groups[b] = {tile.scale[b][r], tile.min[b][r]};
  put_k_scales(groups, scales);
}

inline void pack(Tile<F32>& tile, std::size_t r, const F32::Block& b) noexcept { tile.w[r] = b.value; }
inline void pack(Tile<F16>& tile, std::size_t r, const F16::Block& b) noexcept { tile.w[r] = b.value; }
inline void pack(Tile<BF16>& tile, std::size_t r, const BF16::Block& b) noexcept { tile.w[r] = b.value; }
inline void pack(Tile<Q4_0>& tile, std::size_t r, const Q4_0::Block& b) noexcept {
  tile.d[r] = b.d;
  spread(tile.q[0], r, b.qs, 16);
}
inline void pack(Tile<Q4_1>& tile, std::size_t r, const Q4_1::Block& b) noexcept {
  tile.d[r] = b.d, tile.m[r] = b.m;
  spread(tile.q[0], r, b.qs, 16);
}
inline void pack(Tile<Q5_0>& tile, std::size_t r, const Q5_0::Block& b) noexcept {
  tile.d[r] = b.d;
  spread_fifth_bits(tile.h, r, b.qh);
  spread(tile.q[0], r, b.qs, 16);
}
inline void pack(Tile<Q5_1>& tile, std::size_t r, const Q5_1::Block& b) noexcept {
  tile.d[r] = b.d, tile.m[r] = b.m;
  spread_fifth_bits(tile.h, r, b.qh);
  spread(tile.q[0], r, b.qs, 16);
}
inline void pack(Tile<Q8_0>& tile, std::size_t r, const Q8_0::Block& b) noexcept {
  tile.d[r] = b.d;
  spread(tile.q[0], r, b.q, 32);
}
inline void pack(Tile<Q4_K>& tile, std::size_t r, const Q4_K::Block& b) noexcept {
  tile.d[r] = b.d, tile.dmin[r] = b.dmin;
  pack_k_scales(tile, r, b.scales);
  spread(tile.q[0][0], r, b.qs, 128);
}
inline void pack(Tile<Q5_K>& tile, std::size_t r, const Q5_K::Block& b) noexcept {
  tile.d[r] = b.d, tile.dmin[r] = b.dmin;
  pack_k_scales(tile, r, b.scales);
  std::uint32_t groups[8];  // in the file, bit b of a byte is block b's
  std::memcpy(groups, b.qh, 32);
  for (std::uint32_t p = 0; p < 4; ++p) {
    for (std::uint32_t u = 0; u < 2; ++u) {
      std::uint32_t out = 0;
      for (std::uint32_t i = 0; i < 4; ++i) out |= (groups[2 * i + u] >> 2 * p & 0x03030303u) << 2 * i;
      std::memcpy(tile.h[p][u] + 4 * r, &out, 4);
    }
  }
  spread(tile.q[0][0], r, b.qs, 128);
}
inline void pack(Tile<Q6_K>& tile, std::size_t r, const Q6_K::Block& b) noexcept {
  tile.d[r] = b.d;
  for (std::size_t g = 0; g < 16; ++g) tile.scale[g][r] = b.scales[g];
  spread(tile.h[0][0], r, b.qh, 64);
  spread(tile.q[0][0], r, b.ql, 128);
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
inline void unpack(const Tile<Q4_K>& tile, std::size_t r, Q4_K::Block& b) noexcept {
  b.d = tile.d[r], b.dmin = tile.dmin[r];
  unpack_k_scales(tile, r, b.scales);
  collect(tile.q[0][0], r, b.qs, 128);
}
inline void unpack(const Tile<Q5_K>& tile, std::size_t r, Q5_K::Block& b) noexcept {
  b.d = tile.d[r], b.dmin = tile.dmin[r];
  unpack_k_scales(tile, r, b.scales);
  std::uint32_t groups[8] = {};
  for (std::uint32_t p = 0; p < 4; ++p)
    for (std::uint32_t u = 0; u < 2; ++u) {
      std::uint32_t in;
      std::memcpy(&in, tile.h[p][u] + 4 * r, 4);
      for (std::uint32_t i = 0; i < 4; ++i) groups[2 * i + u] |= (in >> 2 * i & 0x03030303u) << 2 * p;
    }
  std::memcpy(b.qh, groups, 32);
  collect(tile.q[0][0], r, b.qs, 128);
}
inline void unpack(const Tile<Q6_K>& tile, std::size_t r, Q6_K::Block& b) noexcept {
  b.d = tile.d[r];
  for (std::size_t g = 0; g < 16; ++g) b.scales[g] = tile.scale[g][r];
  collect(tile.h[0][0], r, b.qh, 64);
  collect(tile.q[0][0], r, b.ql, 128);
}

}  // namespace detail

/// Bytes of a packed [rows, cols] matrix: rows are padded to whole tiles with zero weights.
[[nodiscard]] constexpr std::size_t packed_bytes(FormatId format, std::size_t rows, std::size_t cols) noexcept {
  return visit_format(format, [&]<class F>(F) { return ceil_div(rows, tile_rows) * (cols / F::block_size) * sizeof(Tile<F>); });
}

/// Packs the tiles [first, first + count) of a [rows, cols] matrix stored in F's blocks into `out`, which is zeroed.
template <BlockFormat F>
void pack_tiles(std::span<const std::byte> stored, std::size_t rows, std::size_t cols, std::size_t first, std::size_t count,
                std::byte* out) noexcept {
  const std::size_t blocks = cols / F::block_size;
  const auto* from = reinterpret_cast<const typename F::Block*>(stored.data());
  auto* tiles = reinterpret_cast<Tile<F>*>(out);
  for (std::size_t t = first; t < first + count; ++t)
    for (std::size_t r = 0; r < tile_rows && t * tile_rows + r < rows; ++r)
      for (std::size_t b = 0; b < blocks; ++b) detail::pack(tiles[t * blocks + b], r, from[(t * tile_rows + r) * blocks + b]);
}

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
