// From the rows of a file to tiles, sixteen rows at a time, in registers of sixteen bytes: every instruction set has those, and
// packing then takes less time than reading the file and having the system clear the memory that is written
// (docs/performance.md).
#pragma once

#include "tile.hpp"

namespace nihao {

namespace detail {

typedef std::uint8_t Bytes16 __attribute__((vector_size(16)));
typedef std::uint16_t Halves8 __attribute__((vector_size(16)));
typedef std::uint32_t Words4 __attribute__((vector_size(16)));

inline Bytes16 zip_low(Bytes16 a, Bytes16 b) noexcept {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
inline Bytes16 zip_high(Bytes16 a, Bytes16 b) noexcept {
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}
inline Halves8 zip_low(Halves8 a, Halves8 b) noexcept { return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11); }
inline Halves8 zip_high(Halves8 a, Halves8 b) noexcept { return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15); }
inline Words4 zip_low(Words4 a, Words4 b) noexcept { return __builtin_shufflevector(a, b, 0, 4, 1, 5); }
inline Words4 zip_high(Words4 a, Words4 b) noexcept { return __builtin_shufflevector(a, b, 2, 6, 3, 7); }

// Interleaves the halves of 64 bytes. An element's index turns by one bit: as many times as the bits of a row's number make a
// transposition.
template <class V>
NIHAO_ALWAYS_INLINE void zip(V (&v)[4]) noexcept {
  const V a = v[0], b = v[1], c = v[2], d = v[3];
  v[0] = zip_low(a, c), v[1] = zip_high(a, c), v[2] = zip_low(b, d), v[3] = zip_high(b, d);
}

// Sixteen rows' blocks at the same place: row r's lies r * stride bytes from the first.
struct BlockColumn {
  const std::byte* first;
  std::size_t stride;
  template <class Block>
  [[nodiscard]] const Block& row(std::size_t r) const noexcept {
    return *reinterpret_cast<const Block*>(first + r * stride);
  }
};

// `size` bytes of every row, from `offset` of its block on, into groups `step` bytes apart: bytes 4 r to 4 r + 3 of a group are
// row r's.
NIHAO_ALWAYS_INLINE void spread(const BlockColumn& rows, std::size_t offset, std::size_t size, std::uint8_t* groups,
                                std::size_t step = 64) noexcept {
  for (std::size_t i = 0; i < size; i += 16)
    for (std::size_t r = 0; r < tile_rows; r += 4) {
      Words4 v[4];
      for (std::size_t j = 0; j < 4; ++j) std::memcpy(&v[j], rows.first + (r + j) * rows.stride + offset + i, 16);
      zip(v), zip(v);
      for (std::size_t j = 0; j < 4; ++j) std::memcpy(groups + (i / 4 + j) * step + 4 * r, &v[j], 16);
    }
}

// Column c of a group's [16][elements of 4 bytes] to the sixteen at to[c].
template <class V, class To, std::size_t columns>
NIHAO_ALWAYS_INLINE void columns_of(const std::uint8_t* group, To* const (&to)[columns]) noexcept {
  static_assert(columns * sizeof(To) == 4);
  V v[4];
  std::memcpy(v, group, 64);
  zip(v), zip(v), zip(v), zip(v);
  for (std::size_t c = 0; c < columns; ++c)
    std::memcpy(to[c], reinterpret_cast<const std::byte*>(v) + c * 16 * sizeof(To), 16 * sizeof(To));
}

// The sixteen bytes at a block's start, which Q4_K and Q5_K share: two halves, and twelve bytes of scales (see k_scale).
template <class T>
NIHAO_ALWAYS_INLINE void pack_k_scales(T& tile, const BlockColumn& rows) noexcept {
  std::uint8_t head[4][64];
  spread(rows, 0, 16, head[0]);
  columns_of<Halves8>(head[0], {tile.d, tile.negative_dmin});
  for (f16& x : tile.negative_dmin) x = negated(x);
  std::uint32_t packed[3][16], group[4][16];
  std::memcpy(packed, head[1], sizeof packed);
  for (std::size_t r = 0; r < tile_rows; ++r) {  // four groups in a word: scales and minima of the first four, and of the others
    const std::uint32_t a = packed[0][r], b = packed[1][r], c = packed[2][r];
    group[0][r] = a & 0x3f3f3f3fu, group[1][r] = b & 0x3f3f3f3fu;
    group[2][r] = (c & 0x0f0f0f0fu) | (a >> 6 & 0x03030303u) << 4;
    group[3][r] = (c >> 4 & 0x0f0f0f0fu) | (b >> 6 & 0x03030303u) << 4;
  }
  for (std::size_t i = 0; i < 2; ++i) {
    auto &even = tile.pair[2 * i], &odd = tile.pair[2 * i + 1];
    columns_of<Bytes16>(reinterpret_cast<const std::uint8_t*>(group[2 * i]),
                        {even.scale[0], even.scale[1], odd.scale[0], odd.scale[1]});
    columns_of<Bytes16>(reinterpret_cast<const std::uint8_t*>(group[2 * i + 1]),
                        {even.min[0], even.min[1], odd.min[0], odd.min[1]});
  }
}

// Bit 4 s + j of row r's word becomes bit s of byte 4 r + j.
template <class Block>
void spread_fifth_bits(const BlockColumn& rows, std::uint8_t* h) noexcept {
  std::uint32_t words[tile_rows], out[tile_rows] = {};
  for (std::size_t r = 0; r < tile_rows; ++r) std::memcpy(&words[r], rows.row<Block>(r).qh, 4);
  for (std::uint32_t s = 0; s < 8; ++s)
    for (std::size_t r = 0; r < tile_rows; ++r) {
      const std::uint32_t four = words[r] >> (4 * s) & 15u;
      out[r] |= ((four | four << 7 | four << 14 | four << 21) & 0x01010101u) << s;  // bit j of `four` to bit 8 j
    }
  std::memcpy(h, out, sizeof out);
}

// How many blocks of a row `pack` takes at a time: sixteen bytes of floats.
template <class F>
inline constexpr std::size_t packed_together = F::block_size == 1 ? 16 / sizeof(typename F::Block) : 1;

template <class F>
  requires(F::block_size == 1)
void pack(Tile<F>* tiles, const BlockColumn& rows) noexcept {
  std::uint8_t groups[4][64];
  spread(rows, 0, 16, groups[0]);
  for (std::size_t i = 0; i < 4; ++i) {
    if constexpr (sizeof(Tile<F>) == 64) std::memcpy(tiles[i].w, groups[i], 64);
    else columns_of<Halves8>(groups[i], {tiles[2 * i].w, tiles[2 * i + 1].w});
  }
}
// Formats that are multiplied as floats. Of four-bit codes a byte holds two columns'.
template <class F>
  requires(F::block_size == 32 && multiplied_as_floats<F>)
void pack(Tile<F>* to, const BlockColumn& rows) noexcept {
  for (std::size_t r = 0; r < tile_rows; ++r) {
    const auto& block = rows.row<typename F::Block>(r);
    to->d[r] = block.d;
    for (std::size_t i = 0; i < std::size(to->q); ++i) {
      if constexpr (std::is_same_v<F, NF4>) to->q[i][r] = block.qs[i];
      else to->q[i][r] = block.q[i];
      if constexpr (std::is_same_v<F, FP8_E4M3>)
        if ((block.q[i].bits & 0x7f) == 0x7f) to->d[r] = std::numeric_limits<float>::quiet_NaN();
    }
  }
}
// The other formats of 32: a scale, perhaps a minimum or a zero point, perhaps fifth bits, and codes.
template <class F>
  requires(F::block_size == 32 && !multiplied_as_floats<F>)
void pack(Tile<F>* to, const BlockColumn& rows) noexcept {
  Tile<F>& tile = *to;
  using Block = typename F::Block;
  for (std::size_t r = 0; r < tile_rows; ++r) {
    if constexpr (requires { tile.e; }) tile.e[r] = rows.row<Block>(r).e;
    else tile.d[r] = rows.row<Block>(r).d;
    if constexpr (requires { tile.m; }) tile.m[r] = rows.row<Block>(r).m;
    if constexpr (requires { tile.negative_z; }) tile.negative_z[r] = negated(rows.row<Block>(r).z);
  }
  if constexpr (requires { tile.h; }) spread_fifth_bits<Block>(rows, tile.h);
  spread(rows, sizeof(Block) - sizeof tile.q / tile_rows, sizeof tile.q / tile_rows, tile.q[0]);
}
inline void pack(Tile<Q4_K>* to, const BlockColumn& rows) noexcept {
  Tile<Q4_K>& tile = *to;
  pack_k_scales(tile, rows);
  for (std::size_t p = 0; p < 4; ++p) spread(rows, offsetof(Q4_K::Block, qs) + 32 * p, 32, tile.pair[p].q[0]);
}
inline void pack(Tile<Q5_K>* to, const BlockColumn& rows) noexcept {
  Tile<Q5_K>& tile = *to;
  pack_k_scales(tile, rows);
  std::uint8_t bytes[8][64];  // in the file, bit b of a byte is block b's
  spread(rows, offsetof(Q5_K::Block, qh), 32, bytes[0]);
  std::uint32_t groups[8][16];
  std::memcpy(groups, bytes, sizeof groups);
  for (std::uint32_t p = 0; p < 4; ++p) {
    for (std::uint32_t u = 0; u < 2; ++u) {
      std::uint32_t out[16] = {};
      for (std::uint32_t i = 0; i < 4; ++i)
        for (std::size_t r = 0; r < tile_rows; ++r) out[r] |= (groups[2 * i + u][r] >> 2 * p & 0x03030303u) << 2 * i;
      std::memcpy(tile.pair[p].h[u], out, sizeof out);
    }
    spread(rows, offsetof(Q5_K::Block, qs) + 32 * p, 32, tile.pair[p].q[0]);
  }
}
inline void pack(Tile<Q6_K>* to, const BlockColumn& rows) noexcept {
  Tile<Q6_K>& tile = *to;
  for (std::size_t r = 0; r < tile_rows; ++r) tile.d[r] = rows.row<Q6_K::Block>(r).d;
  std::uint8_t scales[4][64];
  spread(rows, offsetof(Q6_K::Block, scales), 16, scales[0]);
  for (std::size_t g = 0; g < 4; ++g)
    columns_of<Bytes16>(scales[g], {tile.scale[4 * g], tile.scale[4 * g + 1], tile.scale[4 * g + 2], tile.scale[4 * g + 3]});
  for (std::size_t f = 0; f < 2; ++f) {
    auto& group = tile.half[f].group;
    spread(rows, offsetof(Q6_K::Block, qh) + 32 * f, 32, group[0].h, sizeof group[0]);
    for (std::size_t i = 0; i < 2; ++i)
      spread(rows, offsetof(Q6_K::Block, ql) + 64 * f + 32 * i, 32, group[0].q[i], sizeof group[0]);
  }
}

// 32 codes of row r, of four bits, into a tile's groups.
inline void put_nibbles(const std::uint8_t (&code)[32], std::size_t r, std::uint8_t (&q)[4][64]) noexcept {
  for (std::size_t i = 0; i < 16; ++i) q[i / 4][4 * r + i % 4] = static_cast<std::uint8_t>(code[i] | code[16 + i] << 4);
}
// The codes of 32-block b of a row as Codebook<F> has them, and its scales: what pack() needs to know of a format.
struct CodedBlock {
  std::uint8_t code[32];
  int scale[2];
};
inline CodedBlock coded(const IQ4_XS::Block& block, std::size_t b) noexcept {
  CodedBlock to;
  for (std::size_t i = 0; i < 16; ++i) to.code[i] = block.qs[16 * b + i] & 15, to.code[16 + i] = block.qs[16 * b + i] >> 4;
  to.scale[0] = ((block.scales_l[b / 2] >> 4 * (b % 2) & 15) | (block.scales_h[b / 4] >> 2 * (b % 4) & 3) << 4) - 32;
  return to;
}
// A point's coordinates with their signs: code = coordinate + 8 for minus.
inline void put_eight(std::uint16_t point, std::uint32_t signs, std::uint8_t* code) noexcept {
  for (std::size_t i = 0; i < 8; ++i) code[i] = static_cast<std::uint8_t>(coordinate_of_eight(point, i) | (signs >> i & 1) << 3);
}
inline void put_four(std::uint16_t point, std::uint32_t signs, std::uint8_t* code) noexcept {
  for (std::size_t i = 0; i < 4; ++i) code[i] = static_cast<std::uint8_t>(coordinate_of_four(point, i) | (signs >> i & 1) << 3);
}
inline CodedBlock coded(const IQ3_XXS::Block& block, std::size_t b) noexcept {
  CodedBlock to;
  const std::uint32_t word = little_endian(block.signs_and_s[b]);
  for (std::size_t i = 0; i < 8; ++i)
    put_four(iq3_xxs_grid[block.qs[8 * b + i]], even_signs(word >> 7 * (i / 2) & 127) >> 4 * (i % 2), to.code + 4 * i);
  to.scale[0] = static_cast<int>(2 * (word >> 28) + 1);
  return to;
}
inline CodedBlock coded(const IQ3_S::Block& block, std::size_t b) noexcept {
  CodedBlock to;
  for (std::size_t i = 0; i < 8; ++i)
    put_four(iq3_s_grid[block.qs[8 * b + i] | (block.qh[b] >> i & 1u) << 8],
             static_cast<std::uint32_t>(block.signs[4 * b + i / 2]) >> 4 * (i % 2), to.code + 4 * i);
  to.scale[0] = 2 * (block.scales[b / 2] >> 4 * (b % 2) & 15) + 1;
  return to;
}
inline CodedBlock coded(const IQ2_XXS::Block& block, std::size_t b) noexcept {
  CodedBlock to;
  const std::uint32_t word = little_endian(block.qs[b] + 4);
  for (std::size_t i = 0; i < 4; ++i) put_eight(iq2_xxs_grid[block.qs[b][i]], even_signs(word >> 7 * i & 127), to.code + 8 * i);
  to.scale[0] = static_cast<int>(2 * (word >> 28) + 1);
  return to;
}
inline CodedBlock coded(const IQ2_XS::Block& block, std::size_t b) noexcept {
  CodedBlock to;
  for (std::size_t i = 0; i < 4; ++i) {
    const std::uint32_t word = block.qs[4 * b + i][0] | std::uint32_t{block.qs[4 * b + i][1]} << 8;
    put_eight(iq2_xs_grid[word & 511], even_signs(word >> 9), to.code + 8 * i);
  }
  for (int h = 0; h < 2; ++h) to.scale[h] = 2 * (block.scales[b] >> 4 * h & 15) + 1;
  return to;
}
inline CodedBlock coded(const IQ2_S::Block& block, std::size_t b) noexcept {
  CodedBlock to;
  for (std::size_t i = 0; i < 4; ++i)
    put_eight(iq2_s_grid[block.qs[4 * b + i] | (block.qh[b] >> 2 * i & 3u) << 8], block.signs[4 * b + i], to.code + 8 * i);
  for (int h = 0; h < 2; ++h) to.scale[h] = 2 * (block.scales[b] >> 4 * h & 15) + 1;
  return to;
}
inline CodedBlock coded(const IQ1_S::Block& block, std::size_t b) noexcept {
  CodedBlock to;
  const std::uint32_t word = block.qh[b][0] | std::uint32_t{block.qh[b][1]} << 8;
  for (std::size_t i = 0; i < 4; ++i)
    put_eight(iq1_grid[block.qs[4 * b + i] | (word >> 3 * i & 7) << 8], word & 0x8000 ? 255 : 0, to.code + 8 * i);
  to.scale[0] = static_cast<int>(2 * (word >> 12 & 7) + 1);
  return to;
}
inline CodedBlock coded(const IQ1_M::Block& block, std::size_t b) noexcept {
  CodedBlock to;
  const std::uint32_t word = block.scales[b / 2][0] | std::uint32_t{block.scales[b / 2][1]} << 8;
  for (std::size_t i = 0; i < 4; ++i) {
    const std::uint32_t high = static_cast<std::uint32_t>(block.qh[2 * b + i / 2]) >> 4 * (i % 2) & 15;
    put_eight(iq1_grid[block.qs[4 * b + i] | (high & 7) << 8], high & 8 ? 255 : 0, to.code + 8 * i);
  }
  for (std::size_t h = 0; h < 2; ++h) to.scale[h] = static_cast<int>(2 * (word >> (6 * (b % 2) + 3 * h) & 7) + 1);
  return to;
}
// The scale of a block's scales, times what its codebook's values are too large by.
template <class F>
float coded_scale(const typename F::Block& block) noexcept {
  if constexpr (std::is_same_v<F, IQ1_M>) return to_float(IQ1_M::scale_of_scales(block)) * 0.125f;
  else if constexpr (std::is_same_v<F, IQ3_XXS>) return to_float(block.d) * 0.25f;
  else if constexpr (std::is_same_v<F, IQ3_S> || std::is_same_v<F, IQ4_XS>) return to_float(block.d);
  else return to_float(block.d) * 0.125f;
}
template <class F>
  requires requires(const typename F::Block& block) { coded(block, 0); }
void pack(Tile<F>* to, const BlockColumn& rows) noexcept {
  for (std::size_t r = 0; r < tile_rows; ++r) {
    const auto& block = rows.row<typename F::Block>(r);
    to->d[r] = coded_scale<F>(block);
    for (std::size_t b = 0; b < 8; ++b) {
      const CodedBlock c = coded(block, b);
      put_nibbles(c.code, r, to->block[b].q);
      for (std::size_t h = 0; h < std::size(to->block[b].scale); ++h)
        to->block[b].scale[h][r] = static_cast<std::int8_t>(c.scale[h]);
    }
  }
}
inline void pack(Tile<NVFP4>* to, const BlockColumn& rows) noexcept {
  for (std::size_t r = 0; r < tile_rows; ++r) {
    const auto& block = rows.row<NVFP4::Block>(r);
    for (std::size_t b = 0; b < 2; ++b) {
      std::uint8_t code[32];
      for (std::size_t i = 0; i < 32; ++i) code[i] = block.qs[16 * b + 8 * (i / 16) + i % 8] >> 4 * (i % 16 / 8) & 15;
      put_nibbles(code, r, to->block[b].q);
      for (std::size_t h = 0; h < 2; ++h) to->block[b].half_scale[h][r] = to_f16(nvfp4_scale(block.d[2 * b + h]) * 0.5f);
    }
  }
}
// Codes of two bits from a block's values: d times -1, 0, 1 or 2.
inline std::uint8_t two_bit_code(const TQ1_0::Block& block, std::size_t i) noexcept { return TQ1_0::code(block, i); }
inline std::uint8_t two_bit_code(const TQ2_0::Block& block, std::size_t i) noexcept {
  return block.qs[32 * (i / 128) + i % 32] >> 2 * (i % 128 / 32) & 3;
}
inline std::uint8_t two_bit_code(const Q2_0::Block& block, std::size_t i) noexcept { return block.qs[i / 4] >> 2 * (i % 4) & 3; }
template <class F>
  requires requires(const typename F::Block& block) { two_bit_code(block, 0); }
void pack(Tile<F>* to, const BlockColumn& rows) noexcept {
  std::memset(to->q, 0, sizeof to->q);
  for (std::size_t r = 0; r < tile_rows; ++r) {
    const auto& block = rows.row<typename F::Block>(r);
    to->d[r] = block.d;
    for (std::size_t i = 0; i < F::block_size; ++i) {
      const std::size_t s = i % 32 / 4;
      to->q[i / 32][s / 4][4 * r + i % 4] |= static_cast<std::uint8_t>(two_bit_code(block, i) << 2 * (s % 4));
    }
  }
}
inline void pack(Tile<Q1_0>* to, const BlockColumn& rows) noexcept {
  std::memset(to->q, 0, sizeof to->q);
  for (std::size_t r = 0; r < tile_rows; ++r) {
    const auto& block = rows.row<Q1_0::Block>(r);
    to->d[r] = block.d;
    for (std::size_t i = 0; i < 128; ++i)
      to->q[i / 32][4 * r + i % 4] |= static_cast<std::uint8_t>((block.qs[i / 8] >> i % 8 & 1) << i % 32 / 4);
  }
}
inline void pack(Tile<Q8_K>* to, const BlockColumn& rows) noexcept {
  for (std::size_t r = 0; r < tile_rows; ++r) to->d[r] = rows.row<Q8_K::Block>(r).d;
  spread(rows, offsetof(Q8_K::Block, q), 256, to->q[0][0]);
}
inline void pack(Tile<Q2_K>* to, const BlockColumn& rows) noexcept {
  for (std::size_t r = 0; r < tile_rows; ++r) {
    const auto& block = rows.row<Q2_K::Block>(r);
    to->d[r] = block.d, to->negative_dmin[r] = negated(block.dmin);
    for (std::size_t g = 0; g < 16; ++g) to->scale[g][r] = block.scales[g] & 15, to->min[g][r] = block.scales[g] >> 4;
  }
  for (std::size_t f = 0; f < 2; ++f) spread(rows, offsetof(Q2_K::Block, qs) + 32 * f, 32, to->half[f].q[0]);
}
inline void pack(Tile<Q3_K>* to, const BlockColumn& rows) noexcept {
  for (std::size_t r = 0; r < tile_rows; ++r) {
    const auto& block = rows.row<Q3_K::Block>(r);
    to->d[r] = block.d;
    for (std::size_t g = 0; g < 16; ++g) to->scale[g][r] = static_cast<std::int8_t>(q3_k_scale(block.scales, g) - 32);
  }
  std::uint8_t h[8][64];  // bit 4 f + t of a byte is quarter t's of half f
  spread(rows, offsetof(Q3_K::Block, hmask), 32, h[0]);
  for (std::size_t f = 0; f < 2; ++f) {
    for (std::size_t s = 0; s < 4; ++s)
      for (std::size_t i = 0; i < 64; ++i)
        to->half[f].h[s][i] = static_cast<std::uint8_t>((h[2 * s][i] >> 4 * f & 15) | (h[2 * s + 1][i] >> 4 * f & 15) << 4);
    spread(rows, offsetof(Q3_K::Block, qs) + 32 * f, 32, to->half[f].q[0]);
  }
}

}  // namespace detail

/// Packs the tiles [first, first + count) of a [rows, cols] matrix stored in F's blocks into `out`. Rows that are not there
/// become zeros.
template <BlockFormat F>
void pack_tiles(std::span<const std::byte> stored, std::size_t rows, std::size_t cols, std::size_t first, std::size_t count,
                std::byte* out) noexcept {
  using Block = typename F::Block;
  constexpr std::size_t together = detail::packed_together<F>;
  const std::size_t blocks = cols / F::block_size, stride = blocks * sizeof(Block);
  for (std::size_t t = first; t < first + count; ++t) {
    Tile<F>* const tiles = reinterpret_cast<Tile<F>*>(out) + t * blocks;
    const std::byte* const from = stored.data() + t * tile_rows * stride;
    const std::byte* ahead = from + tile_rows * stride;
    const std::size_t there = std::min(tile_rows, rows - t * tile_rows);
    for (std::size_t b = 0; b < blocks; b += together) {
      // Sixteen rows are too many streams for the processor's own prefetcher: the next sixteen are asked for in the file's order.
      for (std::size_t i = 0; i < tile_rows * together * sizeof(Block); i += 64, ahead += 64) __builtin_prefetch(ahead, 0, 2);
      const std::size_t here = std::min(together, blocks - b);
      if (there == tile_rows && here == together) {
        detail::pack(tiles + b, {from + b * sizeof(Block), stride});
        continue;
      }
      Block column[tile_rows][together] = {};
      Tile<F> padded[together];
      for (std::size_t r = 0; r < there; ++r) std::memcpy(column[r], from + r * stride + b * sizeof(Block), here * sizeof(Block));
      detail::pack(padded, {reinterpret_cast<const std::byte*>(column), sizeof column[0]});
      std::memcpy(tiles + b, padded, here * sizeof padded[0]);
    }
  }
}

}  // namespace nihao
