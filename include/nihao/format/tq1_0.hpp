// TQ1_0: 256 weights of -1, 0 and 1, five in a byte, and one scale.
#pragma once

#include "../base/floats.hpp"
#include "format.hpp"

namespace nihao {

/// 1.6875 bits a weight. value = d * (q - 1), exact in float. Five digits to the base 3 are a fraction of 256 in a byte, so that
/// digit n is the integer part of three times what is left after multiplying by 3^n. Layout: ggml's block_tq1_0.
struct TQ1_0 {
  struct [[gnu::packed]] Block {
    std::uint8_t qs[48];  ///< digit n of byte i is value 32 n + i for the first 32 bytes, 128 + 16 n + i for the others
    std::uint8_t qh[4];   ///< four digits a byte: digit n of byte i is value 240 + 4 n + i
    f16 d;                ///< scale
  };
  static constexpr std::size_t block_size = 256;
  static constexpr std::string_view name = "TQ1_0";
  static constexpr FormatId id = FormatId::TQ1_0;

  /// The code of value i: 0, 1 or 2.
  static constexpr std::uint8_t code(const Block& block, std::size_t i) noexcept {
    constexpr std::uint32_t power[5] = {1, 3, 9, 27, 81};
    const std::size_t n = i < 160 ? i / 32 : i < 240 ? (i - 160) / 16 : (i - 240) / 4;
    const std::uint8_t byte = i < 160 ? block.qs[i % 32] : i < 240 ? block.qs[32 + i % 16] : block.qh[i % 4];
    return static_cast<std::uint8_t>((byte * power[n] & 255) * 3 >> 8);
  }
  static constexpr void dequantize(const Block& block, std::span<float, block_size> out) noexcept {
    const float d = to_float(block.d);
    for (std::size_t i = 0; i < block_size; ++i) out[i] = d * static_cast<float>(code(block, i) - 1);
  }
};

static_assert(block_bytes<TQ1_0> == 54);

}  // namespace nihao
