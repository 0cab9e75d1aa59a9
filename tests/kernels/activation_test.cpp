#include "nihao/kernels/cpu/elementwise.hpp"

#include "random_weights.hpp"
#include "ulp.hpp"

#include <doctest/doctest.h>
#include <Eigen/Core>

using namespace nihao;

namespace {

// From -30 to 30 in small steps, both zeros, and far out.
std::vector<float> inputs() {
  std::vector<float> x;
  for (float v = -30; v <= 30; v += 0.0117f) x.push_back(v);
  for (const float v : {0.0f, -0.0f, 1e-30f, -1e-30f, 1e-8f, -1e-8f, 50.0f, 1e4f, 1e10f, 3e38f, -50.0f, -86.0f}) x.push_back(v);
  return x;
}

template <class F>
void check_gate() {
  const auto x = inputs(), up = test::random_floats(x.size(), 4);
  std::vector<float> expected(x.size()), first;
  reference::gated<F>(x, up, expected);
  for (const Isa isa : all_isas) {
    if (!cpu_supports(isa)) continue;
    std::vector<float> y(x.size(), NAN), in_place = x, in_up = up;
    gated<F>(isa, x, up, y);
    gated<F>(isa, in_place, up, in_place);
    gated<F>(isa, x, in_up, in_up);
    for (std::size_t i = 0; i < x.size(); ++i) {
      CAPTURE(x[i]);
      // A rounding of the exponent counts as many times as the exponent is large: SiLU's is x itself, GELU's is rounded.
      const double inner = static_cast<double>(F::cubic) * std::pow(static_cast<double>(x[i]), 3) + static_cast<double>(x[i]);
      const double band = F::cubic == 0.0f || x[i] > 0 ? 4 : 4 + 2 * std::abs(static_cast<double>(F::slope) * inner);
      if (std::fabs(expected[i]) > 1e-30f) CHECK(static_cast<double>(test::ulps(y[i], expected[i])) <= band);
      else CHECK(std::fabs(y[i] - expected[i]) <= 1e-35f);
    }
    if (first.empty()) first = y;
    CHECK(y == first);
    CHECK(in_place == y);
    CHECK(in_up == y);
  }
}

float gate_of(Isa isa, float x, bool silu) {
  const float one = 1.0f;
  float y = 0;
  if (silu) gated<SiLU>(isa, std::span(&x, 1), std::span(&one, 1), std::span(&y, 1));
  else gated<GeluTanh>(isa, std::span(&x, 1), std::span(&one, 1), std::span(&y, 1));
  return y;
}

}  // namespace

TEST_CASE("silu's gate is its definition within four units in the last place, with equal bits on every set") {
  check_gate<SiLU>();
}
TEST_CASE("gelu's gate is its definition as closely, but where it is nearly closed, with equal bits on every set") {
  check_gate<GeluTanh>();
}

TEST_CASE("the references are the published formulas, written otherwise") {
  const auto x = inputs();
  const std::vector<float> ones(x.size(), 1.0f);
  std::vector<float> silu(x.size()), gelu(x.size());
  reference::gated<SiLU>(x, ones, silu);
  reference::gated<GeluTanh>(x, ones, gelu);
  const Eigen::ArrayXd wide = Eigen::Map<const Eigen::ArrayXf>(x.data(), static_cast<Eigen::Index>(x.size())).cast<double>();
  const Eigen::ArrayXd by_tanh = 0.5 * wide * (1.0 + (0.5 * wide).tanh());
  const Eigen::ArrayXd gelu_paper = 0.5 * wide * (1.0 + (std::sqrt(2.0 / EIGEN_PI) * (wide + 0.044715 * wide.cube())).tanh());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto at = static_cast<Eigen::Index>(i);
    const double scale = std::abs(static_cast<double>(x[i]));
    CHECK(std::abs(static_cast<double>(silu[i]) - by_tanh(at)) <= 1e-7 * scale);
    CHECK(std::abs(static_cast<double>(gelu[i]) - gelu_paper(at)) <= 1e-7 * scale);
  }
}

TEST_CASE("gates keep NaN, pass large values and close for small ones") {
  for (const Isa isa : all_isas) {
    if (!cpu_supports(isa)) continue;
    for (const bool silu : {true, false}) {
      CHECK(std::isnan(gate_of(isa, NAN, silu)));
      CHECK(gate_of(isa, INFINITY, silu) == INFINITY);
      CHECK(gate_of(isa, 1e6f, silu) == 1e6f);
      CHECK(std::fabs(gate_of(isa, -1e6f, silu)) <= 1e-30f);
      CHECK(gate_of(isa, 0.0f, silu) == 0.0f);
    }
  }
}

TEST_CASE("sums are rounded once, at every length and in place") {
  for (const std::size_t n : {1u, 15u, 16u, 17u, 50u}) {
    const auto a = test::random_floats(n, 1), b = test::random_floats(n, 2);
    for (const Isa isa : all_isas) {
      if (!cpu_supports(isa)) continue;
      auto y = a;
      add_multiple(isa, b, 1.0f, y);
      for (std::size_t i = 0; i < n; ++i) CHECK(y[i] == a[i] + b[i]);
    }
  }
}
