// exp and what is made of it, in sixteen lanes. Included once per instruction set.
namespace nihao::simd {
inline namespace NIHAO_ABI {
namespace NIHAO_ISA_NAMESPACE {

/// e^x to within 1.26 units in the last place for every float in [-87.33654, 88.37] (all of them were tried: 1.259
/// at 59.3353539); 0 below, the value at the bound above; NaN stays NaN. x = n ln 2 + r with |r| <= ln 2 / 2 (Cody and Waite's
/// two-part ln 2), e^r by its minimax polynomial, 2^n by the exponent field.
NIHAO_ALWAYS_INLINE f32x16 exp(f32x16 x) noexcept {
  const f32x16 least = set1(-87.33654f), most = set1(88.37f);
  const f32x16 clamped = min(most, max(least, x));  // in this order NaN passes: both give their second operand
  const f32x16 magic = set1(12582912.0f);           // 1.5 * 2^23: adding it rounds to an integer, to nearest even
  const f32x16 shifted = fma(clamped, set1(1.44269504088896341f), magic);
  const f32x16 n = sub(shifted, magic);
  f32x16 r = fma(n, set1(-0.693145751953125f), clamped);
  r = fma(n, set1(-1.42860682030941723212e-6f), r);
  f32x16 p = set1(1.9875691500e-4f);
  p = fma(p, r, set1(1.3981999507e-3f));
  p = fma(p, r, set1(8.3334519073e-3f));
  p = fma(p, r, set1(4.1665795894e-2f));
  p = fma(p, r, set1(1.6666665459e-1f));
  p = fma(p, r, set1(5.0000001201e-1f));
  p = fma(mul(r, r), p, add(r, set1(1.0f)));
  const f32x16 scaled = from_bits(add(bits(p), shl<23>(sub(bits(shifted), bits(magic)))));
  return select_less(x, least, zero(), scaled);
}

/// 1 / (1 + e^-x).
NIHAO_ALWAYS_INLINE f32x16 sigmoid(f32x16 x) noexcept { return div(set1(1.0f), add(set1(1.0f), exp(sub(zero(), x)))); }

}  // namespace NIHAO_ISA_NAMESPACE
}  // namespace NIHAO_ABI
}  // namespace nihao::simd
