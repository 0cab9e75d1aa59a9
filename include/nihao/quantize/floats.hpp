// Encoders of the float formats: rounding to nearest even.
#pragma once

#include "../format/float.hpp"
#include "quantizer.hpp"

namespace nihao {

namespace detail {
template <class F>
struct FloatQuantizer {
  static void encode(std::span<const float, 1> x, std::span<const float, 1>, typename F::Block& block) noexcept {
    block.value = round_to<decltype(typename F::Block{}.value)>(x[0]);
  }
};
}  // namespace detail

template <>
struct Quantizer<F32> : detail::FloatQuantizer<F32> {};
template <>
struct Quantizer<F16> : detail::FloatQuantizer<F16> {};
template <>
struct Quantizer<BF16> : detail::FloatQuantizer<BF16> {};

}  // namespace nihao
