// Loops that keep one resource busy and nothing else.
namespace nihao::simd {
inline namespace NIHAO_ABI {
namespace NIHAO_ISA_NAMESPACE {

/// Sums that run side by side: enough to hide an instruction's latency, few enough for the registers.
inline constexpr int peak_chains = tile_tokens >= 8 ? 12 : tile_tokens >= 2 ? 4 : 1;

/// Reads floats once, in order; a multiple of 64 of them. What is returned only makes sure that all of it is computed.
NIHAO_NOINLINE inline float read_floats(const float* data, std::size_t count) noexcept {
  f32x16 a = zero(), b = zero(), c = zero(), d = zero();
  for (std::size_t i = 0; i < count; i += 64) {
    a = add(a, load(data + i));
    b = add(b, load(data + i + 16));
    c = add(c, load(data + i + 32));
    d = add(d, load(data + i + 48));
  }
  float first[16];
  store(first, add(add(a, b), add(c, d)));
  return first[0];
}

/// `rounds` times the integer dot products of a matmul's inner loop: 256 weights, each times one value of every chain.
/// weights [2048], tokens [peak_chains][128].
NIHAO_NOINLINE inline float int8_dots(const std::uint8_t* weights, const std::int8_t* tokens, std::size_t rounds) noexcept {
  i32x16 sum[peak_chains];
  NIHAO_UNROLL
  for (int t = 0; t < peak_chains; ++t) sum[t] = zero_i32();
  for (std::size_t i = 0; i < rounds; ++i) {
    const std::size_t at = i % 8;
    NIHAO_UNROLL
    for (int group = 0; group < 4; ++group) {
      const u8x64 w = load_u8(weights + 256 * at + 64 * group);
      NIHAO_UNROLL
      for (int t = 0; t < peak_chains; ++t) sum[t] = dot_codes(sum[t], w, tokens + 128 * t + 16 * at, group);
    }
  }
  i32x16 all = zero_i32();
  NIHAO_UNROLL
  for (int t = 0; t < peak_chains; ++t) all = add(all, sum[t]);
  float first[16];
  store(first, to_f32(all));
  return first[0];
}

/// The same in f32, with 16 weights a round: weights [512], tokens [peak_chains][32].
NIHAO_NOINLINE inline float float_dots(const float* weights, const float* tokens, std::size_t rounds) noexcept {
  f32x16 sum[peak_chains];
  NIHAO_UNROLL
  for (int t = 0; t < peak_chains; ++t) sum[t] = zero();
  for (std::size_t i = 0; i < rounds; ++i) {
    const std::size_t at = i % 32;
    const f32x16 w = load(weights + 16 * at);
    NIHAO_UNROLL
    for (int t = 0; t < peak_chains; ++t) sum[t] = fma(w, set1(tokens[32 * t + static_cast<int>(at)]), sum[t]);
  }
  f32x16 all = zero();
  NIHAO_UNROLL
  for (int t = 0; t < peak_chains; ++t) all = add(all, sum[t]);
  float first[16];
  store(first, all);
  return first[0];
}

/// Multiply-adds of one round of int8_dots; float_dots has a sixteenth of them.
[[nodiscard]] inline std::size_t int8_round() noexcept { return std::size_t{256} * peak_chains; }

}  // namespace NIHAO_ISA_NAMESPACE
}  // namespace NIHAO_ABI
}  // namespace nihao::simd
