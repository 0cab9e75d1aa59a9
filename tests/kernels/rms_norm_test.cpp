#include "nihao/kernels/cpu/rms_norm.hpp"

#include "random_weights.hpp"
#include "ulp.hpp"

#include <doctest/doctest.h>
#include <Eigen/Core>

using namespace nihao;

namespace {

std::vector<float> norm(Isa isa, const std::vector<float>& x, const std::vector<float>& weight, float eps) {
  std::vector<float> y(x.size(), NAN);
  rms_norm(isa, x, weight, eps, y);
  return y;
}

}  // namespace

TEST_CASE("rms_norm is its formula, within two units in the last place, at every length and with equal bits on every set") {
  std::int64_t most = 0;
  for (const std::size_t n : {1u, 2u, 3u, 15u, 16u, 17u, 31u, 64u, 100u, 576u, 2047u, 4096u}) {
    const auto x = test::random_floats(n, static_cast<unsigned>(n)), weight = test::random_floats(n, 99);
    // Independently, by Eigen in double.
    const Eigen::ArrayXd wide = Eigen::Map<const Eigen::ArrayXf>(x.data(), static_cast<Eigen::Index>(n)).cast<double>();
    const Eigen::ArrayXd expected = wide / std::sqrt(wide.square().mean() + 1e-5) *
                                    Eigen::Map<const Eigen::ArrayXf>(weight.data(), static_cast<Eigen::Index>(n)).cast<double>();
    std::vector<float> plain(n);
    reference::rms_norm(x, weight, 1e-5f, plain);
    const auto first = norm(Isa::portable, x, weight, 1e-5f);
    for (std::size_t i = 0; i < n; ++i) {
      const auto value = static_cast<float>(expected(static_cast<Eigen::Index>(i)));
      CHECK(test::ulps(plain[i], value) <= 1);  // it rounds twice
      most = std::max(most, test::ulps(first[i], plain[i]));
    }
    for (const Isa isa : all_isas)
      if (cpu_supports(isa)) CHECK_MESSAGE(norm(isa, x, weight, 1e-5f) == first, to_string(isa), " ", n);
  }
  CHECK(most <= 2);
}

TEST_CASE("rms_norm works in place, gives zeros for zeros, and keeps NaN") {
  for (const Isa isa : all_isas) {
    if (!cpu_supports(isa)) continue;
    auto x = test::random_floats(37, 1);
    const auto weight = test::random_floats(37, 2);
    const auto expected = norm(isa, x, weight, 1e-6f);
    rms_norm(isa, x, weight, 1e-6f, x);
    CHECK(x == expected);
    for (const float y : norm(isa, std::vector<float>(37, 0.0f), weight, 1e-6f)) CHECK(y == 0.0f);
    x[30] = NAN;
    for (const float y : norm(isa, x, weight, 1e-6f)) CHECK(std::isnan(y));
  }
}
