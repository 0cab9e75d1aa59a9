// What an encoder is: the way back of a format's dequantize.
#pragma once

#include "../format/format.hpp"

namespace nihao {

/// Specialised for each format that can be written: `static void encode(x, w, Block&) noexcept` makes a block of block_size
/// values x, with weights w >= 0 that say how much an error of each matters, so that sum w (x - decoded)^2 is small.
template <class F>
struct Quantizer {};

/// A format that can be written.
template <class F>
concept Quantizable = BlockFormat<F> && requires(std::span<const float, F::block_size> x, typename F::Block& block) {
  { Quantizer<F>::encode(x, x, block) } noexcept;
};

}  // namespace nihao
