#include "nihao/simd/lanes.hpp"

#include "support/build_kind.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <doctest/doctest.h>
#include <limits>
#include <random>
#include <vector>

#define NIHAO_KERNEL_FILE "../../../tests/simd/lanes_kernel.inl"
#define NIHAO_KERNEL_DOTS
#include "nihao/simd/foreach_isa.inl"

using namespace nihao;

namespace {

constexpr std::size_t rows = 33;

std::vector<std::uint32_t> run(Isa isa, const std::array<float, 64>& in, const std::array<std::uint8_t, 128>& bytes) {
  std::vector<float> out(16 * rows, -1.0f);
  NIHAO_ON_ISA(isa, all_operations(in.data(), bytes.data(), out.data()));
  std::vector<std::uint32_t> bits;
  for (const float f : out)
    bits.push_back(std::isnan(f) ? 0x7fc00000u : std::bit_cast<std::uint32_t>(f));  // NaNs have no one pattern
  return bits;
}

}  // namespace

TEST_CASE("every lane operation gives the same bits on every instruction set of this machine") {
  for (const Isa isa : all_isas)
    if (!cpu_supports(isa)) MESSAGE("not on this machine, and not compared: ", to_string(isa));
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (int round = 0; round < 200; ++round) {
    std::array<float, 64> in;
    for (float& v : in) v = normal(random) * (round % 3 == 0 ? 1e-3f : round % 3 == 1 ? 1.0f : 40.0f);
    if (round % 7 == 0) in[static_cast<std::size_t>(round) % 48] = std::numeric_limits<float>::infinity();
    std::array<std::uint8_t, 128> bytes;
    for (auto& b : bytes) b = static_cast<std::uint8_t>(random());
    for (std::size_t i = 64; i < 128; ++i)
      if (bytes[i] == 128) bytes[i] = 127;  // activations are -127 to 127
    const auto expected = run(Isa::portable, in, bytes);
    for (const Isa isa : all_isas) {
      if (!cpu_supports(isa)) continue;
      CAPTURE(to_string(isa));
      CHECK(run(isa, in, bytes) == expected);
    }
  }
}

TEST_CASE("exp is within 1.26 units in the last place over its whole range, on every set") {
  // One float of every 61 from 2^-25 on, where e^x leaves 1, to the ends of the range: 8.6 million. Of all 526 million of them
  // the worst is off by 1.259.
  constexpr std::uint32_t step = test::quick_build ? 61 : 6101;
  double worst = 0;
  std::size_t unequal = 0;
  for (const std::uint32_t sign : {0u, 0x80000000u})
    for (std::uint32_t at = std::bit_cast<std::uint32_t>(0x1p-25f); at < std::bit_cast<std::uint32_t>(88.37f); at += 16 * step) {
      float x[16], first[16], y[16];
      for (std::uint32_t j = 0; j < 16; ++j) x[j] = std::clamp(std::bit_cast<float>((at + j * step) | sign), -87.33654f, 88.37f);
      NIHAO_ON_ISA(best_isa(), exp_all(x, first));
      for (int j = 0; j < 16; ++j) {
        const double exact = std::exp(static_cast<double>(x[j]));
        const auto exponent = std::bit_cast<std::uint64_t>(exact) >> 52;  // an ulp of the float: 2^(exponent - 23)
        const auto ulp = std::bit_cast<double>((exponent - 23) << 52);
        worst = std::max(worst, std::fabs(static_cast<double>(first[j]) - exact) / ulp);
      }
      for (const Isa isa : all_isas) {
        if (!cpu_supports(isa)) continue;
        NIHAO_ON_ISA(isa, exp_all(x, y));
        unequal += std::memcmp(first, y, sizeof y) != 0;
      }
    }
  MESSAGE("the worst is ", worst, " units in the last place");
  CHECK(worst < 1.26);
  CHECK(worst > 1.0);  // or little was tried
  CHECK(unequal == 0);
}

TEST_CASE("exp is 0 far below, the value at its bound far above, and lets NaN through") {
  for (const Isa isa : all_isas) {
    if (!cpu_supports(isa)) continue;
    CAPTURE(to_string(isa));
    const float inf = std::numeric_limits<float>::infinity();
    float x[16] = {0.0f, -88.0f, -inf, std::numeric_limits<float>::quiet_NaN(), 100.0f, inf}, y[16];
    NIHAO_ON_ISA(isa, exp_all(x, y));
    CHECK(y[0] == 1.0f);
    CHECK(y[1] == 0.0f);
    CHECK(y[2] == 0.0f);
    CHECK(std::isnan(y[3]));
    CHECK(y[4] == y[5]);
    CHECK(y[4] > 2e38f);
  }
}

TEST_CASE("an instruction set that the machine lacks has a name and is not the best one") {
  CHECK(cpu_supports(best_isa()));
  for (const Isa isa : all_isas) CHECK(isa_from_name(to_string(isa)) == isa);
  CHECK_FALSE(isa_from_name("sse9").has_value());
}

TEST_CASE("the best set is the one that whoever runs the tests on a known processor says it is, in $NIHAO_BEST_ISA") {
  CHECK(cpu_supports(Isa::portable));
  const char* best = std::getenv("NIHAO_BEST_ISA");
  if (best != nullptr) CHECK(to_string(best_isa()) == best);
  // A set of another architecture is never this machine's.
#if !NIHAO_X86
  for (const Isa isa : {Isa::avx2, Isa::avx_vnni, Isa::avx512}) CHECK_FALSE(cpu_supports(isa));
#endif
#if !NIHAO_ARM
  CHECK_FALSE(cpu_supports(Isa::neon_dotprod));
#endif
}
