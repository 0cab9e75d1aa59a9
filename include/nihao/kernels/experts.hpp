// What a mixture's kernels work on: one expert's matrices, and memory for tokens sorted by expert.
#pragma once

#include "../base/tensor.hpp"
#include "router.hpp"

#include <cstdint>
#include <span>

namespace nihao {

/// One expert of a layer: down(F(gate(x)) * up(x)).
template <class Weight>
struct Expert {
  Weight gate, up, down;
  const float *gate_bias = nullptr, *up_bias = nullptr, *down_bias = nullptr;  ///< as long as the weights have rows, or null
};

/// What experts work in: buffers of the widths of x, of an expert, and of x, for at least as many rows as a step has: the more,
/// the more experts work side by side; and places for the order of the choices.
struct ExpertBuffers {
  MatrixView<float> gathered, gate, up, out;
  std::span<std::uint32_t> order;    ///< [rows * chosen]
  std::span<std::uint32_t> offsets;  ///< [experts + 1]
  MatrixView<float> kept = {};  ///< [rows, chosen * width of an expert]: each choice's F(gate) * up for who watches, or empty
};

}  // namespace nihao
