// Gates, sums and rotations for one instruction set.
namespace nihao::simd {
inline namespace NIHAO_ABI {
namespace NIHAO_ISA_NAMESPACE {

// x * sigmoid(slope * (x + cubic * x^3))
template <class F>
NIHAO_ALWAYS_INLINE f32x16 gate(f32x16 x) noexcept {
  f32x16 inner = x;
  if constexpr (F::cubic != 0.0f) inner = fma(mul(mul(x, x), x), set1(F::cubic), x);
  if constexpr (F::slope != 1.0f) inner = mul(inner, set1(F::slope));
  return mul(x, sigmoid(inner));
}
template <class F>
NIHAO_ALWAYS_INLINE f32x16 gate_times_up(f32x16 x, f32x16 up, float limit) noexcept {
  if constexpr (F::clamped) {  // in this order NaN passes: min and max give their second operand then
    up = add(min(set1(limit), max(set1(-limit), up)), set1(1.0f));
    x = min(set1(limit), x);
  }
  return mul(gate<F>(x), up);
}
template <class F>
inline void gated(const float* gate_in, const float* up, std::size_t n, float* y, float limit) noexcept {
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) store(y + i, gate_times_up<F>(load(gate_in + i), load(up + i), limit));
  const int rest = static_cast<int>(n - i);
  if (rest > 0) store(y + i, gate_times_up<F>(load(gate_in + i, rest), load(up + i, rest), limit), rest);
}

// y += factor * x
inline void add_multiple(const float* x, float factor, std::size_t n, float* y) noexcept {
  const f32x16 f = set1(factor);
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) store(y + i, fma(load(x + i), f, load(y + i)));
  const int rest = static_cast<int>(n - i);
  if (rest > 0) store(y + i, fma(load(x + i, rest), f, load(y + i, rest)), rest);
}

// y = factor * x, then cap * tanh(y / cap) if cap > 0, tanh(x) being 1 - 2 / (e^(2 x) + 1).
inline void scale_and_cap(const float* x, float factor, float cap, std::size_t n, float* y) noexcept {
  const f32x16 f = set1(factor), one = set1(1.0f), two = set1(2.0f), by = set1(2.0f / cap), most = set1(cap);
  for (std::size_t i = 0; i < n; i += 16) {
    const int lanes = n - i < 16 ? static_cast<int>(n - i) : 16;
    f32x16 v = mul(load(x + i, lanes), f);
    if (cap > 0) v = mul(most, sub(one, div(two, add(exp(mul(v, by)), one))));
    store(y + i, v, lanes);
  }
}

// x cut off at +- limit, in place.
inline void clip(float* x, float limit, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; i += 16) {
    const int lanes = n - i < 16 ? static_cast<int>(n - i) : 16;
    store(x + i, min(set1(limit), max(set1(-limit), load(x + i, lanes))), lanes);
  }
}

// A head whose pairs are (i, i + pairs), turned in place.
inline void rope_halves(float* head, const float* cos, const float* sin, std::size_t pairs) noexcept {
  for (std::size_t i = 0; i < pairs; i += 16) {
    const int n = pairs - i < 16 ? static_cast<int>(pairs - i) : 16;
    const f32x16 x = load(head + i, n), y = load(head + pairs + i, n), c = load(cos + i, n), s = load(sin + i, n);
    store(head + i, fma(x, c, sub(zero(), mul(y, s))), n);
    store(head + pairs + i, fma(x, s, mul(y, c)), n);
  }
}
// Pair by pair: where the set has fused multiply-adds, compilers make vectors of it.
inline void rope_neighbours(float* head, const float* cos, const float* sin, std::size_t pairs) noexcept {
  for (std::size_t i = 0; i < pairs; ++i) {
    const float x = head[2 * i], y = head[2 * i + 1];
    head[2 * i] = __builtin_fmaf(x, cos[i], -(y * sin[i]));
    head[2 * i + 1] = __builtin_fmaf(x, sin[i], y * cos[i]);
  }
}

}  // namespace NIHAO_ISA_NAMESPACE
}  // namespace NIHAO_ABI
}  // namespace nihao::simd
