// Every operation of the lane vocabulary on the same inputs, into one array: compiled once per instruction set.
namespace nihao::simd {
inline namespace NIHAO_ABI {
namespace NIHAO_ISA_NAMESPACE {

inline void exp_all(const float* x, float* y) noexcept { store(y, exp(load(x))); }

NIHAO_ALWAYS_INLINE void put_row(float* out, int& row, f32x16 v) noexcept { store(out + 16 * row++, v); }

// in: 64 floats; bytes: 128; out: 36 rows of 16 floats.
inline void all_operations(const float* in, const std::uint8_t* bytes, float* out) noexcept {
  const f32x16 a = load(in), b = load(in + 16), c = load(in + 32);
  const auto* i8 = reinterpret_cast<const std::int8_t*>(bytes);
  f16 half[16];
  store_f16(half, a);
  bf16 brain[16];
  for (int i = 0; i < 16; ++i) brain[i] = to_bf16(in[i]);
  std::int8_t codes[64];
  store_i8(codes, bits(a)), store_i8(codes + 16, bits(b)), store_i8(codes + 32, bits(c)), store_i8(codes + 48, bits(a));
  int row = 0;
  put_row(out, row, add(a, b)), put_row(out, row, sub(a, b)), put_row(out, row, mul(a, b)), put_row(out, row, div(a, b)),
      put_row(out, row, fma(a, b, c)), put_row(out, row, max(a, b)), put_row(out, row, min(a, b));
  put_row(out, row, select_less(a, b, c, a)), put_row(out, row, load(in + 3, 5)), put_row(out, row, load(half)),
      put_row(out, row, load(brain)), put_row(out, row, load(i8)), put_row(out, row, load(bytes));
  put_row(out, row, load(codes)), put_row(out, row, load(codes + 16)), put_row(out, row, to_f32(add(bits(a), bits(b)))),
      put_row(out, row, to_f32(sub(bits(a), bits(b))));
  put_row(out, row, to_f32(max(bits(a), bits(b)))), put_row(out, row, to_f32(bit_and(bits(a), bits(b)))),
      put_row(out, row, to_f32(shl<5>(bits(a)))), put_row(out, row, from_bits(bits(c)));
  put_row(out, row, set1(reduce_add(a))), put_row(out, row, set1(reduce_max(b))),
      put_row(out, row, set1(static_cast<float>(reduce_add(bits(a)) & 0xffff)));
  put_row(out, row, set1(static_cast<float>(reduce_max(bits(b)) & 0xffff))), put_row(out, row, sigmoid(c)),
      put_row(out, row, exp(a));
  const u8x64 w = load_u8(bytes), low = bit_and(w, set1_u8(127)), high = bit_and(shr16<4>(w), set1_u8(15));
  put_row(out, row, to_f32(dot_codes(zero_i32(), low, i8 + 64, 0))),
      put_row(out, row, to_f32(dot_codes(set1_i32(-7), high, i8 + 64, 1)));
  put_row(out, row, to_f32(dot_codes(zero_i32(), bit_and(shl16<3>(w), set1_u8(0x78)), i8 + 64, 2)));
  put_row(out, row, to_f32(dot_codes(zero_i32(), bit_xor(bit_or(low, high), set1_u8(1)), i8 + 64, 3)));
  // The signed product is what it is once its bias is paid for.
  const std::int32_t sum = i8[80] + i8[81] + i8[82] + i8[83];
  put_row(out, row, to_f32(dot_s8(set1_i32(-s8_bias * sum), w, i8 + 64, 4)));
  store(out + 16 * row, a, 7);
}

}  // namespace NIHAO_ISA_NAMESPACE
}  // namespace NIHAO_ABI
}  // namespace nihao::simd
