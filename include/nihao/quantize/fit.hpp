// The mathematics of quantization: for numbers x with weights w, the scale (and the minimum) at which codes lose least, that is
// with the smallest sum of w (x - decoded)^2.
#pragma once

#include "../base/config.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>

namespace nihao {

namespace detail {

/// Four floats that are computed with at once, in every instruction set that the library runs on.
using Four [[gnu::vector_size(16)]] = float;

[[nodiscard]] inline Four four(const float* from) noexcept {
  Four v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

/// To the nearest whole number, ties to even, for |v| < 2^22.
template <class T>
[[nodiscard]] inline T nearest_whole(T v) noexcept {
  constexpr float big = 12582912.0f;  // 1.5 * 2^23: its neighbours are 1 apart
  return (v + big) - big;
}

/// Several sums over N values at once. `term(i)` gives what the values i to i + 3 add to each.
template <std::size_t Count, std::size_t N, class F>
[[nodiscard]] inline std::array<float, Count> sums(F&& term) noexcept {
  static_assert(N % 4 == 0);
  Four lanes[Count] = {};
  for (std::size_t i = 0; i < N; i += 4) {
    const std::array<Four, Count> add = term(i);
    for (std::size_t c = 0; c < Count; ++c) lanes[c] += add[c];
  }
  std::array<float, Count> total{};
  for (std::size_t c = 0; c < Count; ++c) total[c] = (lanes[c][0] + lanes[c][1]) + (lanes[c][2] + lanes[c][3]);
  return total;
}

}  // namespace detail

/// The whole numbers from Low to High as what codes mean.
template <int Low, int High>
struct EvenLevels {
  static constexpr float low = Low, high = High;
  static constexpr float pitch = 0.125f;  ///< how finely scales are tried, in levels
  template <class T>                      // float or Four
  [[nodiscard]] static T nearest(T v) noexcept {
    const T least = T{} + low, most = T{} + high;
    v = v < least ? least : v;
    return detail::nearest_whole(v > most ? most : v);
  }
};

/// What is lost when every x is decoded to d * (its nearest level).
template <class Levels, std::size_t N>
[[nodiscard]] float loss_at_scale(std::span<const float, N> x, std::span<const float, N> w, float d) noexcept {
  const float inverse = d != 0 ? 1 / d : 0;
  return detail::sums<1, N>([&](std::size_t i) {
    const detail::Four v = detail::four(&x[i]), e = v - d * Levels::nearest(v * inverse);
    return std::array{detail::four(&w[i]) * e * e};
  })[0];
}

/// The best d in x = d * level, of either sign. For given levels q it is sum(w x q) / sum(w q^2), which explains
/// sum(w x q)^2 / sum(w q^2) of the weights' energy; the levels come from scales at which the largest x meets one of the ends, or
/// comes to lie as much as eight pitches beside it; then from the best d itself, until that changes no more.
template <class Levels, std::size_t N>
[[nodiscard]] float best_scale(std::span<const float, N> x, std::span<const float, N> w) noexcept {
  float largest = 0;
  for (const float v : x) largest = std::abs(v) > std::abs(largest) ? v : largest;
  if (std::abs(largest) < 1e-30f) return 0;
  float best = 0, explained = 0;
  const auto attempt = [&](float inverse) {
    const auto [xq, qq] = detail::sums<2, N>([&](std::size_t i) {
      const detail::Four v = detail::four(&x[i]), q = Levels::nearest(v * inverse), wq = detail::four(&w[i]) * q;
      return std::array{wq * v, wq * q};
    });
    if (!(qq > 0) || !(xq * xq > explained * qq)) return false;
    best = xq / qq, explained = xq * best;
    return true;
  };
  for (const float end : {Levels::low, Levels::high})
    for (int step = -8; step <= 8; ++step) attempt((end + static_cast<float>(step) * Levels::pitch) / largest);
  for (int round = 0; round < 4 && best != 0 && attempt(1 / best); ++round) {}
  return best;
}

/// x = scale * q - min.
struct AffineFit {
  float scale = 0, min = 0;
};

/// What is lost at that scale and minimum with codes 0 to Top.
template <int Top, std::size_t N>
[[nodiscard]] float loss_at(std::span<const float, N> x, std::span<const float, N> w, AffineFit at) noexcept {
  const float inverse = at.scale != 0 ? 1 / at.scale : 0;
  return detail::sums<1, N>([&](std::size_t i) {
    const detail::Four v = detail::four(&x[i]) + at.min, e = v - at.scale * EvenLevels<0, Top>::nearest(v * inverse);
    return std::array{detail::four(&w[i]) * e * e};
  })[0];
}

/// The scale and the minimum for given codes q(i): the normal equations of two unknowns. A negative minimum is taken for 0 where
/// the format has none.
struct AffineSums {
  float w, q, qq, x, xq;  ///< sums of w, w q, w q^2, w x, w x q

  [[nodiscard]] AffineFit solve(bool signed_min) const noexcept {
    AffineFit fit;
    const float determinant = w * qq - q * q;
    if (determinant > 1e-12f * w * qq) {
      fit.scale = (w * xq - q * x) / determinant;
      fit.min = (q * xq - qq * x) / determinant;
    }
    if (determinant <= 1e-12f * w * qq || fit.scale <= 0 || (fit.min < 0 && !signed_min)) {
      fit.min = 0;
      fit.scale = qq > 0 && xq > 0 ? xq / qq : 0;
    }
    return fit;
  }
};

/// The best scale > 0 and minimum for codes 0 to Top: tried are scales that spread the range of x over more codes than there are,
/// or fewer; each gives codes, and those the fit at which they lose least. `signed_min`: the minimum may be below 0, that is all
/// of x above.
template <int Top, std::size_t N>
[[nodiscard]] AffineFit best_affine(std::span<const float, N> x, std::span<const float, N> w, bool signed_min) noexcept {
  using Levels = EvenLevels<0, Top>;
  float low = x[0], high = x[0];
  for (const float v : x) low = std::min(low, v), high = std::max(high, v);
  if (!signed_min) low = std::min(low, 0.0f);
  AffineFit best{0, std::min(-low, signed_min ? -low : 0.0f)};
  if (!(high - low > 1e-30f)) return {0, -low};
  const std::array<float, 2> plain = detail::sums<2, N>(
      [&](std::size_t i) { return std::array{detail::four(&w[i]), detail::four(&w[i]) * detail::four(&x[i])}; });
  const float sum_w = plain[0], sum_x = plain[1];
  float explained = -1;
  const auto attempt = [&](float inverse, float min) {
    const auto [q, qq, xq] = detail::sums<3, N>([&](std::size_t i) {
      const detail::Four v = detail::four(&x[i]), code = Levels::nearest((v + min) * inverse), wq = detail::four(&w[i]) * code;
      return std::array{wq, wq * code, wq * v};
    });
    const AffineFit fit = AffineSums{sum_w, q, qq, sum_x, xq}.solve(signed_min);
    const float now = fit.scale * xq - fit.min * sum_x;  // of sum w x^2
    if (!(now > explained) || fit.scale == 0) return false;
    best = fit, explained = now;
    return true;
  };
  for (int step = -8; step <= 8; ++step) attempt((Top + static_cast<float>(step) * 0.125f) / (high - low), -low);
  for (int round = 0; round < 4 && best.scale > 0 && attempt(1 / best.scale, best.min); ++round) {}
  return best;
}

}  // namespace nihao
