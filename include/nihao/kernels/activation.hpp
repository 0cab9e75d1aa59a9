// The gates of feed-forward layers. SiLU and GELU: Hendrycks and Gimpel 2016, arXiv:1606.08415; gated: Shazeer 2020,
// arXiv:2002.05202.
#pragma once

#include "../base/config.hpp"

#include <cmath>
#include <cstddef>
#include <span>

namespace nihao {

/// silu(x) = x / (1 + e^-x).
struct SiLU {
  static constexpr float slope = 1.0f, cubic = 0.0f;
};
/// GELU by its tanh approximation: x / 2 * (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), which is x * sigmoid(2 sqrt(2/pi) (x +
/// 0.044715 x^3)).
struct GeluTanh {
  static constexpr float slope = 1.5957691216057308f, cubic = 0.044715f;
};

namespace reference {

/// y[i] = f(gate[i]) * up[i], in double. All of equal length; y may be gate or up.
template <class F>
void gated(std::span<const float> gate, std::span<const float> up, std::span<float> y) noexcept {
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double x = static_cast<double>(gate[i]);
    const double inner = static_cast<double>(F::slope) * (x + static_cast<double>(F::cubic) * x * x * x);
    y[i] = static_cast<float>(x / (1.0 + std::exp(-inner)) * static_cast<double>(up[i]));
  }
}

}  // namespace reference
}  // namespace nihao
