// Arithmetic on sizes that come from a file: a product or a sum that does not fit is an absence, never a wrap.
#pragma once

#include <concepts>
#include <optional>

namespace nihao {

/// a * b, or nothing if it does not fit.
template <std::unsigned_integral T>
[[nodiscard]] constexpr std::optional<T> checked_mul(T a, T b) noexcept {
  T result{};
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

/// a + b, or nothing if it does not fit.
template <std::unsigned_integral T>
[[nodiscard]] constexpr std::optional<T> checked_add(T a, T b) noexcept {
  T result{};
  if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
  return result;
}

/// n rounded up to a multiple of unit (unit > 0), or nothing if it does not fit.
template <std::unsigned_integral T>
[[nodiscard]] constexpr std::optional<T> checked_round_up(T n, T unit) noexcept {
  const T rest = n % unit;
  return rest == 0 ? std::optional<T>(n) : checked_add<T>(n, unit - rest);
}

/// ceil(n / unit) for sizes already known to be small.
template <std::integral T>
[[nodiscard]] constexpr T ceil_div(T n, T unit) noexcept {
  return (n + unit - 1) / unit;
}

/// n rounded up to a multiple of unit, for sizes already known to be small.
template <std::integral T>
[[nodiscard]] constexpr T round_up(T n, T unit) noexcept {
  return ceil_div(n, unit) * unit;
}

}  // namespace nihao
