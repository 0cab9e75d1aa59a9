// RMSNorm for one instruction set.
namespace nihao::simd {
inline namespace NIHAO_ABI {
namespace NIHAO_ISA_NAMESPACE {

// One row of n floats; y may be x. Sixteen running sums, added up in the fixed order of reduce_add.
inline void rms_norm(const float* x, const float* weight, float eps, std::size_t n, float* y) noexcept {
  const std::size_t whole = n / 16 * 16;
  const int rest = static_cast<int>(n - whole);
  f32x16 sum = zero();
  for (std::size_t i = 0; i < whole; i += 16) sum = fma(load(x + i), load(x + i), sum);
  if (rest > 0) sum = fma(load(x + whole, rest), load(x + whole, rest), sum);
  const float mean = reduce_add(sum) / static_cast<float>(n);
  const f32x16 scale = set1(1.0f / std::sqrt(mean + eps));
  for (std::size_t i = 0; i < whole; i += 16) store(y + i, mul(mul(load(x + i), scale), load(weight + i)));
  if (rest > 0) store(y + whole, mul(mul(load(x + whole, rest), scale), load(weight + whole, rest)), rest);
}

}  // namespace NIHAO_ISA_NAMESPACE
}  // namespace NIHAO_ABI
}  // namespace nihao::simd
