// Attention for one instruction set: expanding stored keys and values, scoring a tile, the online softmax.
namespace nihao::simd {
inline namespace NIHAO_ABI {
namespace NIHAO_ISA_NAMESPACE {

// --- stored keys and values to floats ----------------------------------------------------------------------------------------

template <class T>
NIHAO_ALWAYS_INLINE void widen(const void* from, std::size_t n, float* to) noexcept {  // n is a multiple of 16
  const T* p = static_cast<const T*>(from);
  for (std::size_t i = 0; i < n; i += 16) store(to + i, load(p + i));
}

// Keys of one block: [d][16] floats.
inline void expand_keys(const KvPart& kind, const std::byte* part, float* to) noexcept {
  const std::size_t n = kind.width * kv_block;
  switch (kind.type) {
    case KvType::f32: return widen<float>(part, n, to);
    case KvType::f16: return widen<f16>(part, n, to);
    case KvType::bf16: return widen<bf16>(part, n, to);
    case KvType::q8_0: break;
  }
  const f16* scales = reinterpret_cast<const f16*>(part);
  const std::int8_t* codes = reinterpret_cast<const std::int8_t*>(part + kind.scales() * kv_block * 2);
  for (std::size_t i = 0; i < kind.width; ++i) store(to + i * 16, mul(load(scales + i / 32 * 16), load(codes + i * 16)));
}

// Values of one block: [16][padded] floats. Padding is left as it is: no lane of it is ever stored.
template <class T>
NIHAO_ALWAYS_INLINE void expand_value_rows(const std::byte* part, std::size_t d, std::size_t padded, float* to) noexcept {
  const T* from = reinterpret_cast<const T*>(part);
  if (padded == d) return widen<T>(from, kv_block * d, to);
  for (std::size_t p = 0; p < kv_block; ++p)
    for (std::size_t i = 0; i < d; ++i) to[p * padded + i] = to_float(from[p * d + i]);
}
inline void expand_values(const KvPart& kind, const std::byte* part, std::size_t padded, float* to) noexcept {
  const std::size_t d = kind.width;
  switch (kind.type) {
    case KvType::f32: return expand_value_rows<float>(part, d, padded, to);
    case KvType::f16: return expand_value_rows<f16>(part, d, padded, to);
    case KvType::bf16: return expand_value_rows<bf16>(part, d, padded, to);
    case KvType::q8_0: break;
  }
  const f16* scales = reinterpret_cast<const f16*>(part);
  const std::int8_t* codes = reinterpret_cast<const std::int8_t*>(part + kind.scales() * kv_block * 2);
  for (std::size_t p = 0; p < kv_block; ++p)
    for (std::size_t g = 0; g < kind.scales(); ++g) {
      const float scale = to_float(scales[g * kv_block + p]);
      std::size_t i = g * 32;
      const std::size_t end = i + 32 < d ? i + 32 : d;
      for (; i + 16 <= end; i += 16) store(to + p * padded + i, mul(set1(scale), load(codes + p * d + i)));
      for (; i < end; ++i) to[p * padded + i] = scale * static_cast<float>(codes[p * d + i]);
    }
}

// The same from expanded keys, whose first values they are.
inline void values_of_keys(const float* keys, std::size_t d, std::size_t padded, float* to) noexcept {
  for (std::size_t i = 0; i < d; ++i)
    for (std::size_t p = 0; p < kv_block; ++p) to[p * padded + i] = keys[i * kv_block + p];
}

// --- a tile of 64 positions: where its keys and values come from --------------------------------------------------------------
// key(b, i): value i of the keys of block b's sixteen positions. value(p, i): values [i, i + 16) of position p.

// As floats, for many query rows: the conversion is paid once.
struct ExpandedTile {
  const float *keys, *values;  // [4][d][16], [64][padded]
  std::size_t d, padded;
  NIHAO_ALWAYS_INLINE f32x16 key(std::size_t b, std::size_t i) const noexcept { return load(keys + (b * d + i) * 16); }
  NIHAO_ALWAYS_INLINE f32x16 value(std::size_t p, std::size_t i) const noexcept { return load(values + p * padded + i); }
};

// As the cache has them, for few query rows: each value is read once. Widths are multiples of 16. What is read asks for the same
// of the next tile: a block is a page or two, too short for the processor to see a stream.
struct StoredBlocks {
  const std::byte *keys[attention_tile / kv_block], *next[attention_tile / kv_block];
  std::size_t key_bytes;  // after which the values come
  std::size_t d, value_width;

  NIHAO_ALWAYS_INLINE const std::byte* values(std::size_t p) const noexcept { return keys[p / kv_block] + key_bytes; }
  NIHAO_ALWAYS_INLINE void ask(std::size_t b, const void* read) const noexcept {
    __builtin_prefetch(next[b] + (static_cast<const std::byte*>(read) - keys[b]), 0, 2);
  }
};
template <class T>
struct StoredTile : StoredBlocks {
  NIHAO_ALWAYS_INLINE f32x16 key(std::size_t b, std::size_t i) const noexcept {
    const T* from = reinterpret_cast<const T*>(keys[b]) + i * 16;
    ask(b, from);
    return load(from);
  }
  NIHAO_ALWAYS_INLINE f32x16 value(std::size_t p, std::size_t i) const noexcept {
    const T* from = reinterpret_cast<const T*>(values(p)) + p % kv_block * value_width + i;
    ask(p / kv_block, from);
    return load(from);
  }
};
template <>
struct StoredTile<std::int8_t> : StoredBlocks {  // q8_0
  NIHAO_ALWAYS_INLINE static const std::int8_t* codes(const std::byte* part, std::size_t width) noexcept {
    return reinterpret_cast<const std::int8_t*>(part + (width + 31) / 32 * kv_block * sizeof(f16));
  }
  NIHAO_ALWAYS_INLINE f32x16 key(std::size_t b, std::size_t i) const noexcept {
    const std::int8_t* from = codes(keys[b], d) + i * 16;
    ask(b, from);
    return mul(load(reinterpret_cast<const f16*>(keys[b]) + i / 32 * 16), load(from));
  }
  NIHAO_ALWAYS_INLINE f32x16 value(std::size_t p, std::size_t i) const noexcept {
    const std::int8_t* from = codes(values(p), value_width) + p % kv_block * value_width + i;
    ask(p / kv_block, from);
    return mul(set1(to_float(reinterpret_cast<const f16*>(values(p))[i / 32 * kv_block + p % kv_block])), load(from));
  }
};

// --- one tile of 64 positions with R query rows ------------------------------------------------------------------------------

// Query rows that share a register tile, and sums in flight: enough of them that no multiply-add waits for the one before.
inline constexpr int most_rows = tile_tokens >= 8 ? 8 : tile_tokens >= 2 ? 4 : 1;
inline constexpr int most_sums = tile_tokens >= 8 ? 16 : tile_tokens >= 2 ? 4 : 1;
template <int R>
inline constexpr int vectors_at_once = most_sums / R < 1   ? 1
                                       : most_sums / R > 4 ? 4
                                                           : most_sums / R;

// Where a worker keeps what it needs for up to attention_rows query rows.
struct AttentionState {
  std::size_t q_stride, padded;           // widths of queries and of sums, padded to whole vectors
  float *keys, *values;                   // one expanded tile: [4][d][16], [64][padded]
  float* scores;                          // [8][64]
  float* q;                               // [rows][q_stride] scaled queries
  float *sum, *most, *total;              // of this split: [rows][padded], [rows], [rows]
  float *all_sum, *all_most, *all_total;  // of all splits
  AttentionTile* tiles = nullptr;         // [rows][tile_stride]: where this tile's entry goes, or nobody watches
  std::size_t tile_stride = 0;

  // scratch: attention_scratch() floats.
  AttentionState(float* scratch, const AttentionShape& shape) noexcept
      : q_stride((shape.head_dim + 15) / 16 * 16),
        padded((shape.value_width() + 15) / 16 * 16),
        keys(scratch),
        values(keys + attention_tile * q_stride),
        scores(values + attention_tile * padded),
        q(scores + 8 * attention_tile),
        sum(q + attention_rows * q_stride),
        most(sum + 2 * attention_rows * padded),
        total(most + attention_rows),
        all_sum(sum + attention_rows * padded),
        all_most(total + attention_rows),
        all_total(all_most + attention_rows) {}
};

// Which positions of a tile R rows see: row r those in [low[r], high[r]). Any row sees [first, end) at most, all rows see
// [all_from, all_to). Between the two a row leaves out what it does not see: a score of 0 would not do, where a value is not
// finite.
template <int R>
struct Visible {
  std::int32_t low[R], high[R], first, end, all_from, all_to;

  NIHAO_ALWAYS_INLINE void find() noexcept {
    first = static_cast<std::int32_t>(attention_tile), end = 0, all_from = 0, all_to = first;
    for (int r = 0; r < R; ++r) {
      if (low[r] < high[r]) {
        first = low[r] < first ? low[r] : first, end = high[r] > end ? high[r] : end;
        all_from = low[r] > all_from ? low[r] : all_from, all_to = high[r] < all_to ? high[r] : all_to;
      } else {
        all_to = 0;
      }
    }
    if (all_from >= all_to) all_from = all_to = end;
  }
};

// scores[r][16 b + lane] = q[r] . key, for V blocks from `b`.
template <int R, int V, class Tile>
NIHAO_ALWAYS_INLINE void score_blocks(const Tile& tile, std::size_t b, const float* q, std::size_t padded,
                                      float* scores) noexcept {
  f32x16 acc[R][V];
  NIHAO_UNROLL
  for (int r = 0; r < R; ++r) {
    NIHAO_UNROLL
    for (int v = 0; v < V; ++v) acc[r][v] = zero();
  }
  for (std::size_t i = 0; i < tile.d; ++i) {
    f32x16 column[V];
    NIHAO_UNROLL
    for (int v = 0; v < V; ++v) column[v] = tile.key(b + static_cast<std::size_t>(v), i);
    NIHAO_UNROLL
    for (int r = 0; r < R; ++r) {
      const f32x16 x = set1(q[static_cast<std::size_t>(r) * padded + i]);
      NIHAO_UNROLL
      for (int v = 0; v < V; ++v) acc[r][v] = fma(x, column[v], acc[r][v]);
    }
  }
  NIHAO_UNROLL
  for (int r = 0; r < R; ++r) {
    NIHAO_UNROLL
    for (int v = 0; v < V; ++v)
      store(scores + static_cast<std::size_t>(r) * attention_tile + 16 * (b + static_cast<std::size_t>(v)), acc[r][v]);
  }
}

// acc[r] += score * value for the positions [from, to) of those rows that see them.
template <int R, int V, class Tile>
NIHAO_ALWAYS_INLINE void add_seen_values(const Tile& tile, std::size_t i, const float* scores, std::int32_t from, std::int32_t to,
                                         const Visible<R>& seen, f32x16 (&acc)[R][V]) noexcept {
  for (std::int32_t p = from; p < to; ++p) {
    NIHAO_UNROLL
    for (int v = 0; v < V; ++v) {
      const f32x16 value = tile.value(static_cast<std::size_t>(p), i + 16 * static_cast<std::size_t>(v));
      NIHAO_UNROLL
      for (int r = 0; r < R; ++r)
        if (seen.low[r] <= p && p < seen.high[r])
          acc[r][v] =
              fma(set1(scores[static_cast<std::size_t>(r) * attention_tile + static_cast<std::size_t>(p)]), value, acc[r][v]);
    }
  }
}

// sum[r][i + ...] = sum * shrink + scores . values, for V vectors of sixteen values from `i`.
template <int R, int V, class Tile>
NIHAO_ALWAYS_INLINE void add_values(const Tile& tile, std::size_t i, const float* scores, const Visible<R>& seen,
                                    const float (&shrink)[R], float* sum, std::size_t padded) noexcept {
  f32x16 acc[R][V];
  NIHAO_UNROLL
  for (int r = 0; r < R; ++r) {
    NIHAO_UNROLL
    for (int v = 0; v < V; ++v)
      acc[r][v] = mul(load(sum + static_cast<std::size_t>(r) * padded + i + 16 * static_cast<std::size_t>(v)), set1(shrink[r]));
  }
  add_seen_values<R, V>(tile, i, scores, seen.first, seen.all_from, seen, acc);
  for (std::int32_t p = seen.all_from; p < seen.all_to; ++p) {
    f32x16 value[V];
    NIHAO_UNROLL
    for (int v = 0; v < V; ++v) value[v] = tile.value(static_cast<std::size_t>(p), i + 16 * static_cast<std::size_t>(v));
    NIHAO_UNROLL
    for (int r = 0; r < R; ++r) {
      const f32x16 x = set1(scores[static_cast<std::size_t>(r) * attention_tile + static_cast<std::size_t>(p)]);
      NIHAO_UNROLL
      for (int v = 0; v < V; ++v) acc[r][v] = fma(x, value[v], acc[r][v]);
    }
  }
  add_seen_values<R, V>(tile, i, scores, seen.all_to, seen.end, seen, acc);
  NIHAO_UNROLL
  for (int r = 0; r < R; ++r) {
    NIHAO_UNROLL
    for (int v = 0; v < V; ++v)
      store(sum + static_cast<std::size_t>(r) * padded + i + 16 * static_cast<std::size_t>(v), acc[r][v]);
  }
}

// Scores of one row's tile become cap * tanh(score / cap), tanh(x) being 1 - 2 / (e^(2 x) + 1).
NIHAO_ALWAYS_INLINE void cap_scores(float* score, float cap) noexcept {
  const f32x16 one = set1(1.0f), two = set1(2.0f), by = set1(2.0f / cap), most = set1(cap);
  for (std::size_t p = 0; p < attention_tile; p += 16) {
    const f32x16 tanh = sub(one, div(two, add(exp(mul(load(score + p), by)), one)));
    store(score + p, mul(most, tanh));
  }
}

template <int R, class Tile>
NIHAO_NOINLINE void attention_step(const Tile& tile, float softcap, const AttentionState& s, std::size_t row,
                                   Visible<R>& seen) noexcept {
  const std::size_t padded = s.padded;
  float* scores = s.scores;
  constexpr auto positions = static_cast<std::int32_t>(attention_tile);
  constexpr int at_once = vectors_at_once<R>;
  seen.find();
  for (std::size_t b = 0; b < static_cast<std::size_t>(seen.end + 15) / 16; b += at_once)
    score_blocks<R, at_once>(tile, b, s.q + row * s.q_stride, s.q_stride, scores);
  float shrink[R];
  for (int r = 0; r < R; ++r) {
    float* score = scores + static_cast<std::size_t>(r) * attention_tile;
    const std::size_t at = row + static_cast<std::size_t>(r);
    if (softcap > 0) cap_scores(score, softcap);
    for (std::int32_t p = 0; p < seen.low[r]; ++p) score[p] = -INFINITY;
    for (std::int32_t p = seen.high[r]; p < positions; ++p) score[p] = -INFINITY;
    const f32x16 a = load(score), b = load(score + 16), c = load(score + 32), e = load(score + 48);
    const float tile_most = reduce_max(max(max(a, b), max(c, e)));
    const float most = s.most[at] > tile_most ? s.most[at] : tile_most;
    if (seen.low[r] >= seen.high[r]) {  // nothing here for this row: the state stays, to the bit
      shrink[r] = 1.0f;
      continue;
    }
    const f32x16 m = set1(most);
    const f32x16 pa = exp(sub(a, m)), pb = exp(sub(b, m)), pc = exp(sub(c, m)), pe = exp(sub(e, m));
    store(score, pa), store(score + 16, pb), store(score + 32, pc), store(score + 48, pe);
    float out[16];
    store(out, exp(set1(s.most[at] - most)));
    shrink[r] = s.most[at] == most ? 1.0f : out[0];
    s.total[at] = std::fma(s.total[at], shrink[r], reduce_add(add(add(pa, pb), add(pc, pe))));
    s.most[at] = most;
    if (s.tiles != nullptr) s.tiles[at * s.tile_stride] = {most, s.total[at], shrink[r]};
  }
  float* sum = s.sum + row * padded;
  std::size_t i = 0;
  for (; i + 16 * at_once <= padded; i += 16 * at_once) add_values<R, at_once>(tile, i, scores, seen, shrink, sum, padded);
  if constexpr (at_once > 1)
    for (; i < padded; i += 16) add_values<R, 1>(tile, i, scores, seen, shrink, sum, padded);
}

// All rows of `rows` with one tile that starts at position `start`.
template <int R, class Tile>
NIHAO_ALWAYS_INLINE void rows_step(const Tile& tile, const AttentionShape& shape, const AttentionRows& rows, std::int64_t start,
                                   const AttentionState& s, std::size_t row) noexcept {
  Visible<R> seen;
  for (std::size_t r = 0; r < R; ++r) {
    const std::int64_t p = rows.position[(rows.first + row + r) / rows.group];
    const std::int64_t from = shape.first_visible(p) - start, to = p + 1 - start;
    seen.low[r] = static_cast<std::int32_t>(from < 0 ? 0 : from > 64 ? 64 : from);
    seen.high[r] = static_cast<std::int32_t>(to < 0 ? 0 : to > 64 ? 64 : to);
  }
  attention_step<R>(tile, shape.softcap, s, row, seen);
}
template <class Tile>
NIHAO_ALWAYS_INLINE void all_rows_step(const Tile& tile, const AttentionShape& shape, const AttentionRows& rows,
                                       std::int64_t start, const AttentionState& s) noexcept {
  std::size_t r = 0;
  if constexpr (most_rows >= 8)
    for (; r + 8 <= rows.count; r += 8) rows_step<8>(tile, shape, rows, start, s, r);
  if constexpr (most_rows >= 4)
    for (; r + 4 <= rows.count; r += 4) rows_step<4>(tile, shape, rows, start, s, r);
  if constexpr (!std::is_same_v<Tile, ExpandedTile>) {  // whose rows are many: a few single ones weigh little
    if (r + 3 <= rows.count) rows_step<3>(tile, shape, rows, start, s, r), r += 3;
    if (r + 2 <= rows.count) rows_step<2>(tile, shape, rows, start, s, r), r += 2;
  }
  for (; r < rows.count; ++r) rows_step<1>(tile, shape, rows, start, s, r);
}

// --- splits ------------------------------------------------------------------------------------------------------------------

// One split for `rows`; the state is set, not added to. Tiles that are watched start at position 0.
inline void attention_split_rows(const AttentionShape& shape, const KvView& kv, const AttentionRows& rows, std::size_t split,
                                 AttentionState s) noexcept {
  const std::size_t d = shape.head_dim, padded = s.padded;
  for (std::size_t r = 0; r < rows.count; ++r) s.most[r] = -INFINITY, s.total[r] = 0;
  for (std::size_t i = 0; i < rows.count * padded; i += 16) store(s.sum + i, zero());
  const std::int64_t earliest = shape.first_visible(rows.position[rows.first / rows.group]);
  const std::int64_t latest = rows.position[(rows.first + rows.count - 1) / rows.group];
  if (s.tiles != nullptr) s.tiles += split * (attention_split / attention_tile);
  for (std::size_t t = 0; t < attention_split / attention_tile; ++t, s.tiles += s.tiles != nullptr ? 1 : 0) {
    const auto start = static_cast<std::int64_t>(split * attention_split + t * attention_tile);
    if (start > latest) break;
    if (start + static_cast<std::int64_t>(attention_tile) <= earliest) continue;
    StoredBlocks stored{{}, {}, kv.layout.key().bytes(), d, shape.value_width()};
    const std::size_t first_block = static_cast<std::size_t>(start) / kv_block,
                      last_block = static_cast<std::size_t>(latest) / kv_block;
    const auto block = [&](std::size_t b) {  // what lies beyond the last is not looked at
      return kv.keys(first_block + b < last_block ? first_block + b : last_block, rows.kv_head);
    };
    for (std::size_t b = 0; b < attention_tile / kv_block; ++b)
      stored.keys[b] = block(b), stored.next[b] = block(b + attention_tile / kv_block);
    if constexpr (most_rows > 1)
      if (rows.count <= few_attention_rows && d % 16 == 0 && shape.value_width() % 16 == 0 && !kv.layout.values_in_keys) {
        switch (kv.layout.type) {
          case KvType::f32: all_rows_step(StoredTile<float>{stored}, shape, rows, start, s); break;
          case KvType::f16: all_rows_step(StoredTile<f16>{stored}, shape, rows, start, s); break;
          case KvType::bf16: all_rows_step(StoredTile<bf16>{stored}, shape, rows, start, s); break;
          case KvType::q8_0: all_rows_step(StoredTile<std::int8_t>{stored}, shape, rows, start, s); break;
        }
        continue;
      }
    for (std::size_t b = 0; b < attention_tile / kv_block && first_block + b <= last_block; ++b) {
      float *const keys = s.keys + b * 16 * d, *const values = s.values + b * 16 * padded;
      expand_keys(kv.layout.key(), stored.keys[b], keys);
      if (kv.layout.values_in_keys) values_of_keys(keys, shape.value_width(), padded, values);
      else expand_values(kv.layout.value(), stored.values(b * kv_block), padded, values);
    }
    all_rows_step(ExpandedTile{s.keys, s.values, d, padded}, shape, rows, start, s);
  }
}

inline void scale_queries(const AttentionShape& shape, const AttentionRows& rows, const AttentionState& s) noexcept {
  const std::size_t d = shape.head_dim;
  for (std::size_t r = 0; r < rows.count; ++r) {
    const std::size_t row = rows.first + r;
    const float* from = rows.q + row / rows.group * rows.q_stride + (rows.kv_head * rows.group + row % rows.group) * d;
    for (std::size_t i = 0; i < d; ++i) s.q[r * s.q_stride + i] = from[i] * shape.scale;
  }
}

// Adds a split's result (sum, most, total) of one row to those so far. Both must have seen something.
inline void merge_split(float* sum, float& most, float& total, const float* split_sum, float split_most, float split_total,
                        std::size_t padded) noexcept {
  const float top = most > split_most ? most : split_most;
  float factors[16];
  store(factors, exp(set1(most - top)));
  const float old_factor = most == top ? 1.0f : factors[0];
  store(factors, exp(set1(split_most - top)));
  const float new_factor = split_most == top ? 1.0f : factors[0];
  for (std::size_t i = 0; i < padded; i += 16)
    store(sum + i, fma(load(split_sum + i), set1(new_factor), mul(load(sum + i), set1(old_factor))));
  total = std::fma(split_total, new_factor, total * old_factor);
  most = top;
}

// The row's output. A sink is a split of its own, the last: it has a total, and no values.
inline void write_row(const AttentionShape& shape, const AttentionRows& rows, std::size_t r, float* sum, float most,
                      float total) noexcept {
  const std::size_t d = shape.value_width(), row = rows.first + r, head = rows.kv_head * rows.group + row % rows.group;
  float* out = rows.out + row / rows.group * rows.out_stride + head * d;
  if (shape.sinks != nullptr) {
    const float sink = shape.sinks[head], top = most > sink ? most : sink;
    float factors[16];
    store(factors, exp(set1(most - top)));
    const float factor = most == top ? 1.0f : factors[0];
    store(factors, exp(set1(sink - top)));
    total = std::fma(total, factor, sink == top ? 1.0f : factors[0]);
    for (std::size_t i = 0; i < (d + 15) / 16 * 16; i += 16) store(sum + i, mul(load(sum + i), set1(factor)));
  }
  const f32x16 divisor = set1(total);
  for (std::size_t i = 0; i < d; i += 16) {
    const int n = d - i < 16 ? static_cast<int>(d - i) : 16;
    store(out + i, div(load(sum + i), divisor), n);
  }
}

/// All splits of `rows`, in order. scratch: attention_scratch() floats.
inline void attention(const AttentionShape& shape, const KvView& kv, const AttentionRows& rows, float* scratch) noexcept {
  const AttentionState s(scratch, shape);
  const std::size_t padded = s.padded;
  scale_queries(shape, rows, s);
  const auto earliest = static_cast<std::size_t>(shape.first_visible(rows.position[rows.first / rows.group]));
  const auto latest = static_cast<std::size_t>(rows.position[(rows.first + rows.count - 1) / rows.group]);
  for (std::size_t r = 0; r < rows.count; ++r) s.all_total[r] = 0;
  for (std::size_t split = earliest / attention_split; split <= latest / attention_split; ++split) {
    attention_split_rows(shape, kv, rows, split, s);
    for (std::size_t r = 0; r < rows.count; ++r) {
      if (s.total[r] == 0) continue;  // nothing visible in this split
      float* sum = s.all_sum + r * padded;
      if (s.all_total[r] == 0) {
        for (std::size_t i = 0; i < padded; i += 16) store(sum + i, load(s.sum + r * padded + i));
        s.all_most[r] = s.most[r], s.all_total[r] = s.total[r];
      } else {
        merge_split(sum, s.all_most[r], s.all_total[r], s.sum + r * padded, s.most[r], s.total[r], padded);
      }
    }
  }
  for (std::size_t r = 0; r < rows.count; ++r) write_row(shape, rows, r, s.all_sum + r * padded, s.all_most[r], s.all_total[r]);
}

/// What the softmax of `rows` is after each tile: tiles[row][stride], from position 0 on. Entries of tiles that a row does not
/// see are left as they are. scratch: attention_scratch(head_dim) floats.
inline void attention_watch(const AttentionShape& shape, const KvView& kv, const AttentionRows& rows, AttentionTile* tiles,
                            std::size_t stride, float* scratch) noexcept {
  AttentionState s(scratch, shape);
  s.tiles = tiles, s.tile_stride = stride;
  scale_queries(shape, rows, s);
  const auto latest = static_cast<std::size_t>(rows.position[(rows.first + rows.count - 1) / rows.group]);
  for (std::size_t split = 0; split <= latest / attention_split; ++split) attention_split_rows(shape, kv, rows, split, s);
}

/// One split of `rows` to partial[row][attention_partial()], for a later attention_merge.
inline void attention_one_split(const AttentionShape& shape, const KvView& kv, const AttentionRows& rows, std::size_t split,
                                float* partial, float* scratch) noexcept {
  const AttentionState s(scratch, shape);
  const std::size_t padded = s.padded;
  scale_queries(shape, rows, s);
  attention_split_rows(shape, kv, rows, split, s);
  for (std::size_t r = 0; r < rows.count; ++r) {
    float* to = partial + r * attention_partial(shape.value_width());
    for (std::size_t i = 0; i < padded; i += 16) store(to + i, load(s.sum + r * padded + i));
    to[padded] = s.most[r], to[padded + 1] = s.total[r];
  }
}

/// Merges `splits` partial results, [split][rows][attention_partial], in order, and writes the rows. The first is overwritten.
inline void attention_merge(const AttentionShape& shape, const AttentionRows& rows, std::size_t splits, float* partial) noexcept {
  const std::size_t size = attention_partial(shape.value_width()), padded = size - 16;
  for (std::size_t r = 0; r < rows.count; ++r) {
    float* all = nullptr;
    for (std::size_t split = 0; split < splits; ++split) {
      float* part = partial + (split * rows.count + r) * size;
      if (part[padded + 1] == 0) continue;
      if (all == nullptr) all = part;
      else merge_split(all, all[padded], all[padded + 1], part, part[padded], part[padded + 1], padded);
    }
    write_row(shape, rows, r, all, all[padded], all[padded + 1]);
  }
}

// --- storing keys and values -------------------------------------------------------------------------------------------------

// One position of one head into its block: x is [width], `part` the keys or the values, `step` and `at` say where value i goes
// (at + i * step).
inline void store_part(const KvPart& kind, std::byte* part, const float* x, std::size_t at, std::size_t step,
                       std::size_t p) noexcept {
  const std::size_t d = kind.width;
  switch (kind.type) {
    case KvType::f32:
      for (std::size_t i = 0; i < d; ++i) reinterpret_cast<float*>(part)[at + i * step] = x[i];
      return;
    case KvType::f16:
      for (std::size_t i = 0; i < d; i += 16) {
        f16 half[16];
        const int n = d - i < 16 ? static_cast<int>(d - i) : 16;
        store_f16(half, load(x + i, n));
        for (int j = 0; j < n; ++j) reinterpret_cast<f16*>(part)[at + (i + static_cast<std::size_t>(j)) * step] = half[j];
      }
      return;
    case KvType::bf16:
      for (std::size_t i = 0; i < d; ++i) reinterpret_cast<bf16*>(part)[at + i * step] = to_bf16(x[i]);
      return;
    case KvType::q8_0: break;
  }
  f16* scales = reinterpret_cast<f16*>(part);
  std::int8_t* codes = reinterpret_cast<std::int8_t*>(part + kind.scales() * kv_block * 2);
  for (std::size_t g = 0; g < kind.scales(); ++g) {
    const std::size_t end = (g + 1) * 32 < d ? (g + 1) * 32 : d;
    float most = 0;  // NaN if there is one: a scale of NaN keeps it
    for (std::size_t i = g * 32; i < end; ++i) most = std::fabs(x[i]) > most || x[i] != x[i] ? std::fabs(x[i]) : most;
    const f16 scale = to_f16(most / 127.0f);
    scales[g * 16 + p] = scale;
    const float inverse = to_float(scale) > 0 ? 1.0f / to_float(scale) : 0.0f;
    for (std::size_t i = g * 32; i < end; ++i) {
      const float q = std::nearbyint(x[i] * inverse);
      codes[at + i * step] = static_cast<std::int8_t>(q > 127.0f ? 127.0f : q > -127.0f ? q : -127.0f);
    }
  }
}

}  // namespace NIHAO_ISA_NAMESPACE
}  // namespace NIHAO_ABI
}  // namespace nihao::simd
