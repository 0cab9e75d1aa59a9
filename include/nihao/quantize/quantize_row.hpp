// Writing rows of any format that has an encoder.
#pragma once

#include "../format/registry.hpp"
#include "floats.hpp"
#include "k_quants.hpp"
#include "mxfp4.hpp"
#include "one_scale.hpp"
#include "scale_and_min.hpp"

#include <array>

namespace nihao {

/// Whether quantize_row writes that format.
[[nodiscard]] constexpr bool can_quantize(FormatId id) noexcept {
  return visit_format(id, []<class F>(F) { return Quantizable<F>; });
}

/// How much an error of each value of a block matters: the importance of what it is multiplied with (1 where that is not known)
/// times the block's root mean square plus the value's size. Large weights are large because they work. Without the second factor
/// their codes are cut off more often than a model likes, and a few important columns choose the scale for all (docs/quantize.md
/// has the perplexities).
inline void error_weights(std::span<const float> x, std::span<const float> importance, std::span<float> w) noexcept {
  float squares = 0;
  for (const float v : x) squares += v * v;
  const float rms = std::sqrt(squares / static_cast<float>(x.size()));
  for (std::size_t i = 0; i < x.size(); ++i) w[i] = (importance.empty() ? 1 : importance[i]) * (rms + std::abs(x[i]));
}

/// The blocks of a row. `values` are whole blocks, all finite, none beyond 65504; `importance` is empty, or has for each value
/// the mean square of what it is multiplied by, up to a factor; `out` has room for exactly the blocks. The format is one that
/// can_quantize says yes to.
inline void quantize_row(FormatId id, std::span<const float> values, std::span<const float> importance,
                         std::span<std::byte> out) noexcept {
  NIHAO_ASSERT(can_quantize(id) && out.size() == row_bytes(id, values.size()));
  NIHAO_ASSERT(importance.empty() || importance.size() == values.size());
  visit_format(id, [&]<class F>(F) {
    if constexpr (Quantizable<F>) {
      constexpr std::size_t n = F::block_size;
      std::array<float, n> w{};
      auto* block = reinterpret_cast<typename F::Block*>(out.data());
      for (std::size_t i = 0; i < values.size(); i += n, ++block) {
        const std::span<const float> of_block = importance.empty() ? importance : importance.subspan(i, n);
        if (n > 1) error_weights(values.subspan(i, n), of_block, w);
        Quantizer<F>::encode(std::span<const float, n>(values.data() + i, n), w, *block);
      }
    }
  });
}

}  // namespace nihao
