// MXFP4: 32 four-bit floats (e2m1) and a power of two.
#pragma once

#include "../base/small_floats.hpp"
#include "format.hpp"

namespace nihao {

/// 4.25 bits a weight. value = 2^(e - 127) * e2m1(q), exact in float. Microscaling formats: OCP MX specification 1.0; layout:
/// ggml's block_mxfp4. (The specification calls e = 255 a NaN; ggml, whose files these are, takes it for 2^128 / 2 times twice
/// the value.)
struct MXFP4 {
  struct [[gnu::packed]] Block {
    std::uint8_t e;       ///< exponent of the scale
    std::uint8_t qs[16];  ///< code j in the low half of byte j, code j + 16 in the high half
  };
  static constexpr std::size_t block_size = 32;
  static constexpr std::string_view name = "MXFP4";
  static constexpr FormatId id = FormatId::MXFP4;

  static constexpr void dequantize(const Block& block, std::span<float, block_size> out) noexcept {
    const float half = half_power_of_two(block.e);  // the values are doubled to be whole
    for (std::size_t j = 0; j < 16; ++j) {
      out[j] = half * static_cast<float>(doubled_e2m1[block.qs[j] & 15]);
      out[j + 16] = half * static_cast<float>(doubled_e2m1[block.qs[j] >> 4]);
    }
  }
};

static_assert(block_bytes<MXFP4> == 17);

}  // namespace nihao
