// Rotary position embedding (RoPE): Su et al. 2021, arXiv:2104.09864.
//
// A head of width d is d/2 pairs; at position p, pair i turns by the angle p * f_i with f_i = base^(-2i/d). Seen as complex
// numbers, z_i becomes z_i * e^(j p f_i). The score of a query at m with a key at n is Re(q_i e^(j m f_i) conj(k_i e^(j n f_i)))
// = Re(q_i conj(k_i) e^(j (m - n) f_i)): it depends on m - n alone (a test shows it).
#pragma once

#include "../base/config.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <span>
#include <vector>

namespace nihao {

/// Which two values of a head are a pair. Hugging Face files and most GGUF architectures use halves; GGUF files of the llama
/// architecture have the rows of q and k permuted for neighbours.
enum class RopeStyle : std::uint8_t {
  halves,      ///< (i, i + d/2): "NeoX"
  neighbours,  ///< (2i, 2i + 1): as in the paper
};

enum class RopeScaling : std::uint8_t { none, linear, dynamic, llama3, yarn, longrope };

/// What a model's file says of its rotary embedding.
struct RopeParams {
  double base = 10000.0;  ///< theta
  RopeScaling scaling = RopeScaling::none;
  double factor = 1.0;                       ///< context extension
  double original_context = 0;               ///< all but linear: the context the model was trained on
  double low_freq = 1.0, high_freq = 4.0;    ///< llama3
  double beta_fast = 32.0, beta_slow = 1.0;  ///< yarn
  double attention_factor = 0;               ///< scales cos and sin; 0: 1, or with yarn 0.1 ln(factor) + 1
  double far_attention_factor = 0;           ///< the same beyond the original context, where longrope has another; 0: no other
  bool truncate = true;                      ///< yarn: the ramp begins and ends at whole pairs
  std::vector<float> factors = {};           ///< of each pair: its frequency is divided by that; empty: by none
  std::vector<float> far_factors = {};       ///< longrope: the same for sequences that may outgrow the original context

  friend bool operator==(const RopeParams&, const RopeParams&) = default;
};

/// What yarn multiplies cos and sin by, unless a file says otherwise: arXiv:2309.00071, section 3.4. `mscale` is DeepSeek's.
[[nodiscard]] inline double yarn_magnitude(double factor, double mscale = 1.0) noexcept {
  return factor > 1 ? 0.1 * mscale * std::log(factor) + 1.0 : 1.0;
}

/// The frequency of each pair, and the factor of cos and sin.
struct RopeFrequencies {
  std::vector<double> frequency;  ///< [d / 2], radians per position
  double magnitude = 1.0;
};

/// Frequencies for `width` rotated values (even) of sequences that may grow to `positions`: dynamic and longrope are otherwise
/// beyond the original context. Sources: dynamic ("NTK-aware") as in arXiv:2309.00071, section 3.3, whose base grows with the
/// sequence, and here with what it may grow to, since keys are kept turned; llama3 as in Meta's release of Llama 3.1; yarn: the
/// same paper, section 3.2, with the ramp cut at whole dimensions as its reference does; longrope: Ding et al. 2024,
/// arXiv:2402.13753, its factors being the file's.
[[nodiscard]] inline RopeFrequencies rope_frequencies(const RopeParams& params, std::size_t width, std::size_t positions = 0) {
  RopeFrequencies result;
  const std::size_t pairs = width / 2;
  const double d = static_cast<double>(width), longest = static_cast<double>(positions);
  const bool far = longest > params.original_context;
  double base = params.base;
  if (params.scaling == RopeScaling::dynamic && far)
    base *= std::pow(params.factor * longest / params.original_context - (params.factor - 1.0), d / (d - 2.0));
  const auto frequency = [&](double i) { return std::pow(base, -2.0 * i / d); };
  // The pair that turns `rotations` times within the original context.
  const auto pair_of = [&](double rotations) {
    return d * std::log(params.original_context / (rotations * 2.0 * std::numbers::pi)) / (2.0 * std::log(params.base));
  };
  for (std::size_t i = 0; i < pairs; ++i) {
    const double plain = frequency(static_cast<double>(i));
    double f = plain;
    if (params.scaling == RopeScaling::linear) {
      f = plain / params.factor;
    } else if (params.scaling == RopeScaling::llama3) {
      const double wavelength = 2.0 * std::numbers::pi / plain;
      const double rotations = params.original_context / wavelength;
      if (rotations < params.low_freq) f = plain / params.factor;
      else if (rotations <= params.high_freq) {
        const double smooth = (rotations - params.low_freq) / (params.high_freq - params.low_freq);
        f = (1.0 - smooth) * plain / params.factor + smooth * plain;
      }
    } else if (params.scaling == RopeScaling::yarn) {
      const double first = pair_of(params.beta_fast), last = pair_of(params.beta_slow);
      const double low = std::max(params.truncate ? std::floor(first) : first, 0.0);
      const double high = std::min(params.truncate ? std::ceil(last) : last, d - 1.0);
      const double ramp = std::clamp((static_cast<double>(i) - low) / (high == low ? 0.001 : high - low), 0.0, 1.0);
      f = plain / params.factor * ramp + plain * (1.0 - ramp);
    }
    const std::vector<float>& factors = far && !params.far_factors.empty() ? params.far_factors : params.factors;
    result.frequency.push_back(factors.empty() ? f : f / static_cast<double>(factors[i]));
  }
  if (far && params.far_attention_factor > 0) result.magnitude = params.far_attention_factor;
  else if (params.attention_factor > 0) result.magnitude = params.attention_factor;
  else if (params.scaling == RopeScaling::yarn) result.magnitude = yarn_magnitude(params.factor);
  return result;
}

/// cos and sin of every pair's angle at one position: [d / 2] each. Angles are taken in double: at position 100,000 a float's
/// rounding would already turn the fastest pair by a hundredth of a radian.
inline void rope_angles(const RopeFrequencies& rope, std::int64_t position, std::span<float> cos, std::span<float> sin) noexcept {
  NIHAO_ASSERT(cos.size() == rope.frequency.size() && sin.size() == cos.size());
  for (std::size_t i = 0; i < cos.size(); ++i) {
    const double angle = static_cast<double>(position) * rope.frequency[i];
    cos[i] = static_cast<float>(std::cos(angle) * rope.magnitude);
    sin[i] = static_cast<float>(std::sin(angle) * rope.magnitude);
  }
}

namespace reference {

/// Turns one head in place. head: [d] with d >= 2 * cos.size(); values beyond the rotated ones stay.
inline void rope(std::span<float> head, std::span<const float> cos, std::span<const float> sin, RopeStyle style) noexcept {
  const std::size_t pairs = cos.size();
  for (std::size_t i = 0; i < pairs; ++i) {
    float& a = style == RopeStyle::halves ? head[i] : head[2 * i];
    float& b = style == RopeStyle::halves ? head[i + pairs] : head[2 * i + 1];
    const float x = a, y = b;
    a = std::fma(x, cos[i], -(y * sin[i]));
    b = std::fma(x, sin[i], y * cos[i]);
  }
}

/// The same as multiplication of complex numbers: pair i is x + j y, turned by cos + j sin. In double.
inline void rope_complex(std::span<float> head, std::span<const float> cos, std::span<const float> sin,
                         RopeStyle style) noexcept {
  const std::size_t pairs = cos.size();
  for (std::size_t i = 0; i < pairs; ++i) {
    float& a = style == RopeStyle::halves ? head[i] : head[2 * i];
    float& b = style == RopeStyle::halves ? head[i + pairs] : head[2 * i + 1];
    const std::complex<double> turned = std::complex<double>(a, b) * std::complex<double>(cos[i], sin[i]);
    a = static_cast<float>(turned.real());
    b = static_cast<float>(turned.imag());
  }
}

}  // namespace reference
}  // namespace nihao
