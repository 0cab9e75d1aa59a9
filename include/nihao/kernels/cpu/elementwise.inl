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
inline void gated(const float* gate_in, const float* up, std::size_t n, float* y) noexcept {
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) store(y + i, mul(gate<F>(load(gate_in + i)), load(up + i)));
  const int rest = static_cast<int>(n - i);
  if (rest > 0) store(y + i, mul(gate<F>(load(gate_in + i, rest)), load(up + i, rest)), rest);
}

inline void add_arrays(const float* a, const float* b, std::size_t n, float* y) noexcept {
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) store(y + i, add(load(a + i), load(b + i)));
  const int rest = static_cast<int>(n - i);
  if (rest > 0) store(y + i, add(load(a + i, rest), load(b + i, rest)), rest);
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
