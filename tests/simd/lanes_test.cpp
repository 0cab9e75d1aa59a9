#include "nihao/simd/lanes.hpp"

#include <array>
#include <bit>
#include <cmath>
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

TEST_CASE("exp is within 1.5 units in the last place, 0 far below, and lets NaN through") {
  for (const Isa isa : all_isas) {
    if (!cpu_supports(isa)) continue;
    CAPTURE(to_string(isa));
    double worst = 0;
    for (int i = 0; i < 175000; i += 16) {
      float x[16], y[16];
      for (int j = 0; j < 16; ++j) x[j] = -87.0f + static_cast<float>(i + j) * 1e-3f;
      NIHAO_ON_ISA(isa, exp_all(x, y));
      for (int j = 0; j < 16; ++j) {
        const double exact = std::exp(static_cast<double>(x[j]));
        const double ulp = std::ldexp(1.0, std::ilogb(exact) - 23);
        worst = std::max(worst, std::fabs(static_cast<double>(y[j]) - exact) / ulp);
      }
    }
    CHECK(worst < 1.5);
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
