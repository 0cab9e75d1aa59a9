// NVFP4: 64 four-bit floats (e2m1) in four groups of 16, each with a scale of eight bits (e4m3, without sign).
#pragma once

#include "../base/small_floats.hpp"
#include "format.hpp"

namespace nihao {

/// A scale of NVFP4 blocks: e4m3 whose sign is not looked at, and whose NaN is 0.
[[nodiscard]] constexpr float nvfp4_scale(std::uint8_t d) noexcept {
  return (d & 0x7f) == 0x7f ? 0.0f : to_float(e4m3{static_cast<std::uint8_t>(d & 0x7f)});
}

/// 4.5 bits a weight. value = e4m3(d) * e2m1(q), exact in float. Layout: ggml's block_nvfp4.
struct NVFP4 {
  struct [[gnu::packed]] Block {
    std::uint8_t d[4];    ///< scale of values 16 g to 16 g + 15
    std::uint8_t qs[32];  ///< eight bytes a group: code j in the low half of byte j, code j + 8 in the high half
  };
  static constexpr std::size_t block_size = 64;
  static constexpr std::string_view name = "NVFP4";
  static constexpr FormatId id = FormatId::NVFP4;

  static constexpr void dequantize(const Block& block, std::span<float, block_size> out) noexcept {
    for (std::size_t g = 0; g < 4; ++g) {
      const float half = nvfp4_scale(block.d[g]) * 0.5f;  // the values are doubled to be whole
      for (std::size_t j = 0; j < 8; ++j) {
        out[16 * g + j] = half * static_cast<float>(doubled_e2m1[block.qs[8 * g + j] & 15]);
        out[16 * g + j + 8] = half * static_cast<float>(doubled_e2m1[block.qs[8 * g + j] >> 4]);
      }
    }
  }
};

static_assert(block_bytes<NVFP4> == 36);

}  // namespace nihao
