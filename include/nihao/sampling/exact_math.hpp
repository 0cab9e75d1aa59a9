// exp and log whose bits are the same on every platform: a drawn token must not depend on whose libm is installed.
#pragma once

#include "../base/config.hpp"

#include <bit>
#include <cmath>
#include <cstdint>

namespace nihao {

/// e^x for finite x, within 2 ulp; 0 below -708, and capped at e^709. Every product that is added to something is an explicit
/// fma, so -ffp-contract has nothing to decide.
[[nodiscard]] inline double exact_exp(double x) noexcept {
  if (!(x > -708.0)) return 0.0;
  if (x > 709.0) x = 709.0;
  // x = k ln 2 + r with |r| <= ln 2 / 2. Adding 1.5 * 2^52 rounds to an integer, to nearest.
  constexpr double magic = 6755399441055744.0;
  const double k = std::fma(x, 1.4426950408889634, magic) - magic;
  double r = std::fma(-k, 6.93147180369123816490e-01, x);  // ln 2 in two parts: k times the first is exact
  r = std::fma(-k, 1.90821492927058770002e-10, r);
  // The Taylor series; its first term left out is below 2^-57 of the sum.
  double sum = 1.0 / 6227020800.0;
  constexpr double inverse_factorials[] = {1.0 / 479001600.0,
                                           1.0 / 39916800.0,
                                           1.0 / 3628800.0,
                                           1.0 / 362880.0,
                                           1.0 / 40320.0,
                                           1.0 / 5040.0,
                                           1.0 / 720.0,
                                           1.0 / 120.0,
                                           1.0 / 24.0,
                                           1.0 / 6.0,
                                           0.5,
                                           1.0,
                                           1.0};
  for (const double c : inverse_factorials) sum = std::fma(sum, r, c);
  return sum * std::bit_cast<double>(static_cast<std::uint64_t>(static_cast<std::int64_t>(k) + 1023) << 52);
}

/// ln x for a normal x above 0, to the last bits, by Newton's method on exact_exp.
[[nodiscard]] inline double exact_log(double x) noexcept {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const double exponent = static_cast<double>(static_cast<std::int64_t>(bits >> 52) - 1023);
  const double mantissa = std::bit_cast<double>((bits & 0xfffffffffffffu) | 0x3ff0000000000000u);  // in [1, 2)
  double y = (exponent + (mantissa - 1.0)) * 0.6931471805599453;                                   // off by less than 0.06
  for (int i = 0; i < 5; ++i) y += x / exact_exp(y) - 1.0;  // the error is squared each time
  return y;
}

}  // namespace nihao
