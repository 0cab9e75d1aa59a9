#include "nihao/base/small_floats.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <random>

using namespace nihao;

namespace {

// Root mean square error as a share of the values' root mean square: values times what brings `largest` to the format's largest.
template <class F, class Encode>
double relative_error(std::normal_distribution<float> draw, double largest, Encode encode) {
  std::mt19937 random(8);
  double errors = 0, squares = 0;
  for (int i = 0; i < 200'000; ++i) {
    const auto x = static_cast<double>(draw(random)), scale = largest / static_cast<double>(to_float(encode(1e30f)));
    const double back = static_cast<double>(to_float(encode(static_cast<float>(x / scale)))) * scale;
    errors += (x - back) * (x - back), squares += x * x;
  }
  return std::sqrt(errors / squares);
}

}  // namespace

TEST_CASE("what e4m3 and e5m2 reach, and how far they are off: the table in docs/formats.md") {
  CHECK(to_float(to_e4m3(1e30f)) == 448.0f);
  CHECK(to_float(to_e5m2(1e30f)) == 57344.0f);
  CHECK(to_float(e4m3{0x08}) == 0x1p-6f);  // the smallest normal, and the smallest of all
  CHECK(to_float(e4m3{0x01}) == 0x1p-9f);
  CHECK(to_float(e5m2{0x04}) == 0x1p-14f);
  CHECK(to_float(e5m2{0x01}) == 0x1p-16f);
  CHECK(to_float(to_e4m3(1.0625f)) == 1.0f);  // half a step of 1/8, and of 1/4
  CHECK(to_float(to_e5m2(1.125f)) == 1.0f);
  const auto e4m3_code = [](float x) { return to_e4m3(x); };
  const auto e5m2_code = [](float x) { return to_e5m2(x); };
  // A scale that brings the largest of a matrix, about five deviations, to the format's largest.
  const std::normal_distribution<float> weights(0, 1);
  const double e4m3_error = relative_error<e4m3>(weights, 5, e4m3_code), e5m2_error = relative_error<e5m2>(weights, 5, e5m2_code);
  CHECK(e4m3_error == doctest::Approx(0.0264).epsilon(0.02));
  CHECK(e5m2_error == doctest::Approx(0.0527).epsilon(0.02));
  // The same values beside one that is 10^5 times as large: for e4m3 most are nothing.
  CHECK(relative_error<e4m3>(weights, 5e5, e4m3_code) > 0.5);
  CHECK(relative_error<e5m2>(weights, 5e5, e5m2_code) < 0.06);
}
