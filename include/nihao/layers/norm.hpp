// Which norm a block uses, and where it stands.
#pragma once

#include "../device/ops.hpp"

#include <span>
#include <vector>

namespace nihao {

/// What a norm multiplies with and adds: [width] each; no bias: empty.
struct NormWeights {
  std::vector<float> weight, bias;
};

/// Root mean square norm: kernels/rms_norm.hpp.
struct RmsNorm {
  template <class D>
  static void apply(const D& device, MatrixView<const float> x, const NormWeights& w, float eps, MatrixView<float> y) noexcept {
    Ops<D>::rms_norm(device, x, w.weight, eps, y);
  }
};

/// Mean and variance, with or without a bias: kernels/layer_norm.hpp. Cohere, DBRX, PhiMoE.
struct LayerNorm {
  template <class D>
  static void apply(const D& device, MatrixView<const float> x, const NormWeights& w, float eps, MatrixView<float> y) noexcept {
    Ops<D>::layer_norm(device, x, w.weight, w.bias, eps, y);
  }
};

/// x += f(norm(x)): Llama, Qwen.
template <class N>
struct PreNorm {
  using Norm = N;
  static constexpr bool before = true, after = false;
};
/// x += norm(f(x)): OLMo 2.
template <class N>
struct PostNorm {
  using Norm = N;
  static constexpr bool before = false, after = true;
};
/// x += norm(f(norm(x))): Gemma 2 and 3.
template <class N>
struct SandwichNorm {
  using Norm = N;
  static constexpr bool before = true, after = true;
};

template <class P>
concept NormPlacement = requires {
  typename P::Norm;
  { P::before } -> std::convertible_to<bool>;
  { P::after } -> std::convertible_to<bool>;
};

}  // namespace nihao
