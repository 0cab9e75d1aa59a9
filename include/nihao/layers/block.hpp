// One block of a decoder: attention and feed-forward, each with its norms, added to the residual stream.
#pragma once

#include "attention.hpp"
#include "ffn.hpp"

namespace nihao {

/// N: where the norms stand (PreNorm<RmsNorm>, ...); A: Attention<...>; F: FFN<...>.
template <class N, class A, class F>
struct Block {
  static_assert(
      NormPlacement<N>,
      "nihao::Block<N, A, F>: N must say where the norms stand: PreNorm<RmsNorm>, PostNorm<RmsNorm> or SandwichNorm<RmsNorm>.");
  using Placement = N;
  using Attn = A;
  using Ffn = F;

  template <class D>
  struct Weights {
    typename A::template Weights<D> attention;
    typename F::template Weights<D> ffn;
    std::vector<float> attn_norm, attn_post_norm, ffn_norm, ffn_post_norm;  ///< [d_model]; empty where N has none
  };

  /// The residual stream a.x() through this block. With an observer each branch is kept apart before it is added; the sums are
  /// the same.
  template <Sizes S, class Q, class D, Observer O>
  static void forward(const D& device, const typename Ops<D>::Scratch& scratch, const Weights<D>& w, const Config& config,
                      const AttentionStep& step, const Activations& a, O& observer) noexcept {
    const std::size_t rows = step.batch.rows();
    const MatrixView<float> x = a.x(rows), branch = a.branch(rows);
    const int layer = static_cast<int>(step.layer);
    constexpr bool fused = !N::after && !O::active;

    MatrixView<const float> h = before(device, w.attn_norm, config, a, rows);
    if constexpr (O::active && N::before) observer.see({"input_norm", layer, h});
    A::template forward<S, Q>(device, scratch, w.attention, config, step, a, h, fused ? x : branch, fused, observer);
    if constexpr (!fused) after(device, w.attn_post_norm, config, x, branch);

    h = before(device, w.ffn_norm, config, a, rows);
    if constexpr (O::active && N::before) observer.see({"post_attention_norm", layer, h});
    F::template forward<Q>(device, scratch, w.ffn, a, layer, h, fused ? x : branch, fused, observer);
    if constexpr (!fused) after(device, w.ffn_post_norm, config, x, branch);
    if constexpr (O::active) observer.see({"hidden", layer, x});
  }

 private:
  template <class D>
  static MatrixView<const float> before(const D& device, std::span<const float> weight, const Config& config,
                                        const Activations& a, std::size_t rows) noexcept {
    if constexpr (N::before) {
      N::Norm::apply(device, MatrixView<const float>(a.x(rows)), weight, config.norm_eps, a.normed(rows));
      return a.normed(rows);
    } else {
      return a.x(rows);
    }
  }
  template <class D>
  static void after(const D& device, std::span<const float> weight, const Config& config, MatrixView<float> x,
                    MatrixView<float> branch) noexcept {
    if constexpr (N::after) N::Norm::apply(device, MatrixView<const float>(branch), weight, config.norm_eps, branch);
    Ops<D>::add(device, x, branch);
  }
};

}  // namespace nihao
