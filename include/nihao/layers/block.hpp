// One block of a decoder: attention and feed-forward, each with its norms, added to the residual stream.
#pragma once

#include "attention.hpp"
#include "ffn.hpp"

namespace nihao {

/// One after the other: x += attention(norm(x)), then x += ffn(norm(x)). N: where the norms stand (PreNorm<RmsNorm>, ...);
/// A: Attention<...>; F: FFN<...>.
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
    NormWeights attn_norm, attn_post_norm, ffn_norm, ffn_post_norm;  ///< [d_model]; empty where N has none
  };

  template <class D, class L>
  [[nodiscard]] static Expected<Weights<D>> load(L& loader, const Config& c, std::size_t i) {
    Weights<D> w;
    if constexpr (N::before) {
      NIHAO_TRY(w.attn_norm, loader.norm(Role::attn_norm, i, c));
      NIHAO_TRY(w.ffn_norm, loader.norm(Role::ffn_norm, i, c));
    }
    if constexpr (N::after) {
      NIHAO_TRY(w.attn_post_norm, loader.norm(Role::attn_post_norm, i, c));
      NIHAO_TRY(w.ffn_post_norm, loader.norm(Role::ffn_post_norm, i, c));
    }
    NIHAO_TRY(w.attention, (A::template load<D>(loader, c, i)));
    NIHAO_TRY(w.ffn, (F::template load<D>(loader, c, i)));
    return w;
  }

  /// The residual stream a.x() through this block. With an observer each branch is kept apart before it is added; the sums are
  /// the same.
  template <Sizes S, class Q, class D, Observer O>
  static void forward(const Projector<D>& project, const Weights<D>& w, const Config& config, const AttentionStep& step,
                      const Activations& a, O& observer) noexcept {
    const D& device = project.device;
    const std::size_t rows = step.batch.rows();
    const MatrixView<float> x = a.x(rows), branch = a.branch(rows);
    const int layer = static_cast<int>(step.layer);
    const bool fused = !N::after && !O::active && config.residual_scale == 1, ffn_fused = fused && F::can_accumulate;

    MatrixView<const float> h = before(device, w.attn_norm, config, a, rows);
    if constexpr (O::active) observer.see({N::before ? "input_norm" : "attn_input", layer, h});
    A::template forward<S, Q>(project, w.attention, config, step, a, h, fused ? x : branch, fused, observer);
    if (!fused) after(device, w.attn_post_norm, config, x, branch);

    h = before(device, w.ffn_norm, config, a, rows);
    if constexpr (O::active) observer.see({N::before ? "post_attention_norm" : "ffn_input", layer, h});
    F::template forward<Q>(project, w.ffn, config, a, layer, h, ffn_fused ? x : branch, ffn_fused, observer);
    if (!ffn_fused) after(device, w.ffn_post_norm, config, x, branch);
    if constexpr (O::active) observer.see({"hidden", layer, x});
  }

 private:
  template <class D>
  static MatrixView<const float> before(const D& device, const NormWeights& weights, const Config& config, const Activations& a,
                                        std::size_t rows) noexcept {
    if constexpr (N::before) {
      N::Norm::apply(device, MatrixView<const float>(a.x(rows)), weights, config.norm_eps, a.normed(rows));
      return a.normed(rows);
    } else {
      return a.x(rows);
    }
  }
  template <class D>
  static void after(const D& device, const NormWeights& weights, const Config& config, MatrixView<float> x,
                    MatrixView<float> branch) noexcept {
    if constexpr (N::after) N::Norm::apply(device, MatrixView<const float>(branch), weights, config.norm_eps, branch);
    Ops<D>::add(device, x, branch, config.residual_scale);
  }
};

/// Side by side, on one norm: x += attention(norm(x)) + ffn(norm(x)). Cohere; Wang and Komatsuzaki 2021 (GPT-J).
template <class Norm_, class A, class F>
struct ParallelBlock {
  using Placement = PreNorm<Norm_>;
  using Attn = A;
  using Ffn = F;

  template <class D>
  struct Weights {
    typename A::template Weights<D> attention;
    typename F::template Weights<D> ffn;
    NormWeights norm;  ///< [d_model]
  };

  template <class D, class L>
  [[nodiscard]] static Expected<Weights<D>> load(L& loader, const Config& c, std::size_t i) {
    Weights<D> w;
    NIHAO_TRY(w.norm, loader.norm(Role::attn_norm, i, c));
    NIHAO_TRY(w.attention, (A::template load<D>(loader, c, i)));
    NIHAO_TRY(w.ffn, (F::template load<D>(loader, c, i)));
    return w;
  }

  template <Sizes S, class Q, class D, Observer O>
  static void forward(const Projector<D>& project, const Weights<D>& w, const Config& config, const AttentionStep& step,
                      const Activations& a, O& observer) noexcept {
    const D& device = project.device;
    const std::size_t rows = step.batch.rows();
    const MatrixView<float> x = a.x(rows), branch = a.branch(rows);
    const int layer = static_cast<int>(step.layer);
    const bool fused = F::can_accumulate && !O::active;
    Norm_::apply(device, MatrixView<const float>(x), w.norm, config.norm_eps, a.normed(rows));
    const MatrixView<const float> h = a.normed(rows);
    if constexpr (O::active) observer.see({"input_norm", layer, h});
    A::template forward<S, Q>(project, w.attention, config, step, a, h, fused ? x : branch, fused, observer);
    if (!fused) Ops<D>::add(device, x, branch);
    F::template forward<Q>(project, w.ffn, config, a, layer, h, fused ? x : branch, fused, observer);
    if (!fused) Ops<D>::add(device, x, branch);
    if constexpr (O::active) observer.see({"hidden", layer, x});
  }
};

}  // namespace nihao
