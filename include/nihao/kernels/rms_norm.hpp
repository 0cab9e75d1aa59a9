// RMSNorm: y = x / sqrt(mean(x^2) + eps) * weight.  Zhang and Sennrich 2019, arXiv:1910.07467.
#pragma once

#include "../base/config.hpp"

#include <cmath>
#include <cstddef>
#include <span>

namespace nihao::reference {

/// One row: x, weight, y of equal length n > 0; y may be x. The mean is taken in double.
inline void rms_norm(std::span<const float> x, std::span<const float> weight, float eps, std::span<float> y) noexcept {
  NIHAO_ASSERT(x.size() == weight.size() && x.size() == y.size() && !x.empty());
  double sum = 0;
  for (const float v : x) sum += static_cast<double>(v) * static_cast<double>(v);
  const double scale = 1.0 / std::sqrt(sum / static_cast<double>(x.size()) + static_cast<double>(eps));
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = static_cast<float>(static_cast<double>(x[i]) * scale) * weight[i];
}

}  // namespace nihao::reference
