// The feed-forward layer: two projections, a gate, and the way back.
#pragma once

#include "../kernels/activation.hpp"
#include "activations.hpp"
#include "linear.hpp"

#include <array>

namespace nihao {

/// Every weight for every token, gated by F: down(F(gate(h)) * up(h)). Shazeer 2020, arXiv:2002.05202.
template <class F>
struct Dense {};

/// The primary template is the error.
template <class Variant>
struct FFN {
  static_assert(sizeof(Variant) == 0, "nihao::FFN<V>: V must be a feed-forward variant, such as nihao::Dense<nihao::SiLU>.");
};

template <class F>
struct FFN<Dense<F>> {
  template <class D>
  struct Weights {
    Linear<D> gate, up, down;
  };

  /// out = ffn(h), or out += it. h, out: [tokens, d_model].
  template <class Q, class D, Observer O>
  static void forward(const D& device, const typename Ops<D>::Scratch& scratch, const Weights<D>& w, const Activations& a,
                      int layer, MatrixView<const float> h, MatrixView<float> out, bool accumulate, O& observer) noexcept {
    const std::size_t rows = h.rows();
    const MatrixView<float> gate = a.gate(rows), up = a.up(rows);
    const std::array<typename Ops<D>::Job, 2> both{w.gate.to(gate), w.up.to(up)};
    Ops<D>::template linear<Q>(device, scratch, h, both);
    if constexpr (O::active) {
      observer.see({"ffn_gate", layer, gate, w.gate.work(rows)});
      observer.see({"ffn_up", layer, up, w.up.work(rows)});
    }
    Ops<D>::template gated<F>(device, gate, up);
    if constexpr (O::active) observer.see({"ffn_act", layer, gate});
    const std::array<typename Ops<D>::Job, 1> down{w.down.to(out, accumulate)};
    Ops<D>::template linear<Q>(device, scratch, gate, down);
    if constexpr (O::active) {
      observer.see({"ffn_down", layer, out, w.down.work(rows)});
      observer.see({"ffn_out", layer, out});  // of a dense layer they are one
    }
  }
};

}  // namespace nihao
