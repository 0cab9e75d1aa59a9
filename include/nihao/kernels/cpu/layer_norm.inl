// LayerNorm for one instruction set.
namespace nihao::simd {
inline namespace NIHAO_ABI {
namespace NIHAO_ISA_NAMESPACE {

// One row of n floats; y may be x, bias may be null. The mean first, then the squares of what is left: a mean far from zero costs
// no digits. Sixteen running sums, added up in the fixed order of reduce_add.
inline void layer_norm(const float* x, const float* weight, const float* bias, float eps, std::size_t n, float* y) noexcept {
  const std::size_t whole = n / 16 * 16;
  const int rest = static_cast<int>(n - whole);
  f32x16 sum = zero();
  for (std::size_t i = 0; i < whole; i += 16) sum = add(sum, load(x + i));
  if (rest > 0) sum = add(sum, load(x + whole, rest));
  const float mean = reduce_add(sum) / static_cast<float>(n);
  const f32x16 middle = set1(mean);
  f32x16 squares = zero();
  for (std::size_t i = 0; i < whole; i += 16) {
    const f32x16 v = sub(load(x + i), middle);
    squares = fma(v, v, squares);
  }
  float variance = reduce_add(squares);
  for (std::size_t i = whole; i < n; ++i) variance = __builtin_fmaf(x[i] - mean, x[i] - mean, variance);
  const f32x16 scale = set1(1.0f / std::sqrt(variance / static_cast<float>(n) + eps));
  for (std::size_t i = 0; i < n; i += 16) {
    const int lanes = n - i < 16 ? rest : 16;
    const f32x16 normed = mul(sub(load(x + i, lanes), middle), scale), w = load(weight + i, lanes);
    store(y + i, bias == nullptr ? mul(normed, w) : fma(normed, w, load(bias + i, lanes)), lanes);
  }
}

}  // namespace NIHAO_ISA_NAMESPACE
}  // namespace NIHAO_ABI
}  // namespace nihao::simd
