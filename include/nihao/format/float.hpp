// Weights stored as floats: one value is one block, so that they are read by the same code as the quantized formats.
#pragma once

#include "../base/floats.hpp"
#include "format.hpp"

namespace nihao {

/// IEEE binary32: 32 bits a weight. Every conversion to float here and below is exact.
struct F32 {
  struct [[gnu::packed]] Block {
    float value;
  };
  static constexpr std::size_t block_size = 1;
  static constexpr std::string_view name = "F32";
  static constexpr FormatId id = FormatId::F32;
  static constexpr void dequantize(const Block& block, std::span<float, block_size> out) noexcept { out[0] = block.value; }
};

/// IEEE binary16, 16 bits a weight: 11 significant bits, magnitudes up to 65504.
struct F16 {
  struct [[gnu::packed]] Block {
    f16 value;
  };
  static constexpr std::size_t block_size = 1;
  static constexpr std::string_view name = "F16";
  static constexpr FormatId id = FormatId::F16;
  static constexpr void dequantize(const Block& block, std::span<float, block_size> out) noexcept {
    out[0] = to_float(block.value);
  }
};

/// bfloat16, 16 bits a weight: the upper half of a float, 8 significant bits and float's range.
struct BF16 {
  struct [[gnu::packed]] Block {
    bf16 value;
  };
  static constexpr std::size_t block_size = 1;
  static constexpr std::string_view name = "BF16";
  static constexpr FormatId id = FormatId::BF16;
  static constexpr void dequantize(const Block& block, std::span<float, block_size> out) noexcept {
    out[0] = to_float(block.value);
  }
};

}  // namespace nihao
