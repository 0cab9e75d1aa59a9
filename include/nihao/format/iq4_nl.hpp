// IQ4_NL: 32 four-bit codes that a table makes into values, and one scale.
#pragma once

#include "../base/floats.hpp"
#include "format.hpp"

namespace nihao {

/// What the codes of IQ4_NL and IQ4_XS mean: steps that widen away from zero, as weights thin out. ggml's kvalues_iq4nl.
inline constexpr std::int8_t iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

/// 4.5 bits a weight. value[i] = d * iq4_values[q[i]], exact in float. Layout: ggml's block_iq4_nl.
struct IQ4_NL {
  struct [[gnu::packed]] Block {
    f16 d;                ///< scale
    std::uint8_t qs[16];  ///< code j in the low half of byte j, code j + 16 in the high half
  };
  static constexpr std::size_t block_size = 32;
  static constexpr std::string_view name = "IQ4_NL";
  static constexpr FormatId id = FormatId::IQ4_NL;

  static constexpr void dequantize(const Block& block, std::span<float, block_size> out) noexcept {
    const float d = to_float(block.d);
    for (std::size_t j = 0; j < 16; ++j) {
      out[j] = d * static_cast<float>(iq4_values[block.qs[j] & 15]);
      out[j + 16] = d * static_cast<float>(iq4_values[block.qs[j] >> 4]);
    }
  }
};

static_assert(block_bytes<IQ4_NL> == 18);

}  // namespace nihao
