// LayerNorm: y = (x - mean(x)) / sqrt(variance(x) + eps) * weight (+ bias).  Ba, Kiros and Hinton 2016, arXiv:1607.06450.
#pragma once

#include "../base/config.hpp"

#include <cmath>
#include <cstddef>
#include <span>

namespace nihao::reference {

/// One row: x, weight, y of equal length n > 0, bias as long or empty; y may be x. Mean and variance are taken in double.
inline void layer_norm(std::span<const float> x, std::span<const float> weight, std::span<const float> bias, float eps,
                       std::span<float> y) noexcept {
  NIHAO_ASSERT(x.size() == weight.size() && x.size() == y.size() && !x.empty() && (bias.empty() || bias.size() == x.size()));
  double sum = 0, squares = 0;
  for (const float v : x) sum += static_cast<double>(v);
  const double mean = sum / static_cast<double>(x.size());
  for (const float v : x) squares += (static_cast<double>(v) - mean) * (static_cast<double>(v) - mean);
  const double scale = 1.0 / std::sqrt(squares / static_cast<double>(x.size()) + static_cast<double>(eps));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double normed = (static_cast<double>(x[i]) - mean) * scale * static_cast<double>(weight[i]);
    y[i] = static_cast<float>(bias.empty() ? normed : normed + static_cast<double>(bias[i]));
  }
}

}  // namespace nihao::reference
