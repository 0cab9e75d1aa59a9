// Blocks built from codes by a packer that knows nothing of the decoders, and their values computed in double: every
// product is exact there and in float, so the decoder must give the double's nearest float, with or without fused multiply-add.
#include "nihao/format/registry.hpp"

#include <array>
#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <random>
#include <vector>

using namespace nihao;

namespace {

std::mt19937 random_bits(7);
int draw(int below) { return static_cast<int>(random_bits() % static_cast<unsigned>(below)); }
f16 draw_scale() {  // any finite half, subnormals too
  for (;;) {
    const f16 h{static_cast<std::uint16_t>(random_bits())};
    if ((h.bits & 0x7c00) != 0x7c00) return h;
  }
}
double value(f16 h) { return to_float(h); }
float value_float(f16 h) { return to_float(h) * 1.1f; }  // a scale with all the digits of a float

template <class F>
void check(const typename F::Block& block, const std::vector<double>& expected) {
  std::array<float, F::block_size> out;
  F::dequantize(block, out);
  REQUIRE(expected.size() == out.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const float wanted = static_cast<float>(expected[i]);
    REQUIRE(out[i] == wanted);
  }
}

/// Bit `bit` of a number goes to bit `to` of a byte.
void set_bits(std::uint8_t& byte, int at, int bits) { byte = static_cast<std::uint8_t>(byte | bits << at); }

/// The 6-bit scales and minima of Q4_K and Q5_K, packed by the table in k_scales.hpp.
void pack_scales(std::uint8_t (&out)[12], const std::array<int, 8>& s, const std::array<int, 8>& m) {
  for (int g = 0; g < 4; ++g) {
    set_bits(out[g], 0, s[static_cast<std::size_t>(g)]);
    set_bits(out[4 + g], 0, m[static_cast<std::size_t>(g)]);
    set_bits(out[8 + g], 0, s[static_cast<std::size_t>(g) + 4] & 15);
    set_bits(out[8 + g], 4, m[static_cast<std::size_t>(g) + 4] & 15);
    set_bits(out[g], 6, s[static_cast<std::size_t>(g) + 4] >> 4);
    set_bits(out[4 + g], 6, m[static_cast<std::size_t>(g) + 4] >> 4);
  }
}

template <class F, int bits, bool minimum>
void check_small() {
  typename F::Block block{};
  block.d = draw_scale();
  if constexpr (minimum) block.m = draw_scale();
  std::vector<double> expected;
  for (int i = 0; i < 32; ++i) {
    const int q = draw(1 << bits);
    set_bits(block.qs[i % 16], i < 16 ? 0 : 4, q & 15);
    if constexpr (bits == 5) set_bits(block.qh[i / 8], i % 8, q >> 4);
    if constexpr (minimum) expected.push_back(value(block.d) * q + value(block.m));
    else expected.push_back(value(block.d) * (q - (1 << (bits - 1))));
  }
  check<F>(block, expected);
}

template <class F, int bits>
void check_k() {
  typename F::Block block{};
  block.d = draw_scale();
  block.dmin = draw_scale();
  std::array<int, 8> s, m;
  for (auto& x : s) x = draw(64);
  for (auto& x : m) x = draw(64);
  pack_scales(block.scales, s, m);
  std::vector<double> expected;
  for (int i = 0; i < 256; ++i) {
    const int q = draw(1 << bits), g = i / 32;
    set_bits(block.qs[i / 64 * 32 + i % 32], g % 2 * 4, q & 15);
    if constexpr (bits == 5) set_bits(block.qh[i % 32], g, q >> 4);
    expected.push_back(value(block.d) * s[static_cast<std::size_t>(g)] * q - value(block.dmin) * m[static_cast<std::size_t>(g)]);
  }
  check<F>(block, expected);
}

void check_q6_k() {
  Q6_K::Block block{};
  block.d = draw_scale();
  for (auto& s : block.scales) s = static_cast<std::int8_t>(draw(256) - 128);
  std::vector<double> expected;
  for (int i = 0; i < 256; ++i) {
    const int q = draw(64), half = i / 128, quarter = i % 128 / 32, l = i % 32;
    set_bits(block.ql[64 * half + 32 * (quarter % 2) + l], quarter < 2 ? 0 : 4, q & 15);
    set_bits(block.qh[32 * half + l], 2 * quarter, q >> 4);
    expected.push_back(value(block.d) * block.scales[i / 16] * (q - 32));
  }
  check<Q6_K>(block, expected);
}

}  // namespace

TEST_CASE("every quantized format gives the exactly rounded value of its formula") {
  for (int i = 0; i < 2000; ++i) {
    check_small<Q4_0, 4, false>();
    check_small<Q5_0, 5, false>();
    check_small<Q4_1, 4, true>();
    check_small<Q5_1, 5, true>();
    check_k<Q4_K, 4>();
    check_k<Q5_K, 5>();
    check_q6_k();
    Q8_0::Block block{draw_scale(), {}};
    std::vector<double> expected;
    for (auto& q : block.q) {
      q = static_cast<std::int8_t>(draw(256) - 128);
      expected.push_back(value(block.d) * q);
    }
    check<Q8_0>(block, expected);
  }
}

TEST_CASE("the worked block of docs/formats.md") {
  // Q4_1: d = 0.5, m = -3; byte 0 holds codes 2 (value 0) and 15 (value 16).
  Q4_1::Block block{to_f16(0.5f), to_f16(-3.0f), {}};
  block.qs[0] = 0xf2;
  const std::uint8_t* bytes = reinterpret_cast<const std::uint8_t*>(&block);
  CHECK(bytes[0] == 0x00);
  CHECK(bytes[1] == 0x38);
  CHECK(bytes[2] == 0x00);
  CHECK(bytes[3] == 0xc2);
  CHECK(bytes[4] == 0xf2);
  std::array<float, 32> out;
  Q4_1::dequantize(block, out);
  CHECK(out[0] == -2.0f);
  CHECK(out[16] == 4.5f);
  CHECK(out[1] == -3.0f);

  // Q4_K: d = 0.25, dmin = 0.5, group 5: scale 37 (low four bits 5, upper two 2), minimum 9 (low four bits 9, upper two 0).
  Q4_K::Block k{to_f16(0.25f), to_f16(0.5f), {}, {}};
  k.scales[9] = 0x95;
  k.scales[1] = 2 << 6;
  k.qs[64] = 0xc0;  // groups 4 and 5 share bytes 64 to 95: code 12 for the first value of group 5
  std::array<float, 256> values;
  Q4_K::dequantize(k, values);
  CHECK(values[160] == 0.25f * 37 * 12 - 0.5f * 9);
  CHECK(values[160] == 106.5f);
  CHECK(values[161] == -4.5f);
}

TEST_CASE("the formats of checkpoints give the rounded value of their formula") {
  for (int i = 0; i < 2000; ++i) {
    INT4::Block four{draw_scale(), to_f16(static_cast<float>(draw(17))), {}};
    INT8::Block eight{value_float(draw_scale()), to_f16(static_cast<float>(draw(257) - 128)), {}};
    FP8_E4M3::Block e4{value_float(draw_scale()), {}};
    FP8_E5M2::Block e5{value_float(draw_scale()), {}};
    NF4::Block levels{value_float(draw_scale()), {}};
    std::vector<double> of_four(32), of_eight(32), of_e4(32), of_e5(32), of_levels(32);
    for (int j = 0; j < 32; ++j) {
      const auto at = static_cast<std::size_t>(j);
      const int q = draw(16);
      set_bits(four.qs[j % 16], j < 16 ? 0 : 4, q);
      set_bits(levels.qs[j % 16], j < 16 ? 0 : 4, q);
      of_four[at] = (q - value(four.z)) * value(four.d);
      of_levels[at] = static_cast<double>(NF4::levels[q]) * static_cast<double>(levels.d);
      eight.q[j] = static_cast<std::int8_t>(draw(256) - 128);
      of_eight[at] = (eight.q[j] - value(eight.z)) * static_cast<double>(eight.d);
      e4.q[j].bits = static_cast<std::uint8_t>(draw(127) | draw(2) << 7);  // no NaN
      e5.q[j].bits = static_cast<std::uint8_t>(draw(124) | draw(2) << 7);  // nor infinity
      // From the fields: a fraction, and a power of two.
      const int e = e4.q[j].bits >> 3 & 15, f = e4.q[j].bits & 7;
      of_e4[at] =
          (e4.q[j].bits >> 7 ? -1 : 1) * (e == 0 ? std::ldexp(f, -9) : std::ldexp(8 + f, e - 10)) * static_cast<double>(e4.d);
      const int e2 = e5.q[j].bits >> 2 & 31, f2 = e5.q[j].bits & 3;
      of_e5[at] = (e5.q[j].bits >> 7 ? -1 : 1) * (e2 == 0 ? std::ldexp(f2, -16) : std::ldexp(4 + f2, e2 - 17)) *
                  static_cast<double>(e5.d);
    }
    check<INT4>(four, of_four);
    check<INT8>(eight, of_eight);
    check<FP8_E4M3>(e4, of_e4);
    check<FP8_E5M2>(e5, of_e5);
    check<NF4>(levels, of_levels);
  }
}

TEST_CASE("Q8_K: the bytes of ggml.h's block_q8_K give scale times code, whatever its sums say") {
  // No reference quantizes weights to it, so the vector is made from the layout: float d, 256 signed bytes, 16 sums of 16 bits,
  // little-endian. Codes run through all 256 values; d = 0.75, whose products with a code are exact.
  std::vector<std::uint8_t> bytes{0x00, 0x00, 0x40, 0x3f};
  for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<std::uint8_t>(i));
  for (int i = 0; i < 32; ++i) bytes.push_back(0xa5);
  REQUIRE(bytes.size() == sizeof(Q8_K::Block));
  Q8_K::Block block;
  std::memcpy(&block, bytes.data(), sizeof block);
  std::vector<double> expected;
  for (int i = 0; i < 256; ++i) expected.push_back(0.75 * (i < 128 ? i : i - 256));
  check<Q8_K>(block, expected);
  std::vector<float> row(256);
  dequantize_row(FormatId::Q8_K, std::as_bytes(std::span(&block, 1)), row);
  CHECK(row[255] == -0.75f);
  CHECK(row[128] == -96.0f);
}
