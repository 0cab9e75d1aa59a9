// Blocks of 256 in groups: each group has a small whole number for its scale (and one for its minimum), and the block a float
// that multiplies them. The groups are fitted one by one, then their scales are rounded, then the block's float is fitted again
// to what rounding left, until that gains nothing.
#pragma once

#include "../base/floats.hpp"
#include "../format/k_scales.hpp"
#include "fit.hpp"

#include <array>
#include <limits>

namespace nihao {

inline constexpr std::size_t superblock = 256;

namespace detail {
/// A block's float as binary16: what is not 0 does not become 0 by rounding, for the groups' whole numbers can make up for it.
[[nodiscard]] inline f16 round_factor(float d) noexcept {
  const f16 rounded = to_f16(d);
  return (rounded.bits & 0x7fff) == 0 && d != 0 ? f16{static_cast<std::uint16_t>(rounded.bits | 1)} : rounded;
}
}  // namespace detail

/// x = d * scale[group] * level.
template <std::size_t Groups>
struct ScaledGroups {
  f16 d{0};
  std::array<std::int8_t, Groups> scale{};
  std::array<float, superblock> level{};
};

/// Scales are whole numbers from -Most to Most - 1; of levels Levels.
template <class Levels, std::size_t Groups, int Most>
[[nodiscard]] ScaledGroups<Groups> fit_scaled_groups(std::span<const float, superblock> x,
                                                     std::span<const float, superblock> w) noexcept {
  constexpr std::size_t size = superblock / Groups;
  const auto part = [](std::span<const float, superblock> all, std::size_t g) {
    return std::span<const float, size>(all.data() + g * size, size);
  };
  std::array<float, Groups> wanted{};
  float largest = 0;
  for (std::size_t g = 0; g < Groups; ++g) {
    wanted[g] = best_scale<Levels, size>(part(x, g), part(w, g));
    if (std::abs(wanted[g]) > std::abs(largest)) largest = wanted[g];
  }
  ScaledGroups<Groups> best;
  float least = std::numeric_limits<float>::infinity();
  float d = -largest / static_cast<float>(Most);
  for (int round = 0; round < 4; ++round) {
    ScaledGroups<Groups> now;
    now.d = detail::round_factor(d);
    d = to_float(now.d);
    float loss = 0, xq = 0, qq = 0;
    for (std::size_t g = 0; g < Groups; ++g) {
      const float ideal = d != 0 ? wanted[g] / d : 0;
      float here = std::numeric_limits<float>::infinity();
      for (int side = 0; side < 2; ++side) {  // the whole numbers on either side of it
        const float whole =
            std::clamp(std::floor(ideal) + static_cast<float>(side), static_cast<float>(-Most), static_cast<float>(Most - 1));
        const float one = loss_at_scale<Levels, size>(part(x, g), part(w, g), d * whole);
        if (one < here) here = one, now.scale[g] = static_cast<std::int8_t>(whole);
      }
      loss += here;
      const auto s = static_cast<float>(now.scale[g]);
      const float step = d * s, inverse = step != 0 ? 1 / step : 0;
      float* const level = now.level.data() + g * size;
      for (std::size_t i = 0; i < size; ++i) level[i] = Levels::nearest(x[g * size + i] * inverse);
      const auto more = detail::sums<2, size>([&](std::size_t i) {
        const detail::Four q = s * detail::four(level + i), wq = detail::four(&w[g * size + i]) * q;
        return std::array{wq * detail::four(&x[g * size + i]), wq * q};
      });
      xq += more[0], qq += more[1];
    }
    if (!(loss < least)) break;
    least = loss, best = now;
    if (!(qq > 0)) break;
    d = xq / qq;
  }
  return best;
}

/// x = d * scale[group] * code - dmin * min[group], codes 0 and up.
struct AffineGroups {
  f16 d{0}, dmin{0};
  std::array<KScale, 8> group{};
  std::array<std::uint8_t, superblock> code{};
};

/// Scales and minima are whole numbers from 0 to 63; codes go up to Top.
template <int Top>
[[nodiscard]] AffineGroups fit_affine_groups(std::span<const float, superblock> x,
                                             std::span<const float, superblock> w) noexcept {
  using Levels = EvenLevels<0, Top>;
  constexpr std::size_t size = 32;
  using Part = std::span<const float, size>;
  const auto part = [](std::span<const float, superblock> all, std::size_t g) { return Part(all.data() + g * size, size); };
  std::array<AffineFit, 8> wanted{};
  float most_scale = 0, most_min = 0;
  for (std::size_t g = 0; g < 8; ++g) {
    wanted[g] = best_affine<Top, size>(part(x, g), part(w, g), false);
    most_scale = std::max(most_scale, wanted[g].scale);
    most_min = std::max(most_min, wanted[g].min);
  }
  AffineGroups best;
  float least = std::numeric_limits<float>::infinity();
  float d = most_scale / 63, dmin = most_min / 63;
  const auto whole = [](float v) { return std::clamp(detail::nearest_whole(v), 0.0f, 63.0f); };
  for (int round = 0; round < 4; ++round) {
    AffineGroups now;
    now.d = detail::round_factor(std::max(d, 0.0f)), now.dmin = detail::round_factor(std::max(dmin, 0.0f));
    d = to_float(now.d), dmin = to_float(now.dmin);
    float loss = 0, aa = 0, ab = 0, bb = 0, ax = 0, bx = 0;  // of the block's two floats: x = d * a - dmin * b
    for (std::size_t g = 0; g < 8; ++g) {
      const Part xs = part(x, g), ws = part(w, g);
      const float ideal = d > 0 ? wanted[g].scale / d : 0;
      float here = std::numeric_limits<float>::infinity();
      AffineFit chosen;
      for (int side = -1; side < 2; ++side) {
        const float s = std::clamp(detail::nearest_whole(ideal) + static_cast<float>(side), 0.0f, 63.0f);
        const float scale = d * s, inverse = scale > 0 ? 1 / scale : 0;
        // For this scale: the codes at the wanted minimum, and the minimum that suits them.
        const auto [sum_w, miss] = detail::sums<2, size>([&](std::size_t i) {
          const detail::Four v = detail::four(&xs[i]), weight = detail::four(&ws[i]);
          return std::array{weight, weight * (scale * Levels::nearest((v + wanted[g].min) * inverse) - v)};
        });
        const float m = whole(dmin > 0 && sum_w > 0 ? miss / sum_w / dmin : 0);
        const AffineFit fit{scale, dmin * m};
        const float one = loss_at<Top, size>(xs, ws, fit);
        if (one < here) {
          here = one, chosen = fit;
          now.group[g] = {static_cast<std::uint8_t>(s), static_cast<std::uint8_t>(m)};
        }
      }
      loss += here;
      const float inverse = chosen.scale > 0 ? 1 / chosen.scale : 0, s = now.group[g].scale, m = now.group[g].min;
      float code[size];
      for (std::size_t i = 0; i < size; ++i) {
        code[i] = Levels::nearest((xs[i] + chosen.min) * inverse);
        now.code[g * size + i] = static_cast<std::uint8_t>(code[i]);
      }
      const auto [waa, wa, w1, wax, wx] = detail::sums<5, size>([&](std::size_t i) {
        const detail::Four a = s * detail::four(code + i), weight = detail::four(&ws[i]), v = detail::four(&xs[i]);
        return std::array{weight * a * a, weight * a, weight, weight * a * v, weight * v};
      });
      aa += waa, ab += wa * m, bb += w1 * m * m, ax += wax, bx += wx * m;
    }
    if (!(loss < least)) break;
    least = loss, best = now;
    const float determinant = aa * bb - ab * ab;
    if (determinant > 1e-9f * aa * bb) d = (bb * ax - ab * bx) / determinant, dmin = (ab * ax - aa * bx) / determinant;
    else if (aa > 0) d = ax / aa;
    else break;
  }
  return best;
}

}  // namespace nihao
