// One row of activations to int8, for one instruction set.
namespace nihao::simd {
inline namespace NIHAO_ABI {
namespace NIHAO_ISA_NAMESPACE {

// Row t of `to` from the n floats at x. A NaN or an infinity makes its block's scale NaN or infinite (the largest magnitude is
// found among bit patterns, where NaN is above everything), so that it reaches the logits instead of vanishing in a conversion.
inline void quantize_row(const float* x, std::size_t n, const QuantizedRows& to, std::size_t t) noexcept {
  std::int8_t* q = to.q + t * to.k;
  float* d = to.d + t * (to.k / activation_block);
  float* d_sum = to.d_sum + t * (to.k / activation_block);
  std::int32_t* sum = to.sum + t * (to.k / 16);
  const i32x16 magnitude = set1_i32(0x7fffffff);
  const f32x16 magic = set1(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer, to nearest even
  for (std::size_t b = 0; b < to.k / activation_block; ++b) {
    const std::size_t at = b * activation_block;
    f32x16 low, high;
    if (at + activation_block <= n) {
      low = load(x + at), high = load(x + at + 16);
    } else {
      const std::size_t left = n - at;
      low = left >= 16 ? load(x + at) : load(x + at, static_cast<int>(left));
      high = left > 16 ? load(x + at + 16, static_cast<int>(left - 16)) : zero();
    }
    const std::int32_t top = reduce_max(max(bit_and(bits(low), magnitude), bit_and(bits(high), magnitude)));
    float most;
    std::memcpy(&most, &top, 4);
    const float scale = most / 127.0f;
    // A block of subnormals would overflow the inverse: it is taken as zeros.
    const f32x16 inverse = set1(scale >= 1.17549435e-38f ? 1.0f / scale : 0.0f);
    const i32x16 a = sub(bits(fma(low, inverse, magic)), bits(magic));
    const i32x16 c = sub(bits(fma(high, inverse, magic)), bits(magic));
    store_i8(q + at, a), store_i8(q + at + 16, c);
    sum[2 * b] = reduce_add(a), sum[2 * b + 1] = reduce_add(c);
    d[b] = scale;
    d_sum[b] = scale * static_cast<float>(sum[2 * b] + sum[2 * b + 1]);
  }
}

}  // namespace NIHAO_ISA_NAMESPACE
}  // namespace NIHAO_ABI
}  // namespace nihao::simd
