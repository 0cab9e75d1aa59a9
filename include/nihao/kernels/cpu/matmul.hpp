// The CPU's matmul: packed weights, quantized activations, work cut by output rows.
#pragma once

#include "../../device/cpu.hpp"
#include "../matmul.hpp"
#include "quantize_rows.hpp"
#include "tile.hpp"

#include <type_traits>

namespace nihao {

/// Activations as they are, for float weights.
struct FloatRows {
  const float* data;   ///< [tokens, k]
  std::size_t stride;  ///< floats between tokens
  std::size_t k;
};

/// Where sixteen (or, at the edge, fewer) columns of y go.
struct TileOutput {
  float* data;         ///< column 0 of the tile, token 0
  std::size_t stride;  ///< floats between tokens
  int lanes;           ///< columns that exist, 1 to 16
  const float* bias;   ///< [lanes], added once; or null
  bool accumulate;     ///< add to what is there, instead of overwriting
  float scale = 1;     ///< of the products, before the bias
};

}  // namespace nihao

#define NIHAO_KERNEL_FILE "../kernels/cpu/matmul.inl"
#define NIHAO_KERNEL_DOTS
#include "../../simd/foreach_isa.inl"
