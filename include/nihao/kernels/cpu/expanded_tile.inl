// Expanding tiles, and the register tile that multiplies with them.
namespace nihao::simd {
inline namespace NIHAO_ABI {
namespace NIHAO_ISA_NAMESPACE {

inline constexpr int shared_tiles = tile_tokens >= 8 ? 2 : 1;                          // R: tiles of a register tile
inline constexpr int shared_tokens = tile_tokens >= 8 ? 4 : tile_tokens >= 2 ? 2 : 1;  // T: tokens of it

template <class F>
inline constexpr ExpandedKind expanded_kind = signed_codes<F> ? (has_halves<F>    ? ExpandedKind::signed_halves
                                                                 : has_minimum<F> ? ExpandedKind::signed_with_minimum
                                                                                  : ExpandedKind::signed_bytes)
                                                              : (has_halves<F>    ? ExpandedKind::halves
                                                                 : has_minimum<F> ? ExpandedKind::with_minimum
                                                                                  : ExpandedKind::scaled);

template <class F, int B, int... S>
NIHAO_ALWAYS_INLINE void expand_codes(const Tile<F>& w, std::size_t step, ExpandedBlock& to,
                                      std::integer_sequence<int, S...>) noexcept {
  (store_u8(to.codes[S], codes<B, S>(w, step)), ...);
}
template <class F, int B>
NIHAO_ALWAYS_INLINE void expand_block(const Tile<F>& w, std::size_t step, ExpandedBlock& to) noexcept {
  expand_codes<F, B>(w, step, to, std::make_integer_sequence<int, 8>());
  store(to.scale, half_scale<F, B, 0>(w, step));
  if constexpr (has_halves<F>) store(to.second, half_scale<F, B, 1>(w, step));
  else if constexpr (has_minimum<F>) store(to.second, minimum<F, B>(w, step));
}
// `blocks` blocks of 32 from the tiles at w.
template <class F>
NIHAO_NOINLINE void expand_tiles(const Tile<F>* w, std::size_t blocks, ExpandedBlock* to) noexcept {
  constexpr std::size_t in_tile = F::block_size / activation_block, in_step = step_blocks<F>;
  for (std::size_t n = 0; n < blocks / in_tile; ++n)
    for (std::size_t step = 0; step < in_tile / in_step; ++step, to += in_step) {
      expand_block<F, 0>(w[n], step, to[0]);
      if constexpr (in_step > 1) expand_block<F, 1>(w[n], step, to[1]);
      if constexpr (in_step > 2) expand_block<F, 2>(w[n], step, to[2]), expand_block<F, 3>(w[n], step, to[3]);
    }
}

// A panel of R tiles, and where its sums go.
template <int R>
struct Panel {
  const ExpandedBlock* blocks[R];
  std::size_t first, count;  // 32-blocks of a row
  std::int32_t zero_point;
  float* sums;  // [rows][R][16] of the panels before
  bool is_first, is_last;
  TileOutput out[R];
};

// to[r][t] += four groups of codes, from group First, times the activations of T tokens.
template <ExpandedKind K, int First, int R, int T>
NIHAO_ALWAYS_INLINE void expanded_groups(const ExpandedBlock* const (&w)[R], std::size_t b, const std::int8_t* q,
                                         i32x16 (&to)[R][T]) noexcept {
  NIHAO_UNROLL
  for (int s = First; s < First + 4; ++s) {
    u8x64 c[R];
    NIHAO_UNROLL
    for (int r = 0; r < R; ++r) c[r] = load_u8(w[r][b].codes[s]);
    NIHAO_UNROLL
    for (int t = 0; t < T; ++t) {
      const std::int8_t* a = q + static_cast<std::size_t>(t) * activation_block;
      NIHAO_UNROLL
      for (int r = 0; r < R; ++r) {
        if constexpr (has_signed_codes(K)) to[r][t] = dot_s8(to[r][t], c[r], a, s);
        else to[r][t] = dot_codes(to[r][t], c[r], a, s);
      }
    }
  }
}

template <int R, int T>
NIHAO_ALWAYS_INLINE void start_at(i32x16 (&dot)[R][T], int t, std::int32_t value) noexcept {
  const i32x16 v = set1_i32(value);
  NIHAO_UNROLL
  for (int r = 0; r < R; ++r) dot[r][t] = v;
}

// acc[r][t] += dot[r][t] * (scale[r] * d[t])
template <int R, int T>
NIHAO_ALWAYS_INLINE void add_products(f32x16 (&acc)[R][T], const i32x16 (&dot)[R][T], const f32x16 (&scale)[R],
                                      const float* d) noexcept {
  NIHAO_UNROLL
  for (int t = 0; t < T; ++t) {
    const f32x16 dt = set1(d[t]);
    NIHAO_UNROLL
    for (int r = 0; r < R; ++r) acc[r][t] = fma(to_f32(dot[r][t]), mul(scale[r], dt), acc[r][t]);
  }
}

// Rows [row, row + shared_tokens) of x, of which `there` exist, through one panel.
template <ExpandedKind K, int R>
NIHAO_NOINLINE void expanded_tokens(const Panel<R>& panel, const QuantizedRows& x, std::size_t row, std::size_t there,
                                    float* sums) noexcept {
  constexpr bool halves = has_second_scale(K);
  constexpr int T = shared_tokens;
  f32x16 acc[R][T];
  NIHAO_UNROLL
  for (int t = 0; t < T; ++t) {
    NIHAO_UNROLL
    for (int r = 0; r < R; ++r) acc[r][t] = panel.is_first ? zero() : load(sums + (t * R + r) * 16);
  }
  BlockCursor<QuantizedRows> at(x, row, panel.first);
  for (std::size_t b = 0; b < panel.count; ++b, at.next()) {
    i32x16 dot[R][T];
    f32x16 scale[R], second[R];
    NIHAO_UNROLL
    for (int r = 0; r < R; ++r) {
      scale[r] = load(panel.blocks[r][b].scale);
      if constexpr (adds_minimum(K) || halves) second[r] = load(panel.blocks[r][b].second);
    }
    NIHAO_UNROLL
    for (int t = 0; t < T; ++t) {
      const std::int32_t* s = at.sum + 2 * t;
      start_at(dot, t, K == ExpandedKind::with_minimum ? 0 : -panel.zero_point * (halves ? s[0] : s[0] + s[1]));
    }
    expanded_groups<K, 0>(panel.blocks, b, at.q, dot);
    if constexpr (halves) {
      add_products(acc, dot, scale, at.d);
      NIHAO_UNROLL
      for (int t = 0; t < T; ++t) start_at(dot, t, -panel.zero_point * at.sum[2 * t + 1]);
      expanded_groups<K, 4>(panel.blocks, b, at.q, dot);
      add_products(acc, dot, second, at.d);
    } else {
      expanded_groups<K, 4>(panel.blocks, b, at.q, dot);
      add_products(acc, dot, scale, at.d);
    }
    if constexpr (adds_minimum(K)) {
      NIHAO_UNROLL
      for (int t = 0; t < T; ++t) {
        const f32x16 s = set1(at.d_sum[t]);
        NIHAO_UNROLL
        for (int r = 0; r < R; ++r) acc[r][t] = fma(second[r], s, acc[r][t]);
      }
    }
  }
  NIHAO_UNROLL
  for (int r = 0; r < R; ++r) {
    const f32x16 bias = bias_of(panel.out[r]);
    NIHAO_UNROLL
    for (int t = 0; t < T; ++t) {
      if (!panel.is_last) store(sums + (t * R + r) * 16, acc[r][t]);
      else if (panel.out[r].lanes > 0 && static_cast<std::size_t>(t) < there)
        write_sums(panel.out[r], row + static_cast<std::size_t>(t), bias, acc[r][t]);
    }
  }
}

template <ExpandedKind K, int R>
inline void expanded_rows_of(const Panel<R>& panel, const QuantizedRows& x, std::size_t first, std::size_t count) noexcept {
  constexpr std::size_t T = shared_tokens;
  for (std::size_t i = 0; i < count; i += T)
    expanded_tokens<K>(panel, x, first + i, count - i < T ? count - i : T, panel.sums + i * R * 16);
}

/// Rows [first, first + count) of x times `tiles` (1 or 2) tiles at w, whose columns go to out[0] and out[1]. scratch:
/// expanded_scratch() floats; count <= expanded_rows if x has more columns than a panel.
template <class F>
inline void matmul_expanded(const Tile<F>* w, std::size_t tiles, const QuantizedRows& x, std::size_t first, std::size_t count,
                            const TileOutput* out, float* scratch) noexcept {
  const std::size_t blocks = x.k / activation_block, per_block = F::block_size / activation_block;
  constexpr std::size_t most = shared_tiles;
  for (std::size_t done = 0; done < tiles; done += most) {
    const std::size_t here = tiles - done < most ? tiles - done : most;
    Panel<shared_tiles> panel;
    auto* expanded = reinterpret_cast<ExpandedBlock*>(scratch);
    panel.sums = reinterpret_cast<float*>(expanded + most * expanded_panel);
    panel.zero_point = zero_point<F>;
    for (std::size_t r = 0; r < most; ++r) {
      panel.blocks[r] = expanded + (r < here ? r : 0) * expanded_panel;
      panel.out[r] = out[r < here ? done + r : done];
      if (r >= here) panel.out[r].lanes = 0;  // a tile without a neighbour is multiplied twice, and written once
    }
    for (panel.first = 0; panel.first < blocks; panel.first += expanded_panel) {
      panel.count = blocks - panel.first < expanded_panel ? blocks - panel.first : expanded_panel;
      panel.is_first = panel.first == 0;
      panel.is_last = panel.first + panel.count == blocks;
      for (std::size_t r = 0; r < here; ++r)
        expand_tiles<F>(w + ((done + r) * blocks + panel.first) / per_block, panel.count, expanded + r * expanded_panel);
      expanded_rows_of<expanded_kind<F>>(panel, x, first, count);
    }
  }
}

}  // namespace NIHAO_ISA_NAMESPACE
}  // namespace NIHAO_ABI
}  // namespace nihao::simd
