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
  static constexpr bool clamped = false;
};
/// GELU by its tanh approximation: x / 2 * (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), which is x * sigmoid(2 sqrt(2/pi) (x +
/// 0.044715 x^3)).
struct GeluTanh {
  static constexpr float slope = 1.5957691216057308f, cubic = 0.044715f;
  static constexpr bool clamped = false;
};
/// gpt-oss: x * sigmoid(1.702 x) * (up + 1), x cut off above at a limit, up at both ends. The model card: arXiv:2508.10925.
struct ClampedSwiGLU {
  static constexpr float slope = 1.702f, cubic = 0.0f;
  static constexpr bool clamped = true;
};

namespace reference {

/// y[i] = f(gate[i]) * up[i], or if F is clamped f(min(gate[i], limit)) * (clamp(up[i]) + 1), in double. All of equal length; y
/// may be gate or up.
template <class F>
void gated(std::span<const float> gate, std::span<const float> up, std::span<float> y, float limit = 0) noexcept {
  for (std::size_t i = 0; i < y.size(); ++i) {
    double x = static_cast<double>(gate[i]), other = static_cast<double>(up[i]);
    if constexpr (F::clamped) {
      const auto most = static_cast<double>(limit);
      x = x > most ? most : x;
      other = 1.0 + (other > most ? most : other < -most ? -most : other);
    }
    const double inner = static_cast<double>(F::slope) * (x + static_cast<double>(F::cubic) * x * x * x);
    y[i] = static_cast<float>(x / (1.0 + std::exp(-inner)) * other);
  }
}

}  // namespace reference
}  // namespace nihao
