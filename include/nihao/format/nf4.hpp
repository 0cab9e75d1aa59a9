// NF4: 32 four-bit codes of sixteen levels that a normal distribution fills evenly, and a scale.
#pragma once

#include "format.hpp"

namespace nihao {

/// 5 bits a weight. value = d * levels[q], rounded once. QLoRA: Dettmers et al. 2023, arXiv:2305.14314, appendix E. No file has
/// these blocks: bitsandbytes has codes, and the largest magnitude of each 64, in tensors of their own
/// (models/hf_quantization.hpp).
struct NF4 {
  struct [[gnu::packed]] Block {
    float d;              ///< scale: the largest magnitude
    std::uint8_t qs[16];  ///< byte j: code j in the low four bits, code j + 16 in the high four
  };
  static constexpr std::size_t block_size = 32;
  static constexpr std::string_view name = "NF4";
  static constexpr FormatId id = FormatId::NF4;
  static constexpr bool float_codes = true;
  static constexpr float levels[16] = {-1.0f,
                                       -0.6961928009986877f,
                                       -0.5250730514526367f,
                                       -0.39491748809814453f,
                                       -0.28444138169288635f,
                                       -0.18477343022823334f,
                                       -0.09105003625154495f,
                                       0.0f,
                                       0.07958029955625534f,
                                       0.16093020141124725f,
                                       0.24611230194568634f,
                                       0.33791524171829224f,
                                       0.44070982933044434f,
                                       0.5626170039176941f,
                                       0.7229568362236023f,
                                       1.0f};

  static constexpr void dequantize(const Block& block, std::span<float, block_size> out) noexcept {
    for (std::size_t j = 0; j < 16; ++j) {
      out[j] = levels[block.qs[j] & 15] * block.d;
      out[j + 16] = levels[block.qs[j] >> 4] * block.d;
    }
  }
};

static_assert(block_bytes<NF4> == 20);

}  // namespace nihao
