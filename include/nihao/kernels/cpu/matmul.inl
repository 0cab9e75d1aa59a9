// The matmul on tiles: one order of sums for one token and for many, so that both give the same bits.
namespace nihao::simd {
inline namespace NIHAO_ABI {
namespace NIHAO_ISA_NAMESPACE {

// --- codes<B, S>(tile, step): the codes of group S of 32-block B of a step, as bytes below 128 (for Q8_0: signed bytes) -------

// How many 32-blocks are written out, so that every shift is a constant; a tile of 256 is a loop of such steps.
template <class F>
concept HasBlocks = requires(const Tile<F>& w) { w.block; };  // one 32-block after the other, each with its scales
template <class F>
inline constexpr std::size_t step_blocks = F::block_size == 256 && !HasBlocks<F> ? 2 : 1;
template <>
inline constexpr std::size_t step_blocks<Q6_K> = 4;
template <>
inline constexpr std::size_t step_blocks<Q2_K> = 4;
template <>
inline constexpr std::size_t step_blocks<Q3_K> = 4;
template <>
inline constexpr std::size_t step_blocks<TQ1_0> = 1;
template <>
inline constexpr std::size_t step_blocks<TQ2_0> = 1;
template <>
inline constexpr std::size_t step_blocks<Q8_K> = 1;

template <int Half>
NIHAO_ALWAYS_INLINE u8x64 nibbles(const std::uint8_t* q) noexcept {
  if constexpr (Half == 0) return bit_and(load_u8(q), set1_u8(15));
  else return bit_and(shr16<4>(load_u8(q)), set1_u8(15));
}
// Bits [From, From + Count) of each byte, moved to bit 4 and up.
template <int From, int Count>
NIHAO_ALWAYS_INLINE u8x64 upper_bits(const std::uint8_t* h) noexcept {
  const u8x64 mask = set1_u8(((1 << Count) - 1) << 4);
  if constexpr (From < 4) return bit_and(shl16<4 - From>(load_u8(h)), mask);
  else if constexpr (From == 4) return bit_and(load_u8(h), mask);
  else return bit_and(shr16<From - 4>(load_u8(h)), mask);
}

template <int B, int S>
NIHAO_ALWAYS_INLINE u8x64 codes(const Tile<Q4_0>& w, std::size_t) noexcept {
  return nibbles<S / 4>(w.q[S % 4]);
}
template <int B, int S>
NIHAO_ALWAYS_INLINE u8x64 codes(const Tile<Q4_1>& w, std::size_t) noexcept {
  return nibbles<S / 4>(w.q[S % 4]);
}
template <int B, int S>
NIHAO_ALWAYS_INLINE u8x64 codes(const Tile<INT4>& w, std::size_t) noexcept {
  return nibbles<S / 4>(w.q[S % 4]);
}
template <int B, int S>
NIHAO_ALWAYS_INLINE u8x64 codes(const Tile<Q5_0>& w, std::size_t) noexcept {
  return bit_or(nibbles<S / 4>(w.q[S % 4]), upper_bits<S, 1>(w.h));
}
template <int B, int S>
NIHAO_ALWAYS_INLINE u8x64 codes(const Tile<Q5_1>& w, std::size_t) noexcept {
  return bit_or(nibbles<S / 4>(w.q[S % 4]), upper_bits<S, 1>(w.h));
}
template <int B, int S>
NIHAO_ALWAYS_INLINE u8x64 codes(const Tile<Q8_0>& w, std::size_t) noexcept {
  return load_u8(w.q[S]);
}
template <int B, int S>
NIHAO_ALWAYS_INLINE u8x64 codes(const Tile<INT8>& w, std::size_t) noexcept {
  return load_u8(w.q[S]);
}
template <int B, int S>
NIHAO_ALWAYS_INLINE u8x64 codes(const Tile<Q4_K>& w, std::size_t step) noexcept {
  return nibbles<B>(w.pair[step].q[S]);
}
template <int B, int S>
NIHAO_ALWAYS_INLINE u8x64 codes(const Tile<Q5_K>& w, std::size_t step) noexcept {
  return bit_or(nibbles<B>(w.pair[step].q[S]), upper_bits<2 * (S / 2) + B, 1>(w.pair[step].h[S % 2]));
}
template <int B, int S>
NIHAO_ALWAYS_INLINE u8x64 codes(const Tile<Q6_K>& w, std::size_t step) noexcept {
  const auto& group = w.half[step].group[S];
  return bit_or(nibbles<B / 2>(group.q[B % 2]), upper_bits<2 * B, 2>(group.h));
}

// What the sixteen codes of a format stand for, as bytes: less zero_point<F>, or signed.
template <class F>
struct Codebook;
template <>
struct Codebook<IQ4_NL> {
  static constexpr std::uint8_t values[16] = {129, 152, 173, 191, 207, 221, 234, 246, 1, 13, 25, 38, 53, 69, 89, 113};
};
template <>
struct Codebook<IQ4_XS> : Codebook<IQ4_NL> {};
template <>
struct Codebook<MXFP4> {  // twice the value, plus 12
  static constexpr std::uint8_t values[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};
};
template <>
struct Codebook<NVFP4> : Codebook<MXFP4> {};
// The magnitudes of a grid, then the same negated; code = magnitude's index + 8 for minus.
template <>
struct Codebook<IQ3_XXS> {
  static constexpr std::uint8_t values[16] = {4, 12, 20, 28, 36, 44, 52, 62, 252, 244, 236, 228, 220, 212, 204, 194};
};
template <>
struct Codebook<IQ3_S> {
  static constexpr std::uint8_t values[16] = {1, 3, 5, 7, 9, 11, 13, 15, 255, 253, 251, 249, 247, 245, 243, 241};
};
template <>
struct Codebook<IQ2_XXS> {
  static constexpr std::uint8_t values[16] = {8, 25, 43, 0, 0, 0, 0, 0, 248, 231, 213, 0, 0, 0, 0, 0};
};
template <>
struct Codebook<IQ2_XS> : Codebook<IQ2_XXS> {};
template <>
struct Codebook<IQ2_S> : Codebook<IQ2_XXS> {};
template <>
struct Codebook<IQ1_S> {  // eight times -1, 0, 1 plus the shift of 1/8, then less it
  static constexpr std::uint8_t values[16] = {249, 1, 9, 0, 0, 0, 0, 0, 247, 255, 7, 0, 0, 0, 0, 0};
};
template <>
struct Codebook<IQ1_M> : Codebook<IQ1_S> {};

template <int B, int S>
NIHAO_ALWAYS_INLINE u8x64 codes(const Tile<IQ4_NL>& w, std::size_t) noexcept {
  return lookup(Codebook<IQ4_NL>::values, nibbles<S / 4>(w.q[S % 4]));
}
template <int B, int S>
NIHAO_ALWAYS_INLINE u8x64 codes(const Tile<MXFP4>& w, std::size_t) noexcept {
  return lookup(Codebook<MXFP4>::values, nibbles<S / 4>(w.q[S % 4]));
}
template <int B, int S, class F>
  requires HasBlocks<F>
NIHAO_ALWAYS_INLINE u8x64 codes(const Tile<F>& w, std::size_t step) noexcept {
  return lookup(Codebook<F>::values, nibbles<S / 4>(w.block[step].q[S % 4]));
}
// Bits 2 N and 2 N + 1 of each byte.
template <int N>
NIHAO_ALWAYS_INLINE u8x64 two_bits(const std::uint8_t* q) noexcept {
  if constexpr (N == 0) return bit_and(load_u8(q), set1_u8(3));
  else return bit_and(shr16<2 * N>(load_u8(q)), set1_u8(3));
}
template <int B, int S>
NIHAO_ALWAYS_INLINE u8x64 codes(const Tile<TQ1_0>& w, std::size_t step) noexcept {
  return two_bits<S % 4>(w.q[step][S / 4]);
}
template <int B, int S>
NIHAO_ALWAYS_INLINE u8x64 codes(const Tile<TQ2_0>& w, std::size_t step) noexcept {
  return two_bits<S % 4>(w.q[step][S / 4]);
}
template <int B, int S>
NIHAO_ALWAYS_INLINE u8x64 codes(const Tile<Q2_0>& w, std::size_t step) noexcept {
  return two_bits<S % 4>(w.q[step][S / 4]);
}
template <int B, int S>
NIHAO_ALWAYS_INLINE u8x64 codes(const Tile<Q1_0>& w, std::size_t step) noexcept {  // 0 or 2, around 1
  const u8x64 two = set1_u8(2), q = load_u8(w.q[step]);
  if constexpr (S == 0) return bit_and(shl16<1>(q), two);
  else if constexpr (S == 1) return bit_and(q, two);
  else return bit_and(shr16<S - 1>(q), two);
}
template <int B, int S>
NIHAO_ALWAYS_INLINE u8x64 codes(const Tile<Q8_K>& w, std::size_t step) noexcept {
  return load_u8(w.q[step][S]);
}
template <int B, int S>
NIHAO_ALWAYS_INLINE u8x64 codes(const Tile<Q2_K>& w, std::size_t step) noexcept {
  return two_bits<B>(w.half[step].q[S]);
}
template <int B, int S>
NIHAO_ALWAYS_INLINE u8x64 codes(const Tile<Q3_K>& w, std::size_t step) noexcept {
  constexpr int bit = B + S % 2 * 4;  // to bit 2
  const u8x64 h = load_u8(w.half[step].h[S / 2]), third = set1_u8(4);
  const u8x64 low = two_bits<B>(w.half[step].q[S]);
  if constexpr (bit < 2) return bit_or(low, bit_and(shl16<2 - bit>(h), third));
  else if constexpr (bit == 2) return bit_or(low, bit_and(h, third));
  else return bit_or(low, bit_and(shr16<bit - 2>(h), third));
}

// --- dot products of one group of codes with T tokens ------------------------------------------------------------------------

template <class F>
inline constexpr bool signed_codes = HasBlocks<F> && !std::is_same_v<F, NVFP4>;
template <>
inline constexpr bool signed_codes<Q8_0> = true;
template <>
inline constexpr bool signed_codes<Q8_K> = true;
template <>
inline constexpr bool signed_codes<INT8> = true;
template <>
inline constexpr bool signed_codes<IQ4_NL> = true;

// Whether the arithmetic of a tile takes longer than reading it. Then the processor's own prefetcher, which follows what is read,
// is not far enough ahead of it, and without help a tile takes the time of both. (Where reading takes longer, asking only
// disturbs.)
template <class F, int T>
inline constexpr bool outlasts_reading = T * tile_rows * F::block_size > 2 * sizeof(Tile<F>);

// Group G of a step's 8 * step_blocks<F>: asks for its share of the lines of a later tile's same step, into the second-level
// cache, for the first has too few lines under way at a time.
template <class F, int G>
NIHAO_ALWAYS_INLINE void prefetch_share(const Tile<F>& w, std::size_t step) noexcept {
  constexpr std::size_t read_ahead = std::size_t{12} << 10, groups = 8 * step_blocks<F>,
                        bytes = sizeof(Tile<F>) * step_blocks<F> * activation_block / F::block_size, lines = (bytes + 63) / 64;
  constexpr std::size_t ahead = (read_ahead + sizeof(Tile<F>) - 1) / sizeof(Tile<F>) * sizeof(Tile<F>);
  const std::uintptr_t from =
      reinterpret_cast<std::uintptr_t>(&w) + ahead + step * bytes;  // may lie beyond the weight: no pointer
  NIHAO_UNROLL
  for (std::size_t i = G * lines / groups; i < (G + 1) * lines / groups; ++i)
    __builtin_prefetch(reinterpret_cast<const void*>(from + 64 * i), 0, 2);
}

template <class F, int B, int S, int T>
NIHAO_ALWAYS_INLINE void group(const Tile<F>& w, std::size_t step, const std::int8_t* q, i32x16 (&sum)[T]) noexcept {
  const u8x64 c = codes<B, S>(w, step);
  if constexpr (outlasts_reading<F, T>) prefetch_share<F, 8 * B + S>(w, step);
  NIHAO_UNROLL
  for (int t = 0; t < T; ++t) {
    const std::int8_t* a = q + static_cast<std::size_t>(t) * activation_block;
    if constexpr (signed_codes<F>) sum[t] = dot_s8(sum[t], c, a, S);
    else sum[t] = dot_codes(sum[t], c, a, S);
  }
}

// What is subtracted from every code: applied as an integer, through the sums of the activations.
template <class F>
inline constexpr std::int32_t zero_point = signed_codes<F> ? s8_bias : 0;
template <>
inline constexpr std::int32_t zero_point<Q4_0> = 8;
template <>
inline constexpr std::int32_t zero_point<Q5_0> = 16;
template <>
inline constexpr std::int32_t zero_point<Q6_K> = 32;
template <>
inline constexpr std::int32_t zero_point<Q3_K> = 4;
template <>
inline constexpr std::int32_t zero_point<MXFP4> = 12;
template <>
inline constexpr std::int32_t zero_point<NVFP4> = 12;
template <>
inline constexpr std::int32_t zero_point<TQ1_0> = 1;
template <>
inline constexpr std::int32_t zero_point<TQ2_0> = 1;
template <>
inline constexpr std::int32_t zero_point<Q2_0> = 1;
template <>
inline constexpr std::int32_t zero_point<Q1_0> = 1;

// Whether sixteen columns have a scale of their own.
template <class F>
inline constexpr bool has_halves = requires(const Tile<F>& w) { w.scale; } || requires(const Tile<F>& w) {
  w.block[0].half_scale;
} || requires(const Tile<F>& w) { requires(sizeof(w.block[0].scale) > 16); };

// Where a sum of codes times activations starts, the activations' own sum being given.
template <class F>
NIHAO_ALWAYS_INLINE i32x16 start_of(std::int32_t activations) noexcept {
  return zero_point<F> == 0 ? zero_i32() : set1_i32(-zero_point<F> * activations);
}

// acc[t] += sum * scale * d[Stride t]
template <int Stride, int T>
NIHAO_ALWAYS_INLINE void add_scaled(f32x16 (&acc)[T], const i32x16 (&sum)[T], f32x16 scale, const float* d) noexcept {
  NIHAO_UNROLL
  for (int t = 0; t < T; ++t) acc[t] = fma(to_f32(sum[t]), mul(scale, set1(d[Stride * t])), acc[t]);
}

// The scale of sixteen columns, half H of 32-block B of a step.
template <class F, int B, int H>
NIHAO_ALWAYS_INLINE f32x16 half_scale(const Tile<F>& w, std::size_t step) noexcept {
  if constexpr (requires { w.pair; }) return mul(load(w.d), load(w.pair[step].scale[B]));
  else if constexpr (requires { w.scale; }) return mul(load(w.d), load(w.scale[2 * (step * step_blocks<F> + B) + H]));
  else if constexpr (requires { w.block[0].half_scale; }) return load(w.block[step].half_scale[H]);
  else if constexpr (requires { w.block; }) return mul(load(w.d), load(w.block[step].scale[has_halves<F> ? H : 0]));
  else if constexpr (requires { w.e; })  // 2^(e - 128), and 0 for the two that would be subnormal
    return from_bits(shl<23>(bits(add(max(load(w.e), set1(1.0f)), set1(8388607.0f)))));
  else return load(w.d);
}

// What is added to the sum of d * codes for each 32-block B of a step; a minimum of sixteen columns (`min`) is another thing.
template <class F>
inline constexpr bool has_minimum =
    requires(const Tile<F>& w) { w.m; } || requires(const Tile<F>& w) { w.negative_z; } || requires(const Tile<F>& w) { w.pair; };
template <class F, int B>
NIHAO_ALWAYS_INLINE f32x16 minimum(const Tile<F>& w, std::size_t step) noexcept {
  if constexpr (requires { w.m; }) return load(w.m);
  else if constexpr (requires { w.negative_z; }) return mul(load(w.d), load(w.negative_z));
  else return mul(load(w.negative_dmin), load(w.pair[step].min[B]));
}

// Group S of blocks B + Nth of a step.
template <class F, int B, int S, int T, class X, std::size_t N, int... Nth>
NIHAO_ALWAYS_INLINE void groups(const Tile<F>& w, std::size_t step, const BlockCursor<X> (&x)[N], i32x16 (&sum)[N][T],
                                std::integer_sequence<int, Nth...>) noexcept {
  (group<F, B + Nth, S, T>(w, step, x[Nth].q, sum[Nth]), ...);
}
// All groups of blocks [B, B + N), the upper four to `upper`.
template <class F, int B, int T, class X, std::size_t N, int... S>
NIHAO_ALWAYS_INLINE void all_groups(const Tile<F>& w, std::size_t step, const BlockCursor<X> (&x)[N], i32x16 (&lower)[N][T],
                                    i32x16 (&upper)[N][T], std::integer_sequence<int, S...>) noexcept {
  (groups<F, B, S, T>(w, step, x, S < 4 ? lower : upper, std::make_integer_sequence<int, static_cast<int>(N)>()), ...);
}

// acc += what the sums of block B of a step come to: of its two halves, or, where `upper` is not used, of all of it.
template <class F, int B, bool Halves, int T, class X>
NIHAO_ALWAYS_INLINE void add_block(const Tile<F>& w, std::size_t step, const BlockCursor<X>& x, const i32x16 (&sum)[T],
                                   const i32x16 (&upper)[T], f32x16 (&acc)[T]) noexcept {
  add_scaled<X::scales>(acc, sum, half_scale<F, B, 0>(w, step), x.d);
  if constexpr (Halves) add_scaled<X::scales>(acc, upper, half_scale<F, B, 1>(w, step), x.d + X::scales - 1);
  // A minimum of the block: min * (the sum of d * q), negated.
  if constexpr (requires { w.min; }) {  // of each half
    const std::size_t b = 2 * (step * step_blocks<F> + B);
    const f32x16 dmin = load(w.negative_dmin), lower_min = mul(dmin, load(w.min[b])), upper_min = mul(dmin, load(w.min[b + 1]));
    NIHAO_UNROLL
    for (int t = 0; t < T; ++t) {
      const float* d = x.d + static_cast<std::ptrdiff_t>(X::scales) * t;
      acc[t] = fma(lower_min, set1(d[0] * static_cast<float>(x.sum[2 * t])), acc[t]);
      acc[t] = fma(upper_min, set1(d[X::scales - 1] * static_cast<float>(x.sum[2 * t + 1])), acc[t]);
    }
  } else if constexpr (has_minimum<F>) {
    const f32x16 min = minimum<F, B>(w, step);
    NIHAO_UNROLL
    for (int t = 0; t < T; ++t) acc[t] = fma(min, set1(x.d_sum[t]), acc[t]);
  }
}
template <class F, int B, bool Halves, int T, class X, std::size_t N, int... Nth>
NIHAO_ALWAYS_INLINE void add_blocks(const Tile<F>& w, std::size_t step, const BlockCursor<X> (&x)[N], const i32x16 (&sum)[N][T],
                                    const i32x16 (&upper)[N][T], f32x16 (&acc)[T], std::integer_sequence<int, Nth...>) noexcept {
  (add_block<F, B + Nth, Halves>(w, step, x[Nth], sum[Nth], upper[Nth], acc), ...);
}

// Blocks [B, B + N) of a step with T tokens from x, which then moves on. Sixteen columns at a time where weights or activations
// have a scale for each sixteen.
template <class F, int B, int N, int T, class X>
NIHAO_ALWAYS_INLINE void blocks(const Tile<F>& w, std::size_t step, BlockCursor<X>& x, f32x16 (&acc)[T]) noexcept {
  constexpr bool halves = X::scales == 2 || has_halves<F>;
  BlockCursor<X> at[N];
  i32x16 sum[N][T], upper[N][T];
  NIHAO_UNROLL
  for (int i = 0; i < N; ++i, x.next()) {
    at[i] = x;
    NIHAO_UNROLL
    for (int t = 0; t < T; ++t) {
      const std::int32_t* s = x.sum + 2 * t;
      sum[i][t] = start_of<F>(halves ? s[0] : s[0] + s[1]);
      if constexpr (halves) upper[i][t] = start_of<F>(s[1]);
    }
  }
  all_groups<F, B, T>(w, step, at, sum, halves ? upper : sum, std::make_integer_sequence<int, 8>());
  add_blocks<F, B, halves>(w, step, at, sum, upper, acc, std::make_integer_sequence<int, N>());
}

// Blocks of a step that are taken together, for they share their bytes: all, if their sums fit the registers. Every line is then
// loaded once, in the order of the addresses, which is what a prefetcher follows. Block by block one of two (Q4_K) or four (Q6_K)
// reads no new line, and one row of x took up to 1.4 times as long.
template <class F, int T>
inline constexpr int blocks_at_once = int{step_blocks<F>} * T <= 2 * tile_tokens ? int{step_blocks<F>} : 1;

// --- a tile of sixteen rows with T tokens ------------------------------------------------------------------------------------

template <class F, int T, class X>
NIHAO_ALWAYS_INLINE void tile_dot(const Tile<F>* w, const X& x, std::size_t first, f32x16 (&acc)[T]) noexcept {
  const std::size_t tiles = x.k / F::block_size;
  BlockCursor<X> at(x, first, 0);
  for (std::size_t n = 0; n < tiles; ++n) {
    for (std::size_t step = 0; step < F::block_size / activation_block / step_blocks<F>; ++step) {
      constexpr int at_once = blocks_at_once<F, T>;
      blocks<F, 0, at_once>(w[n], step, at, acc);
      if constexpr (step_blocks<F> > 1 && at_once == 1) blocks<F, 1, 1>(w[n], step, at, acc);
      if constexpr (step_blocks<F> > 2 && at_once == 1)
        blocks<F, 2, 1>(w[n], step, at, acc), blocks<F, 3, 1>(w[n], step, at, acc);
    }
  }
}
// acc[t] += a column of sixteen rows times x[Stride t]
template <int T>
NIHAO_ALWAYS_INLINE void add_column(f32x16 (&acc)[T], f32x16 column, const float* x, std::size_t stride) noexcept {
  NIHAO_UNROLL
  for (int t = 0; t < T; ++t) acc[t] = fma(column, set1(x[static_cast<std::size_t>(t) * stride]), acc[t]);
}
template <class F, int T>
  requires(F::block_size == 1)
NIHAO_ALWAYS_INLINE void tile_dot(const Tile<F>* w, const FloatRows& x, std::size_t first, f32x16 (&acc)[T]) noexcept {
  const float* rows = x.data + first * x.stride;
  for (std::size_t k = 0; k < x.k; ++k) add_column(acc, load(w[k].w), rows + k, x.stride);
}
// Codes that are floats, or levels: a block's sum, times its scale. The sums of neighbouring blocks do not wait for each other,
// as one sum from the first column to the last would.
template <class F, int T>
  requires(F::block_size == 32)
NIHAO_ALWAYS_INLINE void tile_dot(const Tile<F>* w, const FloatRows& x, std::size_t first, f32x16 (&acc)[T]) noexcept {
  const float* row = x.data + first * x.stride;
  for (std::size_t b = 0; b < x.k / 32; ++b, row += 32) {
    f32x16 d = load(w[b].d), sum[T];
    NIHAO_UNROLL
    for (int t = 0; t < T; ++t) sum[t] = zero();
    if constexpr (std::is_same_v<F, NF4>) {
      for (std::size_t i = 0; i < 16; ++i) add_column(sum, lookup_nibbles<0>(NF4::levels, w[b].q[i]), row + i, x.stride);
      for (std::size_t i = 0; i < 16; ++i) add_column(sum, lookup_nibbles<1>(NF4::levels, w[b].q[i]), row + 16 + i, x.stride);
    } else if constexpr (std::is_same_v<F, FP8_E4M3>) {
      d = mul(d, set1(256.0f));
      for (std::size_t i = 0; i < 32; ++i) add_column(sum, load_256ths(w[b].q[i]), row + i, x.stride);
    } else {
      for (std::size_t i = 0; i < 32; ++i) add_column(sum, load(w[b].q[i]), row + i, x.stride);
    }
    NIHAO_UNROLL
    for (int t = 0; t < T; ++t) acc[t] = fma(sum[t], d, acc[t]);
  }
}

// Row `row` of x's sum y to where it goes.
NIHAO_ALWAYS_INLINE void write_sums(const TileOutput& out, std::size_t row, f32x16 bias, f32x16 y) noexcept {
  const bool whole = out.lanes == 16;
  float* to = out.data + row * out.stride;
  if (out.scale != 1.0f) y = mul(y, set1(out.scale));
  if (out.bias != nullptr) y = add(y, bias);
  if (out.accumulate) y = add(whole ? load(to) : load(to, out.lanes), y);
  if (whole) store(to, y);
  else store(to, y, out.lanes);
}
NIHAO_ALWAYS_INLINE f32x16 bias_of(const TileOutput& out) noexcept {
  return out.bias == nullptr ? zero() : out.lanes == 16 ? load(out.bias) : load(out.bias, out.lanes);
}

template <class F, int T, class X>
NIHAO_NOINLINE void tile_tokens_block(const Tile<F>* w, const X& x, std::size_t first, const TileOutput& out) noexcept {
  f32x16 acc[T];
  NIHAO_UNROLL
  for (int t = 0; t < T; ++t) acc[t] = zero();
  tile_dot<F, T>(w, x, first, acc);
  const f32x16 bias = bias_of(out);
  NIHAO_UNROLL
  for (int t = 0; t < T; ++t) write_sums(out, first + static_cast<std::size_t>(t), bias, acc[t]);
}

/// Rows [first, first + count) of x times the sixteen rows at w, to `out`. For many rows of integers see expanded_tile.hpp.
template <class F, class X>
inline void matmul_tile(const Tile<F>* w, const X& x, std::size_t first, std::size_t count, const TileOutput& out) noexcept {
  const std::size_t end = first + count;
  if constexpr (tile_tokens >= 8)
    for (; first + 8 <= end; first += 8) tile_tokens_block<F, 8>(w, x, first, out);
  if constexpr (tile_tokens >= 4)
    for (; first + 4 <= end; first += 4) tile_tokens_block<F, 4>(w, x, first, out);
  if constexpr (tile_tokens >= 2)
    for (; first + 2 <= end; first += 2) tile_tokens_block<F, 2>(w, x, first, out);
  for (; first < end; ++first) tile_tokens_block<F, 1>(w, x, first, out);
}

}  // namespace NIHAO_ISA_NAMESPACE
}  // namespace NIHAO_ABI
}  // namespace nihao::simd
