#include "nihao/base/floats.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <limits>

using namespace nihao;

TEST_CASE("every f16 pattern survives the way through float and back") {
  for (std::uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const f16 h{static_cast<std::uint16_t>(bits)};
    const float value = to_float(h);
    if (std::isnan(value)) CHECK(std::isnan(to_float(to_f16(value))));
    else CHECK(to_f16(value).bits == h.bits);
  }
}

TEST_CASE("float to f16 rounds to nearest even, at every midpoint and its float neighbours") {
  for (std::uint32_t bits = 0; bits < 0x7bffu; ++bits) {
    const float low = to_float(f16{static_cast<std::uint16_t>(bits)}), high = to_float(f16{static_cast<std::uint16_t>(bits + 1)});
    const float middle = low + (high - low) / 2;  // exact: float has 13 more bits
    CHECK(to_f16(middle).bits == (bits & 1 ? bits + 1 : bits));
    CHECK(to_f16(std::nextafter(middle, 0.0f)).bits == bits);
    CHECK(to_f16(std::nextafter(middle, 1e9f)).bits == bits + 1);
    CHECK(to_f16(-std::nextafter(middle, 1e9f)).bits == ((bits + 1) | 0x8000u));
  }
  CHECK(to_f16(65519.99f).bits == 0x7bff);
  CHECK(to_f16(65520.0f).bits == 0x7c00);
  CHECK(to_f16(std::numeric_limits<float>::infinity()).bits == 0x7c00);
}

TEST_CASE("float to bf16 rounds to nearest even and keeps NaN") {
  CHECK(to_bf16(1.0f).bits == 0x3f80);
  CHECK(to_bf16(1.00390625f).bits == 0x3f80);  // halfway, even below
  CHECK(to_bf16(1.01171875f).bits == 0x3f82);  // halfway, even above
  CHECK(std::isnan(to_float(to_bf16(std::numeric_limits<float>::quiet_NaN()))));
  CHECK(to_float(bf16{0x4049}) == 3.140625f);
}
