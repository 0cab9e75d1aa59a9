// The lane vocabulary on AArch64's NEON with dot products of bytes: four registers each. What is loaded and stored as one array
// is in memory order, so lane i is lane i % 4 of register i / 4.
namespace nihao::simd {
inline namespace NIHAO_ABI {
namespace neon_dotprod {

struct f32x16 {
  float32x4_t v0, v1, v2, v3;
};
struct i32x16 {
  int32x4_t v0, v1, v2, v3;
};
struct u8x64 {
  uint8x16_t v0, v1, v2, v3;
};

inline constexpr int tile_tokens = 2;  // 8 integer + 8 float accumulators, weights, scales and constants: 32 registers

// One operation on each of the four registers.
#define NIHAO_FOUR(f, a) {f((a).v0), f((a).v1), f((a).v2), f((a).v3)}
#define NIHAO_FOUR_OF_TWO(f, a, b) {f((a).v0, (b).v0), f((a).v1, (b).v1), f((a).v2, (b).v2), f((a).v3, (b).v3)}

NIHAO_ALWAYS_INLINE f32x16 set1(float x) noexcept {
  const float32x4_t v = vdupq_n_f32(x);
  return {v, v, v, v};
}
NIHAO_ALWAYS_INLINE f32x16 zero() noexcept { return set1(0.0f); }
NIHAO_ALWAYS_INLINE f32x16 load(const float* p) noexcept {
  return {vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)};
}
NIHAO_ALWAYS_INLINE void store(float* p, f32x16 a) noexcept {
  vst1q_f32(p, a.v0), vst1q_f32(p + 4, a.v1), vst1q_f32(p + 8, a.v2), vst1q_f32(p + 12, a.v3);
}
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
  const auto* from = reinterpret_cast<const std::uint16_t*>(p);
  const float16x8_t a = vreinterpretq_f16_u16(vld1q_u16(from)), b = vreinterpretq_f16_u16(vld1q_u16(from + 8));
  return {vcvt_f32_f16(vget_low_f16(a)), vcvt_high_f32_f16(a), vcvt_f32_f16(vget_low_f16(b)), vcvt_high_f32_f16(b)};
}
NIHAO_ALWAYS_INLINE float32x4_t widen_bf16(uint16x4_t a) noexcept { return vreinterpretq_f32_u32(vshll_n_u16(a, 16)); }
NIHAO_ALWAYS_INLINE f32x16 load(const bf16* p) noexcept {
  const auto* from = reinterpret_cast<const std::uint16_t*>(p);
  return {widen_bf16(vld1_u16(from)), widen_bf16(vld1_u16(from + 4)), widen_bf16(vld1_u16(from + 8)),
          widen_bf16(vld1_u16(from + 12))};
}
NIHAO_ALWAYS_INLINE f32x16 load(const std::int8_t* p) noexcept {
  const int8x16_t all = vld1q_s8(p);
  const int16x8_t a = vmovl_s8(vget_low_s8(all)), b = vmovl_high_s8(all);
  return {vcvtq_f32_s32(vmovl_s16(vget_low_s16(a))), vcvtq_f32_s32(vmovl_high_s16(a)), vcvtq_f32_s32(vmovl_s16(vget_low_s16(b))),
          vcvtq_f32_s32(vmovl_high_s16(b))};
}
NIHAO_ALWAYS_INLINE f32x16 load(const std::uint8_t* p) noexcept {
  const uint8x16_t all = vld1q_u8(p);
  const uint16x8_t a = vmovl_u8(vget_low_u8(all)), b = vmovl_high_u8(all);
  return {vcvtq_f32_u32(vmovl_u16(vget_low_u16(a))), vcvtq_f32_u32(vmovl_high_u16(a)), vcvtq_f32_u32(vmovl_u16(vget_low_u16(b))),
          vcvtq_f32_u32(vmovl_high_u16(b))};
}

// e5m2 is the upper byte of a half. e4m3 has a half's layout but for its exponent, which begins 8 lower: its bits, moved, are the
// half of 1/256 of the value. (Its two NaNs become +-480/256: packing sees to those.)
NIHAO_ALWAYS_INLINE f32x16 widen_f16(uint16x8_t low, uint16x8_t high) noexcept {
  const float16x8_t a = vreinterpretq_f16_u16(low), b = vreinterpretq_f16_u16(high);
  return {vcvt_f32_f16(vget_low_f16(a)), vcvt_high_f32_f16(a), vcvt_f32_f16(vget_low_f16(b)), vcvt_high_f32_f16(b)};
}
NIHAO_ALWAYS_INLINE f32x16 load(const e5m2* p) noexcept {
  const uint8x16_t all = vld1q_u8(&p->bits);
  return widen_f16(vshll_n_u8(vget_low_u8(all), 8), vshll_n_u8(vget_high_u8(all), 8));
}
NIHAO_ALWAYS_INLINE uint16x8_t e4m3_as_half(uint8x8_t b) noexcept {
  return vorrq_u16(vandq_u16(vshll_n_u8(b, 7), vdupq_n_u16(0x3f80)), vandq_u16(vshll_n_u8(b, 8), vdupq_n_u16(0x8000)));
}
NIHAO_ALWAYS_INLINE f32x16 load_256ths(const e4m3* p) noexcept {
  const uint8x16_t all = vld1q_u8(&p->bits);
  return widen_f16(e4m3_as_half(vget_low_u8(all)), e4m3_as_half(vget_high_u8(all)));
}
// table[i] for the low (Half 0) or the high four bits i of sixteen bytes.
template <int Half>
NIHAO_ALWAYS_INLINE f32x16 lookup_nibbles(const float (&table)[16], const std::uint8_t* p) noexcept {
  float values[16];
  for (int i = 0; i < 16; ++i) values[i] = table[p[i] >> 4 * Half & 15];
  return load(values);
}

NIHAO_ALWAYS_INLINE f32x16 add(f32x16 a, f32x16 b) noexcept { return NIHAO_FOUR_OF_TWO(vaddq_f32, a, b); }
NIHAO_ALWAYS_INLINE f32x16 sub(f32x16 a, f32x16 b) noexcept { return NIHAO_FOUR_OF_TWO(vsubq_f32, a, b); }
NIHAO_ALWAYS_INLINE f32x16 mul(f32x16 a, f32x16 b) noexcept { return NIHAO_FOUR_OF_TWO(vmulq_f32, a, b); }
NIHAO_ALWAYS_INLINE f32x16 div(f32x16 a, f32x16 b) noexcept { return NIHAO_FOUR_OF_TWO(vdivq_f32, a, b); }
NIHAO_ALWAYS_INLINE f32x16 fma(f32x16 a, f32x16 b, f32x16 c) noexcept {
  return {vfmaq_f32(c.v0, a.v0, b.v0), vfmaq_f32(c.v1, a.v1, b.v1), vfmaq_f32(c.v2, a.v2, b.v2), vfmaq_f32(c.v3, a.v3, b.v3)};
}
// As x86 has them: the second operand if either is NaN. fmax and fmin would give the NaN.
NIHAO_ALWAYS_INLINE float32x4_t greater(float32x4_t a, float32x4_t b) noexcept { return vbslq_f32(vcgtq_f32(a, b), a, b); }
NIHAO_ALWAYS_INLINE float32x4_t less(float32x4_t a, float32x4_t b) noexcept { return vbslq_f32(vcltq_f32(a, b), a, b); }
NIHAO_ALWAYS_INLINE f32x16 max(f32x16 a, f32x16 b) noexcept { return NIHAO_FOUR_OF_TWO(greater, a, b); }
NIHAO_ALWAYS_INLINE f32x16 min(f32x16 a, f32x16 b) noexcept { return NIHAO_FOUR_OF_TWO(less, a, b); }
NIHAO_ALWAYS_INLINE f32x16 select_less(f32x16 a, f32x16 b, f32x16 yes, f32x16 no) noexcept {
  return {vbslq_f32(vcltq_f32(a.v0, b.v0), yes.v0, no.v0), vbslq_f32(vcltq_f32(a.v1, b.v1), yes.v1, no.v1),
          vbslq_f32(vcltq_f32(a.v2, b.v2), yes.v2, no.v2), vbslq_f32(vcltq_f32(a.v3, b.v3), yes.v3, no.v3)};
}

NIHAO_ALWAYS_INLINE i32x16 set1_i32(std::int32_t x) noexcept {
  const int32x4_t v = vdupq_n_s32(x);
  return {v, v, v, v};
}
NIHAO_ALWAYS_INLINE i32x16 zero_i32() noexcept { return set1_i32(0); }
NIHAO_ALWAYS_INLINE i32x16 load_i32(const std::int32_t* p) noexcept {
  return {vld1q_s32(p), vld1q_s32(p + 4), vld1q_s32(p + 8), vld1q_s32(p + 12)};
}
NIHAO_ALWAYS_INLINE i32x16 add(i32x16 a, i32x16 b) noexcept { return NIHAO_FOUR_OF_TWO(vaddq_s32, a, b); }
NIHAO_ALWAYS_INLINE i32x16 sub(i32x16 a, i32x16 b) noexcept { return NIHAO_FOUR_OF_TWO(vsubq_s32, a, b); }
NIHAO_ALWAYS_INLINE i32x16 max(i32x16 a, i32x16 b) noexcept { return NIHAO_FOUR_OF_TWO(vmaxq_s32, a, b); }
NIHAO_ALWAYS_INLINE i32x16 bit_and(i32x16 a, i32x16 b) noexcept { return NIHAO_FOUR_OF_TWO(vandq_s32, a, b); }
template <int N>
NIHAO_ALWAYS_INLINE i32x16 shl(i32x16 a) noexcept {
  return {vshlq_n_s32(a.v0, N), vshlq_n_s32(a.v1, N), vshlq_n_s32(a.v2, N), vshlq_n_s32(a.v3, N)};
}
NIHAO_ALWAYS_INLINE f32x16 to_f32(i32x16 a) noexcept { return NIHAO_FOUR(vcvtq_f32_s32, a); }
NIHAO_ALWAYS_INLINE i32x16 bits(f32x16 a) noexcept { return NIHAO_FOUR(vreinterpretq_s32_f32, a); }
NIHAO_ALWAYS_INLINE f32x16 from_bits(i32x16 a) noexcept { return NIHAO_FOUR(vreinterpretq_f32_s32, a); }
NIHAO_ALWAYS_INLINE void store_i8(std::int8_t* p, i32x16 a) noexcept {  // xtn truncates
  const int16x8_t low = vmovn_high_s32(vmovn_s32(a.v0), a.v1), high = vmovn_high_s32(vmovn_s32(a.v2), a.v3);
  vst1q_s8(p, vmovn_high_s16(vmovn_s16(low), high));
}
NIHAO_ALWAYS_INLINE void store_f16(f16* p,
                                   f32x16 a) noexcept {  // to nearest even, as the control register is at a program's start
  auto* to = reinterpret_cast<std::uint16_t*>(p);
  vst1q_u16(to, vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(a.v0), a.v1)));
  vst1q_u16(to + 8, vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(a.v2), a.v3)));
}

// Sums and maxima over the lanes: i with i + 8, then + 4, + 2, + 1. The order is part of the contract, and faddv's is another.
NIHAO_ALWAYS_INLINE float reduce_add(f32x16 a) noexcept {
  const float32x4_t b = vaddq_f32(vaddq_f32(a.v0, a.v2), vaddq_f32(a.v1, a.v3));
  const float32x2_t c = vadd_f32(vget_low_f32(b), vget_high_f32(b));
  return vget_lane_f32(c, 0) + vget_lane_f32(c, 1);
}
NIHAO_ALWAYS_INLINE float reduce_max(f32x16 a) noexcept {
  const float32x4_t b = greater(greater(a.v0, a.v2), greater(a.v1, a.v3));
  const float32x4_t c = greater(b, vextq_f32(b, b, 2));
  return vgetq_lane_f32(greater(c, vextq_f32(c, c, 1)), 0);
}
NIHAO_ALWAYS_INLINE std::int32_t reduce_add(i32x16 a) noexcept {
  return vaddvq_s32(vaddq_s32(vaddq_s32(a.v0, a.v2), vaddq_s32(a.v1, a.v3)));
}
NIHAO_ALWAYS_INLINE std::int32_t reduce_max(i32x16 a) noexcept {
  return vmaxvq_s32(vmaxq_s32(vmaxq_s32(a.v0, a.v2), vmaxq_s32(a.v1, a.v3)));
}

NIHAO_ALWAYS_INLINE u8x64 load_u8(const std::uint8_t* p) noexcept {
  return {vld1q_u8(p), vld1q_u8(p + 16), vld1q_u8(p + 32), vld1q_u8(p + 48)};
}
NIHAO_ALWAYS_INLINE void store_u8(std::uint8_t* p, u8x64 a) noexcept {
  vst1q_u8(p, a.v0), vst1q_u8(p + 16, a.v1), vst1q_u8(p + 32, a.v2), vst1q_u8(p + 48, a.v3);
}
NIHAO_ALWAYS_INLINE u8x64 set1_u8(int x) noexcept {
  const uint8x16_t v = vdupq_n_u8(static_cast<std::uint8_t>(x));
  return {v, v, v, v};
}
NIHAO_ALWAYS_INLINE u8x64 bit_and(u8x64 a, u8x64 b) noexcept { return NIHAO_FOUR_OF_TWO(vandq_u8, a, b); }
NIHAO_ALWAYS_INLINE u8x64 bit_or(u8x64 a, u8x64 b) noexcept { return NIHAO_FOUR_OF_TWO(vorrq_u8, a, b); }
NIHAO_ALWAYS_INLINE u8x64 bit_xor(u8x64 a, u8x64 b) noexcept { return NIHAO_FOUR_OF_TWO(veorq_u8, a, b); }
// table[i] for every byte i of `index`, which is below 16.
NIHAO_ALWAYS_INLINE u8x64 lookup(const std::uint8_t (&table)[16], u8x64 index) noexcept {
  const uint8x16_t t = vld1q_u8(table);
  return {vqtbl1q_u8(t, index.v0), vqtbl1q_u8(t, index.v1), vqtbl1q_u8(t, index.v2), vqtbl1q_u8(t, index.v3)};
}
// Shifts of 16-bit pairs: bits cross from one byte to its neighbour, so the caller masks them off.
template <int N>
NIHAO_ALWAYS_INLINE uint8x16_t shl16(uint8x16_t a) noexcept {
  return vreinterpretq_u8_u16(vshlq_n_u16(vreinterpretq_u16_u8(a), N));
}
template <int N>
NIHAO_ALWAYS_INLINE uint8x16_t shr16(uint8x16_t a) noexcept {
  return vreinterpretq_u8_u16(vshrq_n_u16(vreinterpretq_u16_u8(a), N));
}
template <int N>
NIHAO_ALWAYS_INLINE u8x64 shl16(u8x64 a) noexcept {
  return NIHAO_FOUR(shl16<N>, a);
}
template <int N>
NIHAO_ALWAYS_INLINE u8x64 shr16(u8x64 a) noexcept {
  return NIHAO_FOUR(shr16<N>, a);
}

// acc += the sums of four signed x signed byte products, the second four being group N of `a`. Nothing saturates.
template <int N>
NIHAO_ALWAYS_INLINE int32x4_t dot4(int32x4_t acc, uint8x16_t w, int8x16_t a) noexcept {
#if defined(__ARM_FEATURE_DOTPROD)
  return vdotq_laneq_s32(acc, vreinterpretq_s8_u8(w), a, N);
#else  // a region of clang's defines no macro, and its header has the intrinsic where the unit's flags have the instruction
  __asm__("sdot %0.4s, %1.16b, %2.4b[%3]" : "+w"(acc) : "w"(w), "w"(a), "i"(N));
  return acc;
#endif
}
template <int N>
NIHAO_ALWAYS_INLINE i32x16 dot16(i32x16 acc, u8x64 w, int8x16_t a) noexcept {
  return {dot4<N>(acc.v0, w.v0, a), dot4<N>(acc.v1, w.v1, a), dot4<N>(acc.v2, w.v2, a), dot4<N>(acc.v3, w.v3, a)};
}
// acc[lane] += sum over j < 4 of w[4 * lane + j] * a[4 * group + j], exactly, for signed bytes w: nothing to repair, so the bias
// is 0. sdot takes four of the sixteen activations of a register, so four groups share one load; `group` should be a constant.
inline constexpr std::int32_t s8_bias = 0;
NIHAO_ALWAYS_INLINE i32x16 dot_s8(i32x16 acc, u8x64 w, const std::int8_t* a, int group) noexcept {
  const int8x16_t four_groups = vld1q_s8(a + group / 4 * 16);
  switch (group % 4) {
    case 0: return dot16<0>(acc, w, four_groups);
    case 1: return dot16<1>(acc, w, four_groups);
    case 2: return dot16<2>(acc, w, four_groups);
    default: return dot16<3>(acc, w, four_groups);
  }
}
// The same for unsigned codes below 128: as signed bytes they are what they were.
NIHAO_ALWAYS_INLINE i32x16 dot_codes(i32x16 acc, u8x64 w, const std::int8_t* a, int group) noexcept {
  return dot_s8(acc, w, a, group);
}

#undef NIHAO_FOUR
#undef NIHAO_FOUR_OF_TWO

}  // namespace neon_dotprod
}  // namespace NIHAO_ABI
}  // namespace nihao::simd
