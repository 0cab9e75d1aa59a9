// The encoder of MXFP4: its scale is a power of two, so that there are few to choose from.
#pragma once

#include "../format/mxfp4.hpp"
#include "fit.hpp"
#include "one_scale.hpp"

#include <limits>

namespace nihao {

/// The specification takes the largest power of two at which the largest value is at least 4 (of at most 6). Its neighbours are
/// tried too: cutting the largest off may lose less than coarser steps for all others.
template <>
struct Quantizer<MXFP4> {
  static void encode(std::span<const float, 32> x, std::span<const float, 32> w, MXFP4::Block& block) noexcept {
    float largest = 0;
    for (const float v : x) largest = std::max(largest, std::abs(v));
    block = {};
    if (!(largest > 0)) return;
    int exponent = 0;
    std::frexp(largest, &exponent);  // largest = m * 2^exponent, m from 1/2
    float least = std::numeric_limits<float>::infinity();
    for (int e = exponent - 1 - 2 + 127 - 1; e <= exponent - 1 - 2 + 127 + 1; ++e) {
      MXFP4::Block tried{};
      tried.e = static_cast<std::uint8_t>(std::clamp(e, 0, 254));
      const float half = half_power_of_two(tried.e), inverse = 0.5f / half;
      const auto code = [&](std::size_t i) { return int{to_e2m1(x[i] * inverse)}; };
      detail::put_halves(tried.qs, code);
      float loss = 0;
      for (std::size_t i = 0; i < 32; ++i) {
        const float miss = x[i] - half * static_cast<float>(doubled_e2m1[code(i)]);
        loss += w[i] * miss * miss;
      }
      if (loss < least) least = loss, block = tried;
    }
  }
};

}  // namespace nihao
