// Distances in units in the last place.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>

namespace nihao::test {

/// How many floats apart a and b are; 0 for two NaNs, very many for one.
inline std::int64_t ulps(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b) ? 0 : INT64_MAX;
  const auto ordered = [](float x) -> std::int64_t {
    const auto bits = std::bit_cast<std::int32_t>(x);
    return bits < 0 ? -static_cast<std::int64_t>(bits & 0x7fffffff) : bits;
  };
  return std::llabs(ordered(a) - ordered(b));
}

}  // namespace nihao::test
