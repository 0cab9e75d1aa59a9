// The lane vocabulary on anything xsimd knows, at the flags of the including unit: sixteen lanes in as many batches as it takes.
// Integer work is plain loops over sixteen lanes, which every compiler vectorises. It is the yardstick of the other sets' bits.
namespace nihao::simd {
inline namespace NIHAO_ABI {
namespace portable {

using batch = xsimd::batch<float>;
inline constexpr std::size_t batch_lanes = batch::size;
inline constexpr std::size_t batches = 16 / batch_lanes;
static_assert(batches * batch_lanes == 16, "nihao's lane vocabulary needs vectors of 1, 2, 4, 8 or 16 floats.");

struct f32x16 {
  batch v[batches];
};
struct i32x16 {
  std::int32_t v[16];
};
struct u8x64 {
  std::uint8_t v[64];
};

inline constexpr int tile_tokens = 1;

template <class F>
NIHAO_ALWAYS_INLINE f32x16 each_batch(F f) noexcept {
  f32x16 r;
  for (std::size_t i = 0; i < batches; ++i) r.v[i] = f(i);
  return r;
}
template <class F>
NIHAO_ALWAYS_INLINE i32x16 each_lane(F f) noexcept {
  i32x16 r;
  for (int i = 0; i < 16; ++i) r.v[i] = f(i);
  return r;
}
template <class F>
NIHAO_ALWAYS_INLINE u8x64 each_byte(F f) noexcept {
  u8x64 r;
  for (int i = 0; i < 64; ++i) r.v[i] = static_cast<std::uint8_t>(f(i));
  return r;
}

NIHAO_ALWAYS_INLINE f32x16 set1(float x) noexcept {
  return each_batch([&](std::size_t) { return batch(x); });
}
NIHAO_ALWAYS_INLINE f32x16 zero() noexcept { return set1(0.0f); }
NIHAO_ALWAYS_INLINE f32x16 load(const float* p) noexcept {
  return each_batch([&](std::size_t i) { return batch::load_unaligned(p + i * batch_lanes); });
}
NIHAO_ALWAYS_INLINE void store(float* p, f32x16 a) noexcept {
  for (std::size_t i = 0; i < batches; ++i) a.v[i].store_unaligned(p + i * batch_lanes);
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
template <class T>
inline f32x16 load_widened(const T* p) noexcept {
  float wide[16];
  for (int i = 0; i < 16; ++i) {
    if constexpr (std::is_class_v<T>) wide[i] = to_float(p[i]);
    else wide[i] = static_cast<float>(p[i]);
  }
  return load(wide);
}
NIHAO_ALWAYS_INLINE f32x16 load(const f16* p) noexcept { return load_widened(p); }
NIHAO_ALWAYS_INLINE f32x16 load(const bf16* p) noexcept { return load_widened(p); }
NIHAO_ALWAYS_INLINE f32x16 load(const std::int8_t* p) noexcept { return load_widened(p); }
NIHAO_ALWAYS_INLINE f32x16 load(const std::uint8_t* p) noexcept { return load_widened(p); }

// e4m3 comes as 1/256 of its value, as on the sets that make a half of it.
NIHAO_ALWAYS_INLINE f32x16 load(const e5m2* p) noexcept { return load_widened(p); }
inline f32x16 load_256ths(const e4m3* p) noexcept {
  float wide[16];
  for (int i = 0; i < 16; ++i) wide[i] = to_float(p[i]) * 0x1p-8f;
  return load(wide);
}
// table[i] for the low (Half 0) or the high four bits i of sixteen bytes.
template <int Half>
inline f32x16 lookup_nibbles(const float (&table)[16], const std::uint8_t* p) noexcept {
  float values[16];
  for (int i = 0; i < 16; ++i) values[i] = table[p[i] >> 4 * Half & 15];
  return load(values);
}

NIHAO_ALWAYS_INLINE f32x16 add(f32x16 a, f32x16 b) noexcept {
  return each_batch([&](std::size_t i) { return a.v[i] + b.v[i]; });
}
NIHAO_ALWAYS_INLINE f32x16 sub(f32x16 a, f32x16 b) noexcept {
  return each_batch([&](std::size_t i) { return a.v[i] - b.v[i]; });
}
NIHAO_ALWAYS_INLINE f32x16 mul(f32x16 a, f32x16 b) noexcept {
  return each_batch([&](std::size_t i) { return a.v[i] * b.v[i]; });
}
// Lane by lane, which compilers make the division of whole vectors: xsimd 8 on Arm multiplies by a refined reciprocal instead.
inline f32x16 div(const f32x16& a, const f32x16& b) noexcept {
  float x[16], y[16];
  store(x, a), store(y, b);
  for (int i = 0; i < 16; ++i) x[i] /= y[i];
  return load(x);
}
// Lane by lane: the contract is one rounding, and not every version of xsimd fuses on every set. Compilers make it one
// instruction, or, on an x86 without one, sixteen calls of the C library that are better not inlined.
#if NIHAO_X86 && !defined(__FMA__)
NIHAO_NOINLINE
#endif
inline f32x16 fma(const f32x16& a, const f32x16& b, const f32x16& c) noexcept {
  float x[16], y[16], z[16];
  store(x, a), store(y, b), store(z, c);
  for (int i = 0; i < 16; ++i) z[i] = std::fma(x[i], y[i], z[i]);
  return load(z);
}
// As x86 has them: the second operand if either is NaN.
NIHAO_ALWAYS_INLINE f32x16 max(f32x16 a, f32x16 b) noexcept {
  return each_batch([&](std::size_t i) { return xsimd::select(a.v[i] > b.v[i], a.v[i], b.v[i]); });
}
NIHAO_ALWAYS_INLINE f32x16 min(f32x16 a, f32x16 b) noexcept {
  return each_batch([&](std::size_t i) { return xsimd::select(a.v[i] < b.v[i], a.v[i], b.v[i]); });
}
NIHAO_ALWAYS_INLINE f32x16 select_less(f32x16 a, f32x16 b, f32x16 yes, f32x16 no) noexcept {
  return each_batch([&](std::size_t i) { return xsimd::select(a.v[i] < b.v[i], yes.v[i], no.v[i]); });
}

// Sums wrap as machine integers do; they are taken unsigned, where C++ defines that.
NIHAO_ALWAYS_INLINE std::int32_t wrap(std::uint32_t x) noexcept { return static_cast<std::int32_t>(x); }
NIHAO_ALWAYS_INLINE std::uint32_t raw(std::int32_t x) noexcept { return static_cast<std::uint32_t>(x); }
NIHAO_NOINLINE inline i32x16 set1_i32(std::int32_t x) noexcept {
  return each_lane([&](int) { return x; });
}
NIHAO_NOINLINE inline i32x16 zero_i32() noexcept { return set1_i32(0); }
NIHAO_NOINLINE inline i32x16 load_i32(const std::int32_t* p) noexcept {
  return each_lane([&](int i) { return p[i]; });
}
NIHAO_NOINLINE inline i32x16 add(const i32x16& a, const i32x16& b) noexcept {
  return each_lane([&](int i) { return wrap(raw(a.v[i]) + raw(b.v[i])); });
}
NIHAO_NOINLINE inline i32x16 sub(const i32x16& a, const i32x16& b) noexcept {
  return each_lane([&](int i) { return wrap(raw(a.v[i]) - raw(b.v[i])); });
}
NIHAO_NOINLINE inline i32x16 max(const i32x16& a, const i32x16& b) noexcept {
  return each_lane([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
NIHAO_NOINLINE inline i32x16 bit_and(const i32x16& a, const i32x16& b) noexcept {
  return each_lane([&](int i) { return a.v[i] & b.v[i]; });
}
template <int N>
NIHAO_NOINLINE inline i32x16 shl(const i32x16& a) noexcept {
  return each_lane([&](int i) { return wrap(raw(a.v[i]) << N); });
}
NIHAO_NOINLINE inline f32x16 to_f32(const i32x16& a) noexcept {
  float wide[16];
  for (int i = 0; i < 16; ++i) wide[i] = static_cast<float>(a.v[i]);
  return load(wide);
}
NIHAO_NOINLINE inline i32x16 bits(const f32x16& a) noexcept {
  float f[16];
  i32x16 r;
  store(f, a);
  std::memcpy(r.v, f, sizeof r.v);
  return r;
}
NIHAO_ALWAYS_INLINE f32x16 from_bits(i32x16 a) noexcept {
  float f[16];
  std::memcpy(f, a.v, sizeof f);
  return load(f);
}
inline void store_i8(std::int8_t* p, i32x16 a) noexcept {
  for (int i = 0; i < 16; ++i) p[i] = static_cast<std::int8_t>(a.v[i]);
}
inline void store_f16(f16* p, f32x16 a) noexcept {
  float f[16];
  store(f, a);
  for (int i = 0; i < 16; ++i) p[i] = to_f16(f[i]);
}

// Sums and maxima over the lanes: i with i + 8, then + 4, + 2, + 1. The order is part of the contract.
inline float reduce_add(f32x16 a) noexcept {
  float f[16];
  store(f, a);
  for (int half = 8; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) f[i] += f[i + half];
  return f[0];
}
inline float reduce_max(f32x16 a) noexcept {
  float f[16];
  store(f, a);
  for (int half = 8; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) f[i] = f[i] > f[i + half] ? f[i] : f[i + half];
  return f[0];
}
inline std::int32_t reduce_add(i32x16 a) noexcept {
  std::uint32_t sum = 0;
  for (int i = 0; i < 16; ++i) sum += raw(a.v[i]);
  return wrap(sum);
}
inline std::int32_t reduce_max(i32x16 a) noexcept {
  std::int32_t most = a.v[0];
  for (int i = 1; i < 16; ++i) most = a.v[i] > most ? a.v[i] : most;
  return most;
}

NIHAO_NOINLINE inline u8x64 load_u8(const std::uint8_t* p) noexcept {
  return each_byte([&](int i) { return p[i]; });
}
inline void store_u8(std::uint8_t* p, const u8x64& a) noexcept { std::memcpy(p, a.v, 64); }
NIHAO_NOINLINE inline u8x64 set1_u8(int x) noexcept {
  return each_byte([&](int) { return x; });
}
// table[i] for every byte i of `index`, which is below 16.
NIHAO_NOINLINE inline u8x64 lookup(const std::uint8_t (&table)[16], const u8x64& index) noexcept {
  return each_byte([&](int i) { return table[index.v[i]]; });
}
NIHAO_NOINLINE inline u8x64 bit_and(const u8x64& a, const u8x64& b) noexcept {
  return each_byte([&](int i) { return a.v[i] & b.v[i]; });
}
NIHAO_NOINLINE inline u8x64 bit_or(const u8x64& a, const u8x64& b) noexcept {
  return each_byte([&](int i) { return a.v[i] | b.v[i]; });
}
NIHAO_NOINLINE inline u8x64 bit_xor(const u8x64& a, const u8x64& b) noexcept {
  return each_byte([&](int i) { return a.v[i] ^ b.v[i]; });
}
// Shifts of 16-bit pairs: bits cross from one byte to its neighbour, so the caller masks them off.
template <int N>
NIHAO_NOINLINE inline u8x64 shl16(const u8x64& a) noexcept {
  return each_byte([&](int i) { return ((i % 2 ? a.v[i - 1] >> (8 - N) : 0) | (a.v[i] << N)) & 255; });
}
template <int N>
NIHAO_NOINLINE inline u8x64 shr16(const u8x64& a) noexcept {
  return each_byte([&](int i) { return ((i % 2 ? 0 : a.v[i + 1] << (8 - N)) | (a.v[i] >> N)) & 255; });
}

// acc[lane] += sum over j < 4 of w[4 * lane + j] * a[4 * group + j], exactly; w holds unsigned codes below 128, a signed bytes,
// of which the sixteen around a group are there.
NIHAO_NOINLINE inline i32x16 dot_codes(i32x16 acc, const u8x64& w, const std::int8_t* a, int group) noexcept {
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 4; ++j) acc.v[i] += w.v[4 * i + j] * a[4 * group + j];
  return acc;
}
// The same for signed bytes of weights. Nothing to repair, so the bias is 0.
inline constexpr std::int32_t s8_bias = 0;
NIHAO_NOINLINE inline i32x16 dot_s8(i32x16 acc, const u8x64& w, const std::int8_t* a, int group) noexcept {
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 4; ++j) acc.v[i] += static_cast<std::int8_t>(w.v[4 * i + j]) * a[4 * group + j];
  return acc;
}

}  // namespace portable
}  // namespace NIHAO_ABI
}  // namespace nihao::simd
