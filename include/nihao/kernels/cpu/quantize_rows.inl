// One row of activations to int8, for one instruction set.
namespace nihao::simd {
inline namespace NIHAO_ABI {
namespace NIHAO_ISA_NAMESPACE {

// The scale of values whose magnitudes' bits are at most `top`. A NaN or an infinity makes it NaN or infinite (the largest
// magnitude is found among bit patterns, where NaN is above everything), so that it reaches the logits instead of vanishing in a
// conversion.
NIHAO_ALWAYS_INLINE float activation_scale(i32x16 top) noexcept {
  const std::int32_t largest = reduce_max(top);
  float magnitude;
  std::memcpy(&magnitude, &largest, 4);
  return magnitude / 127.0f;
}

// Sixteen values to integers at q; their sum. They are zeros if the scale is no number, for any times such a scale is none, and
// if the inverse of a scale of subnormals would overflow.
NIHAO_ALWAYS_INLINE std::int32_t quantize_sixteen(f32x16 x, float scale, std::int8_t* q) noexcept {
  const bool usable = scale >= 1.17549435e-38f && scale <= 3.40282347e+38f;
  const f32x16 magic = set1(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer, to nearest even
  const i32x16 rounded = sub(bits(fma(usable ? x : zero(), set1(usable ? 1.0f / scale : 0.0f), magic)), bits(magic));
  store_i8(q, rounded);
  return reduce_add(rounded);
}

// Token t of `to` from the n floats at x.
template <class X>
inline void quantize_row(const float* x, std::size_t n, const X& to, std::size_t t) noexcept {
  const i32x16 magnitude = set1_i32(0x7fffffff);
  for (std::size_t b = 0; b < to.k / activation_block; ++b) {
    const std::size_t at = b * activation_block, block = to.block(t, b);
    f32x16 low, high;
    if (at + activation_block <= n) {
      low = load(x + at), high = load(x + at + 16);
    } else {
      const std::size_t left = n - at;
      low = left >= 16 ? load(x + at) : load(x + at, static_cast<int>(left));
      high = left > 16 ? load(x + at + 16, static_cast<int>(left - 16)) : zero();
    }
    const i32x16 low_top = bit_and(bits(low), magnitude), high_top = bit_and(bits(high), magnitude);
    float* d = to.d + X::scales * block;
    if constexpr (X::scales == 1) d[0] = activation_scale(max(low_top, high_top));
    else d[0] = activation_scale(low_top), d[1] = activation_scale(high_top);
    std::int32_t* sum = to.sum + 2 * block;
    std::int8_t* q = to.q + block * activation_block;
    sum[0] = quantize_sixteen(low, d[0], q), sum[1] = quantize_sixteen(high, d[X::scales - 1], q + 16);
    if constexpr (X::scales == 1) to.d_sum[block] = d[0] * static_cast<float>(sum[0] + sum[1]);
    else to.d_sum[block] = std::fma(d[0], static_cast<float>(sum[0]), d[1] * static_cast<float>(sum[1]));
  }
}

}  // namespace NIHAO_ISA_NAMESPACE
}  // namespace NIHAO_ABI
}  // namespace nihao::simd
