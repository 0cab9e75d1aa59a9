// The lane vocabulary on AVX2 with FMA and F16C: two YMM registers each. NIHAO_DOT_VNNI says whether 256-bit vpdpbusd is there.
namespace nihao::simd {
inline namespace NIHAO_ABI {
namespace NIHAO_ISA_NAMESPACE {

struct f32x16 {
  __m256 lo, hi;
};
struct i32x16 {
  __m256i lo, hi;
};
struct u8x64 {
  __m256i lo, hi;
};

inline constexpr int tile_tokens = 2;  // 4 integer + 4 float accumulators, weights and constants: 16 registers

NIHAO_ALWAYS_INLINE f32x16 zero() noexcept { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
NIHAO_ALWAYS_INLINE f32x16 set1(float x) noexcept { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
NIHAO_ALWAYS_INLINE f32x16 load(const float* p) noexcept { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
NIHAO_ALWAYS_INLINE void store(float* p, f32x16 a) noexcept { _mm256_storeu_ps(p, a.lo), _mm256_storeu_ps(p + 8, a.hi); }
NIHAO_ALWAYS_INLINE f32x16 load(const float* p, int n) noexcept {
  float padded[16] = {};
  std::memcpy(padded, p, static_cast<std::size_t>(n) * sizeof(float));
  return load(padded);
}
NIHAO_ALWAYS_INLINE void store(float* p, f32x16 a, int n) noexcept {
  float padded[16];
  store(padded, a);
  std::memcpy(p, padded, static_cast<std::size_t>(n) * sizeof(float));
}
NIHAO_ALWAYS_INLINE f32x16 load(const f16* p) noexcept {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
          _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
}
NIHAO_ALWAYS_INLINE __m256 widen_bf16(const bf16* p) noexcept {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))), 16));
}
NIHAO_ALWAYS_INLINE f32x16 load(const bf16* p) noexcept { return {widen_bf16(p), widen_bf16(p + 8)}; }
NIHAO_ALWAYS_INLINE f32x16 load(const std::int8_t* p) noexcept {
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)))),
          _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + 8))))};
}
NIHAO_ALWAYS_INLINE f32x16 load(const std::uint8_t* p) noexcept {
  return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)))),
          _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + 8))))};
}

// e5m2 is the upper byte of a half. e4m3 has a half's layout but for its exponent, which begins 8 lower: its bits, moved, are the
// half of 1/256 of the value. (Its two NaNs become +-480/256: packing sees to those.)
NIHAO_ALWAYS_INLINE __m128i widen_u8(const void* p) noexcept {
  return _mm_cvtepu8_epi16(_mm_loadl_epi64(static_cast<const __m128i*>(p)));
}
NIHAO_ALWAYS_INLINE f32x16 load(const e5m2* p) noexcept {
  return {_mm256_cvtph_ps(_mm_slli_epi16(widen_u8(p), 8)), _mm256_cvtph_ps(_mm_slli_epi16(widen_u8(p + 8), 8))};
}
NIHAO_ALWAYS_INLINE __m256 widen_e4m3(const e4m3* p) noexcept {
  const __m128i b = widen_u8(p), rest = _mm_and_si128(_mm_slli_epi16(b, 7), _mm_set1_epi16(0x3f80));
  return _mm256_cvtph_ps(_mm_or_si128(rest, _mm_and_si128(_mm_slli_epi16(b, 8), _mm_set1_epi16(static_cast<short>(0x8000)))));
}
NIHAO_ALWAYS_INLINE f32x16 load_256ths(const e4m3* p) noexcept { return {widen_e4m3(p), widen_e4m3(p + 8)}; }
NIHAO_ALWAYS_INLINE __m256 lookup_eight(const float* table, __m256i i) noexcept {  // bit 3 of i says which half of the table
  return _mm256_blendv_ps(_mm256_permutevar8x32_ps(_mm256_loadu_ps(table), i),
                          _mm256_permutevar8x32_ps(_mm256_loadu_ps(table + 8), i), _mm256_castsi256_ps(_mm256_slli_epi32(i, 28)));
}
// table[i] for the low (Half 0) or the high four bits i of sixteen bytes.
template <int Half>
NIHAO_ALWAYS_INLINE f32x16 lookup_nibbles(const float (&table)[16], const std::uint8_t* p) noexcept {
  const __m256i a = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  const __m256i b = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + 8)));
  return {lookup_eight(table, Half == 0 ? a : _mm256_srli_epi32(a, 4)),
          lookup_eight(table, Half == 0 ? b : _mm256_srli_epi32(b, 4))};
}

NIHAO_ALWAYS_INLINE f32x16 add(f32x16 a, f32x16 b) noexcept { return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)}; }
NIHAO_ALWAYS_INLINE f32x16 sub(f32x16 a, f32x16 b) noexcept { return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)}; }
NIHAO_ALWAYS_INLINE f32x16 mul(f32x16 a, f32x16 b) noexcept { return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)}; }
NIHAO_ALWAYS_INLINE f32x16 div(f32x16 a, f32x16 b) noexcept { return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)}; }
NIHAO_ALWAYS_INLINE f32x16 fma(f32x16 a, f32x16 b, f32x16 c) noexcept {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
NIHAO_ALWAYS_INLINE f32x16 max(f32x16 a, f32x16 b) noexcept { return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)}; }
NIHAO_ALWAYS_INLINE f32x16 min(f32x16 a, f32x16 b) noexcept { return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)}; }
NIHAO_ALWAYS_INLINE f32x16 select_less(f32x16 a, f32x16 b, f32x16 yes, f32x16 no) noexcept {
  return {_mm256_blendv_ps(no.lo, yes.lo, _mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ)),
          _mm256_blendv_ps(no.hi, yes.hi, _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ))};
}

NIHAO_ALWAYS_INLINE i32x16 zero_i32() noexcept { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
NIHAO_ALWAYS_INLINE i32x16 set1_i32(std::int32_t x) noexcept { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
NIHAO_ALWAYS_INLINE i32x16 load_i32(const std::int32_t* p) noexcept {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 8))};
}
NIHAO_ALWAYS_INLINE i32x16 add(i32x16 a, i32x16 b) noexcept {
  return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)};
}
NIHAO_ALWAYS_INLINE i32x16 sub(i32x16 a, i32x16 b) noexcept {
  return {_mm256_sub_epi32(a.lo, b.lo), _mm256_sub_epi32(a.hi, b.hi)};
}
NIHAO_ALWAYS_INLINE i32x16 max(i32x16 a, i32x16 b) noexcept {
  return {_mm256_max_epi32(a.lo, b.lo), _mm256_max_epi32(a.hi, b.hi)};
}
NIHAO_ALWAYS_INLINE i32x16 bit_and(i32x16 a, i32x16 b) noexcept {
  return {_mm256_and_si256(a.lo, b.lo), _mm256_and_si256(a.hi, b.hi)};
}
template <int N>
NIHAO_ALWAYS_INLINE i32x16 shl(i32x16 a) noexcept {
  return {_mm256_slli_epi32(a.lo, N), _mm256_slli_epi32(a.hi, N)};
}
NIHAO_ALWAYS_INLINE f32x16 to_f32(i32x16 a) noexcept { return {_mm256_cvtepi32_ps(a.lo), _mm256_cvtepi32_ps(a.hi)}; }
NIHAO_ALWAYS_INLINE i32x16 bits(f32x16 a) noexcept { return {_mm256_castps_si256(a.lo), _mm256_castps_si256(a.hi)}; }
NIHAO_ALWAYS_INLINE f32x16 from_bits(i32x16 a) noexcept { return {_mm256_castsi256_ps(a.lo), _mm256_castsi256_ps(a.hi)}; }
NIHAO_ALWAYS_INLINE void store_i8(std::int8_t* p, i32x16 a) noexcept {
  const __m256i low_byte = _mm256_set1_epi32(255);  // truncation, as vpmovdb does it, not saturation
  const __m256i w = _mm256_packus_epi32(_mm256_and_si256(a.lo, low_byte), _mm256_and_si256(a.hi, low_byte));
  const __m256i b = _mm256_packus_epi16(w, w);  // dwords 0: a.lo[0..3], 1: a.hi[0..3], 4: a.lo[4..7], 5: a.hi[4..7]
  const __m256i ordered = _mm256_permutevar8x32_epi32(b, _mm256_setr_epi32(0, 4, 1, 5, 0, 0, 0, 0));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(ordered));
}
NIHAO_ALWAYS_INLINE void store_f16(f16* p, f32x16 a) noexcept {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(a.lo, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(a.hi, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

// Sums and maxima over the lanes: i with i + 8, then + 4, + 2, + 1. The order is part of the contract.
NIHAO_ALWAYS_INLINE float reduce_add(f32x16 a) noexcept {
  const __m256 b = _mm256_add_ps(a.lo, a.hi);
  const __m128 c = _mm_add_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
  const __m128 d = _mm_add_ps(c, _mm_movehl_ps(c, c));
  return _mm_cvtss_f32(_mm_add_ss(d, _mm_movehdup_ps(d)));
}
NIHAO_ALWAYS_INLINE float reduce_max(f32x16 a) noexcept {
  const __m256 b = _mm256_max_ps(a.lo, a.hi);
  const __m128 c = _mm_max_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
  const __m128 d = _mm_max_ps(c, _mm_movehl_ps(c, c));
  return _mm_cvtss_f32(_mm_max_ss(d, _mm_movehdup_ps(d)));
}
NIHAO_ALWAYS_INLINE std::int32_t reduce_add(i32x16 a) noexcept {
  const __m256i b = _mm256_add_epi32(a.lo, a.hi);
  __m128i c = _mm_add_epi32(_mm256_castsi256_si128(b), _mm256_extracti128_si256(b, 1));
  c = _mm_add_epi32(c, _mm_shuffle_epi32(c, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(c, _mm_shuffle_epi32(c, 0xb1)));
}
NIHAO_ALWAYS_INLINE std::int32_t reduce_max(i32x16 a) noexcept {
  const __m256i b = _mm256_max_epi32(a.lo, a.hi);
  __m128i c = _mm_max_epi32(_mm256_castsi256_si128(b), _mm256_extracti128_si256(b, 1));
  c = _mm_max_epi32(c, _mm_shuffle_epi32(c, 0x4e));
  return _mm_cvtsi128_si32(_mm_max_epi32(c, _mm_shuffle_epi32(c, 0xb1)));
}

NIHAO_ALWAYS_INLINE u8x64 load_u8(const std::uint8_t* p) noexcept {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32))};
}
NIHAO_ALWAYS_INLINE void store_u8(std::uint8_t* p, u8x64 a) noexcept {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.lo);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 32), a.hi);
}
NIHAO_ALWAYS_INLINE u8x64 set1_u8(int x) noexcept {
  return {_mm256_set1_epi8(static_cast<char>(x)), _mm256_set1_epi8(static_cast<char>(x))};
}
NIHAO_ALWAYS_INLINE u8x64 bit_and(u8x64 a, u8x64 b) noexcept {
  return {_mm256_and_si256(a.lo, b.lo), _mm256_and_si256(a.hi, b.hi)};
}
NIHAO_ALWAYS_INLINE u8x64 bit_or(u8x64 a, u8x64 b) noexcept { return {_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)}; }
NIHAO_ALWAYS_INLINE u8x64 bit_xor(u8x64 a, u8x64 b) noexcept {
  return {_mm256_xor_si256(a.lo, b.lo), _mm256_xor_si256(a.hi, b.hi)};
}
// table[i] for every byte i of `index`, which is below 16.
NIHAO_ALWAYS_INLINE u8x64 lookup(const std::uint8_t (&table)[16], u8x64 index) noexcept {
  const __m256i t = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
  return {_mm256_shuffle_epi8(t, index.lo), _mm256_shuffle_epi8(t, index.hi)};
}
// Shifts of 16-bit pairs: bits cross from one byte to its neighbour, so the caller masks them off.
template <int N>
NIHAO_ALWAYS_INLINE u8x64 shl16(u8x64 a) noexcept {
  return {_mm256_slli_epi16(a.lo, N), _mm256_slli_epi16(a.hi, N)};
}
template <int N>
NIHAO_ALWAYS_INLINE u8x64 shr16(u8x64 a) noexcept {
  return {_mm256_srli_epi16(a.lo, N), _mm256_srli_epi16(a.hi, N)};
}

// acc += the sums of four unsigned x signed byte products. Without vpdpbusd, vpmaddubsw adds pairs in 16 bits with saturation:
// unsigned bytes up to 128 cannot saturate (2 * 128 * 127 < 2^15).
NIHAO_ALWAYS_INLINE __m256i dot4(__m256i acc, __m256i u, __m256i s) noexcept {
#if NIHAO_DOT_VNNI
  return _mm256_dpbusd_avx_epi32(acc, u, s);
#else
  return _mm256_add_epi32(acc, _mm256_madd_epi16(_mm256_maddubs_epi16(u, s), _mm256_set1_epi16(1)));
#endif
}
// acc[lane] += sum over j < 4 of w[4 * lane + j] * a[4 * group + j], exactly; w holds unsigned codes below 128, a signed bytes,
// of which the sixteen around a group are there.
NIHAO_ALWAYS_INLINE i32x16 dot_codes(i32x16 acc, u8x64 w, const std::int8_t* a, int group) noexcept {
  std::int32_t four;
  std::memcpy(&four, a + 4 * group, 4);
  const __m256i s = _mm256_set1_epi32(four);
  return {dot4(acc.lo, w.lo, s), dot4(acc.hi, w.hi, s)};
}
// The same for signed bytes of weights: |w| times a with w's sign. Nothing to repair, so the bias is 0.
inline constexpr std::int32_t s8_bias = 0;
NIHAO_ALWAYS_INLINE i32x16 dot_s8(i32x16 acc, u8x64 w, const std::int8_t* a, int group) noexcept {
  std::int32_t four;
  std::memcpy(&four, a + 4 * group, 4);
  const __m256i s = _mm256_set1_epi32(four);
  return {dot4(acc.lo, _mm256_abs_epi8(w.lo), _mm256_sign_epi8(s, w.lo)),
          dot4(acc.hi, _mm256_abs_epi8(w.hi), _mm256_sign_epi8(s, w.hi))};
}

}  // namespace NIHAO_ISA_NAMESPACE
}  // namespace NIHAO_ABI
}  // namespace nihao::simd
