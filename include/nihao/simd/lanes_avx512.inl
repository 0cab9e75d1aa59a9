// The lane vocabulary on AVX-512 with VNNI: one ZMM register each. Some intrinsics are spelled in their masked form with a full
// mask: the plain form of g++ 12's headers starts from an undefined register, and -Wall takes that for a bug of the includer.
namespace nihao::simd {
inline namespace NIHAO_ABI {
namespace avx512 {

struct f32x16 {
  __m512 v;
};
struct i32x16 {
  __m512i v;
};
struct u8x64 {
  __m512i v;
};

inline constexpr __mmask16 every = 0xffff;
inline constexpr int tile_tokens = 8;  // 8 integer + 8 float accumulators, weights and constants: 32 registers

NIHAO_ALWAYS_INLINE f32x16 zero() noexcept { return {_mm512_setzero_ps()}; }
NIHAO_ALWAYS_INLINE f32x16 set1(float x) noexcept { return {_mm512_set1_ps(x)}; }
NIHAO_ALWAYS_INLINE f32x16 load(const float* p) noexcept { return {_mm512_loadu_ps(p)}; }
NIHAO_ALWAYS_INLINE void store(float* p, f32x16 a) noexcept { _mm512_storeu_ps(p, a.v); }
NIHAO_ALWAYS_INLINE f32x16 load(const float* p, int n) noexcept {
  return {_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), p)};
}
NIHAO_ALWAYS_INLINE void store(float* p, f32x16 a, int n) noexcept {
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1), a.v);
}
NIHAO_ALWAYS_INLINE f32x16 load(const f16* p) noexcept {
  return {_mm512_maskz_cvtph_ps(every, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
NIHAO_ALWAYS_INLINE f32x16 load(const bf16* p) noexcept {
  return {_mm512_castsi512_ps(_mm512_maskz_slli_epi32(
      every, _mm512_maskz_cvtepu16_epi32(every, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))), 16))};
}
NIHAO_ALWAYS_INLINE f32x16 load(const std::int8_t* p) noexcept {
  return {
      _mm512_maskz_cvtepi32_ps(every, _mm512_maskz_cvtepi8_epi32(every, _mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
}
NIHAO_ALWAYS_INLINE f32x16 load(const std::uint8_t* p) noexcept {
  return {
      _mm512_maskz_cvtepi32_ps(every, _mm512_maskz_cvtepu8_epi32(every, _mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
}

// e5m2 is the upper byte of a half. e4m3 has a half's layout but for its exponent, which begins 8 lower: its bits, moved, are the
// half of 1/256 of the value. (Its two NaNs become +-480/256: packing sees to those.)
NIHAO_ALWAYS_INLINE __m256i widen_u8(const void* p) noexcept {
  return _mm256_cvtepu8_epi16(_mm_loadu_si128(static_cast<const __m128i*>(p)));
}
NIHAO_ALWAYS_INLINE f32x16 load(const e5m2* p) noexcept {
  return {_mm512_maskz_cvtph_ps(every, _mm256_slli_epi16(widen_u8(p), 8))};
}
NIHAO_ALWAYS_INLINE f32x16 load_256ths(const e4m3* p) noexcept {
  const __m256i b = widen_u8(p), rest = _mm256_and_si256(_mm256_slli_epi16(b, 7), _mm256_set1_epi16(0x3f80));
  const __m256i sign = _mm256_and_si256(_mm256_slli_epi16(b, 8), _mm256_set1_epi16(static_cast<short>(0x8000)));
  return {_mm512_maskz_cvtph_ps(every, _mm256_or_si256(rest, sign))};
}
// table[i] for the low (Half 0) or the high four bits i of sixteen bytes.
template <int Half>
NIHAO_ALWAYS_INLINE f32x16 lookup_nibbles(const float (&table)[16], const std::uint8_t* p) noexcept {
  const __m512i b = _mm512_maskz_cvtepu8_epi32(every, _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  // The permutation looks at the low four bits alone.
  return {_mm512_maskz_permutexvar_ps(every, Half == 0 ? b : _mm512_maskz_srli_epi32(every, b, 4), _mm512_loadu_ps(table))};
}

NIHAO_ALWAYS_INLINE f32x16 add(f32x16 a, f32x16 b) noexcept { return {_mm512_add_ps(a.v, b.v)}; }
NIHAO_ALWAYS_INLINE f32x16 sub(f32x16 a, f32x16 b) noexcept { return {_mm512_sub_ps(a.v, b.v)}; }
NIHAO_ALWAYS_INLINE f32x16 mul(f32x16 a, f32x16 b) noexcept { return {_mm512_mul_ps(a.v, b.v)}; }
NIHAO_ALWAYS_INLINE f32x16 div(f32x16 a, f32x16 b) noexcept { return {_mm512_div_ps(a.v, b.v)}; }
NIHAO_ALWAYS_INLINE f32x16 fma(f32x16 a, f32x16 b, f32x16 c) noexcept { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
NIHAO_ALWAYS_INLINE f32x16 max(f32x16 a, f32x16 b) noexcept { return {_mm512_maskz_max_ps(every, a.v, b.v)}; }
NIHAO_ALWAYS_INLINE f32x16 min(f32x16 a, f32x16 b) noexcept { return {_mm512_maskz_min_ps(every, a.v, b.v)}; }
NIHAO_ALWAYS_INLINE f32x16 select_less(f32x16 a, f32x16 b, f32x16 yes, f32x16 no) noexcept {
  return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ), no.v, yes.v)};
}

NIHAO_ALWAYS_INLINE i32x16 zero_i32() noexcept { return {_mm512_setzero_si512()}; }
NIHAO_ALWAYS_INLINE i32x16 set1_i32(std::int32_t x) noexcept { return {_mm512_set1_epi32(x)}; }
NIHAO_ALWAYS_INLINE i32x16 load_i32(const std::int32_t* p) noexcept { return {_mm512_loadu_si512(p)}; }
NIHAO_ALWAYS_INLINE i32x16 add(i32x16 a, i32x16 b) noexcept { return {_mm512_add_epi32(a.v, b.v)}; }
NIHAO_ALWAYS_INLINE i32x16 sub(i32x16 a, i32x16 b) noexcept { return {_mm512_sub_epi32(a.v, b.v)}; }
NIHAO_ALWAYS_INLINE i32x16 max(i32x16 a, i32x16 b) noexcept { return {_mm512_maskz_max_epi32(every, a.v, b.v)}; }
NIHAO_ALWAYS_INLINE i32x16 bit_and(i32x16 a, i32x16 b) noexcept { return {_mm512_and_si512(a.v, b.v)}; }
template <int N>
NIHAO_ALWAYS_INLINE i32x16 shl(i32x16 a) noexcept {
  return {_mm512_maskz_slli_epi32(every, a.v, N)};
}
NIHAO_ALWAYS_INLINE f32x16 to_f32(i32x16 a) noexcept { return {_mm512_maskz_cvtepi32_ps(every, a.v)}; }
NIHAO_ALWAYS_INLINE i32x16 bits(f32x16 a) noexcept { return {_mm512_castps_si512(a.v)}; }
NIHAO_ALWAYS_INLINE f32x16 from_bits(i32x16 a) noexcept { return {_mm512_castsi512_ps(a.v)}; }
NIHAO_ALWAYS_INLINE void store_i8(std::int8_t* p, i32x16 a) noexcept {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_maskz_cvtepi32_epi8(every, a.v));
}
NIHAO_ALWAYS_INLINE void store_f16(f16* p, f32x16 a) noexcept {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_maskz_cvtps_ph(every, a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

NIHAO_ALWAYS_INLINE __m256 lower_half(__m512 a) noexcept { return _mm512_maskz_extractf32x8_ps(0xff, a, 0); }
NIHAO_ALWAYS_INLINE __m256i lower_half(__m512i a) noexcept { return _mm512_maskz_extracti32x8_epi32(0xff, a, 0); }
NIHAO_ALWAYS_INLINE __m256 upper_half(__m512 a) noexcept { return _mm512_maskz_extractf32x8_ps(0xff, a, 1); }
NIHAO_ALWAYS_INLINE __m256i upper_half(__m512i a) noexcept { return _mm512_maskz_extracti32x8_epi32(0xff, a, 1); }
// Sums and maxima over the lanes: i with i + 8, then + 4, + 2, + 1. The order is part of the contract.
NIHAO_ALWAYS_INLINE float reduce_add(f32x16 a) noexcept {
  const __m256 b = _mm256_add_ps(lower_half(a.v), upper_half(a.v));
  const __m128 c = _mm_add_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
  const __m128 d = _mm_add_ps(c, _mm_movehl_ps(c, c));
  return _mm_cvtss_f32(_mm_add_ss(d, _mm_movehdup_ps(d)));
}
NIHAO_ALWAYS_INLINE float reduce_max(f32x16 a) noexcept {
  const __m256 b = _mm256_max_ps(lower_half(a.v), upper_half(a.v));
  const __m128 c = _mm_max_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
  const __m128 d = _mm_max_ps(c, _mm_movehl_ps(c, c));
  return _mm_cvtss_f32(_mm_max_ss(d, _mm_movehdup_ps(d)));
}
NIHAO_ALWAYS_INLINE std::int32_t reduce_add(i32x16 a) noexcept {
  const __m256i b = _mm256_add_epi32(lower_half(a.v), upper_half(a.v));
  __m128i c = _mm_add_epi32(_mm256_castsi256_si128(b), _mm256_extracti128_si256(b, 1));
  c = _mm_add_epi32(c, _mm_shuffle_epi32(c, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(c, _mm_shuffle_epi32(c, 0xb1)));
}
NIHAO_ALWAYS_INLINE std::int32_t reduce_max(i32x16 a) noexcept {
  const __m256i b = _mm256_max_epi32(lower_half(a.v), upper_half(a.v));
  __m128i c = _mm_max_epi32(_mm256_castsi256_si128(b), _mm256_extracti128_si256(b, 1));
  c = _mm_max_epi32(c, _mm_shuffle_epi32(c, 0x4e));
  return _mm_cvtsi128_si32(_mm_max_epi32(c, _mm_shuffle_epi32(c, 0xb1)));
}

NIHAO_ALWAYS_INLINE u8x64 load_u8(const std::uint8_t* p) noexcept { return {_mm512_loadu_si512(p)}; }
NIHAO_ALWAYS_INLINE void store_u8(std::uint8_t* p, u8x64 a) noexcept { _mm512_storeu_si512(p, a.v); }
NIHAO_ALWAYS_INLINE u8x64 set1_u8(int x) noexcept { return {_mm512_set1_epi8(static_cast<char>(x))}; }
NIHAO_ALWAYS_INLINE u8x64 bit_and(u8x64 a, u8x64 b) noexcept { return {_mm512_and_si512(a.v, b.v)}; }
NIHAO_ALWAYS_INLINE u8x64 bit_or(u8x64 a, u8x64 b) noexcept { return {_mm512_or_si512(a.v, b.v)}; }
NIHAO_ALWAYS_INLINE u8x64 bit_xor(u8x64 a, u8x64 b) noexcept { return {_mm512_xor_si512(a.v, b.v)}; }
// table[i] for every byte i of `index`, which is below 16.
NIHAO_ALWAYS_INLINE u8x64 lookup(const std::uint8_t (&table)[16], u8x64 index) noexcept {
  return {_mm512_shuffle_epi8(_mm512_maskz_broadcast_i32x4(every, _mm_loadu_si128(reinterpret_cast<const __m128i*>(table))),
                              index.v)};
}
// Shifts of 16-bit pairs: bits cross from one byte to its neighbour, so the caller masks them off.
template <int N>
NIHAO_ALWAYS_INLINE u8x64 shl16(u8x64 a) noexcept {
  return {_mm512_slli_epi16(a.v, N)};
}
template <int N>
NIHAO_ALWAYS_INLINE u8x64 shr16(u8x64 a) noexcept {
  return {_mm512_srli_epi16(a.v, N)};
}

// acc[lane] += sum over j < 4 of w[4 * lane + j] * a[4 * group + j], exactly; w holds unsigned codes below 128, a signed bytes,
// of which the sixteen around a group are there.
NIHAO_ALWAYS_INLINE i32x16 dot_codes(i32x16 acc, u8x64 w, const std::int8_t* a, int group) noexcept {
  std::int32_t four;
  std::memcpy(&four, a + 4 * group, 4);
  return {_mm512_dpbusd_epi32(acc.v, w.v, _mm512_set1_epi32(four))};
}
// The same for signed bytes of weights, less `s8_bias` * (sum of the four a): vpdpbusd wants unsigned codes, so the weights are
// taken plus 128, and the accumulator starts at -s8_bias * (sum of all a).
inline constexpr std::int32_t s8_bias = 128;
NIHAO_ALWAYS_INLINE i32x16 dot_s8(i32x16 acc, u8x64 w, const std::int8_t* a, int group) noexcept {
  return dot_codes(acc, {_mm512_xor_si512(w.v, _mm512_set1_epi8(-128))}, a, group);
}

}  // namespace avx512
}  // namespace NIHAO_ABI
}  // namespace nihao::simd
