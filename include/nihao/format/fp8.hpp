// FP8_E4M3 and FP8_E5M2: 32 floats of eight bits and a scale.
#pragma once

#include "../base/small_floats.hpp"
#include "format.hpp"

namespace nihao {

namespace detail {
/// 9 bits a weight. value = d * code, rounded once. No file has these blocks: checkpoints have a matrix of codes, and a scale for
/// all of it, for each row, or for each 128 x 128 (models/hf_quantization.hpp).
template <class Code>
struct ScaledBytes {
  struct [[gnu::packed]] Block {
    float d;  ///< scale
    Code q[32];
  };
  static constexpr std::size_t block_size = 32;
  static constexpr bool float_codes = true;

  static constexpr void dequantize(const Block& block, std::span<float, block_size> out) noexcept {
    for (std::size_t j = 0; j < block_size; ++j) out[j] = to_float(block.q[j]) * block.d;
  }
};
}  // namespace detail

/// Codes with 3 fraction bits, up to 448: see e4m3.
struct FP8_E4M3 : detail::ScaledBytes<e4m3> {
  static constexpr std::string_view name = "FP8_E4M3";
  static constexpr FormatId id = FormatId::FP8_E4M3;
};

/// Codes with 2 fraction bits, up to 57344: see e5m2.
struct FP8_E5M2 : detail::ScaledBytes<e5m2> {
  static constexpr std::string_view name = "FP8_E5M2";
  static constexpr FormatId id = FormatId::FP8_E5M2;
};

static_assert(block_bytes<FP8_E4M3> == 36);

}  // namespace nihao
