// One row of activations to int8, for one instruction set.
namespace nihao::simd {
inline namespace NIHAO_ABI {
namespace NIHAO_ISA_NAMESPACE {

// Block b of row `row` of `to`, from 32 floats; they become what is left of them. A NaN or an infinity makes its block's scale
// NaN or infinite (the largest magnitude is found among bit patterns, where NaN is above everything), so that it reaches the
// logits instead of vanishing in a conversion. The block's integers are zeros then: any times such a scale is no number.
NIHAO_ALWAYS_INLINE void quantize_block(f32x16& low, f32x16& high, const QuantizedRows& to, std::size_t row,
                                        std::size_t b) noexcept {
  const std::size_t block = row * (to.k / activation_block) + b;
  const i32x16 magnitude = set1_i32(0x7fffffff);
  const f32x16 magic = set1(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer, to nearest even
  const std::int32_t top = reduce_max(max(bit_and(bits(low), magnitude), bit_and(bits(high), magnitude)));
  float most;
  std::memcpy(&most, &top, 4);
  const float scale = most / 127.0f;
  if (!(scale <= 3.40282347e+38f)) low = high = zero();
  // A block of subnormals would overflow the inverse: it is taken as zeros.
  const f32x16 inverse = set1(scale >= 1.17549435e-38f ? 1.0f / scale : 0.0f);
  const i32x16 a = sub(bits(fma(low, inverse, magic)), bits(magic));
  const i32x16 c = sub(bits(fma(high, inverse, magic)), bits(magic));
  store_i8(to.q + block * activation_block, a), store_i8(to.q + block * activation_block + 16, c);
  std::int32_t* sum = to.sum + 2 * block;
  sum[0] = reduce_add(a), sum[1] = reduce_add(c);
  to.d[block] = scale;
  to.d_sum[block] = scale * static_cast<float>(sum[0] + sum[1]);
  low = fma(to_f32(a), set1(-scale), low), high = fma(to_f32(c), set1(-scale), high);
}

// Token t of `to` from the n floats at x.
inline void quantize_row(const float* x, std::size_t n, const QuantizedRows& to, std::size_t t) noexcept {
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
    for (std::size_t part = 0; part < to.parts; ++part) quantize_block(low, high, to, t * to.parts + part, b);
  }
}

}  // namespace NIHAO_ISA_NAMESPACE
}  // namespace NIHAO_ABI
}  // namespace nihao::simd
