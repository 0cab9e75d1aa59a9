// The feed-forward layer: two projections, a gate, and the way back.
#pragma once

#include "../kernels/activation.hpp"
#include "activations.hpp"
#include "config.hpp"
#include "linear.hpp"
#include "names.hpp"

#include <array>

namespace nihao {

/// Every weight for every token, gated by F: down(F(gate(h)) * up(h)). Shazeer 2020, arXiv:2002.05202.
template <class F>
struct Dense {};

/// The primary template is the error.
template <class Variant>
struct FFN {
  static_assert(sizeof(Variant) == 0,
                "nihao::FFN<V>: V must be a feed-forward variant, such as nihao::Dense<nihao::SiLU> or nihao::MoE<...>.");
};

namespace detail {

/// The three weights of a gated feed-forward of width `hidden`.
template <class D>
struct GatedWeights {
  Linear<D> gate, up, down;
};

struct GatedRoles {
  Role gate_up, gate, up, down;  ///< gate_up: both in one matrix, the gate's rows first
};
inline constexpr GatedRoles dense_roles{Role::gate_up, Role::gate, Role::up, Role::down};
inline constexpr GatedRoles shared_roles{Role::shared_gate_up, Role::shared_gate, Role::shared_up, Role::shared_down};

template <class D, class L>
[[nodiscard]] Expected<GatedWeights<D>> load_gated(L& loader, const Config& c, std::size_t i, const GatedRoles& roles,
                                                   std::size_t hidden) {
  const std::size_t d = c.d_model;
  GatedWeights<D> w;
  if (loader.has(roles.gate_up, i) && !loader.has(roles.gate, i)) {
    NIHAO_TRY(w.gate, loader.rows_of(roles.gate_up, i, 2 * hidden, 0, hidden, d, c.ffn_bias));
    NIHAO_TRY(w.up, loader.rows_of(roles.gate_up, i, 2 * hidden, hidden, hidden, d, c.ffn_bias));
  } else {
    NIHAO_TRY(w.gate, loader.linear(roles.gate, i, hidden, d, c.ffn_bias));
    NIHAO_TRY(w.up, loader.linear(roles.up, i, hidden, d, c.ffn_bias));
  }
  NIHAO_TRY(w.down, loader.linear(roles.down, i, d, hidden, c.ffn_bias));
  return w;
}

}  // namespace detail

template <class F>
struct FFN<Dense<F>> {
  static constexpr bool can_accumulate = true;

  template <class D>
  using Weights = detail::GatedWeights<D>;

  [[nodiscard]] static std::size_t area(const Config& c) noexcept { return Area::floats({c.d_ff, c.d_ff}); }
  [[nodiscard]] static std::size_t widest(const Config& c) noexcept { return c.d_ff; }

  template <class D, class L>
  [[nodiscard]] static Expected<Weights<D>> load(L& loader, const Config& c, std::size_t i) {
    return detail::load_gated<D>(loader, c, i, detail::dense_roles, c.d_ff);
  }

  /// out = ffn(h), or out += it. h, out: [tokens, d_model].
  template <class Q, class D, Observer O>
  static void forward(const Projector<D>& project, const Weights<D>& w, const Config& config, const Activations& a, int layer,
                      MatrixView<const float> h, MatrixView<float> out, bool accumulate, O& observer) noexcept {
    const std::size_t rows = h.rows();
    Area area = a.area(rows);
    const MatrixView<float> gate = area.take(w.gate.weight.rows), up = area.take(w.up.weight.rows);
    project.template operator()<Q>(h, std::array<Projection<D>, 2>{{{w.gate, gate}, {w.up, up}}});
    if constexpr (O::active) {
      observer.see({"ffn_gate", layer, gate, w.gate.work(rows)});
      observer.see({"ffn_up", layer, up, w.up.work(rows)});
    }
    Ops<D>::template gated<F>(project.device, gate, up, config.gate_limit);
    if constexpr (O::active) observer.see({"ffn_act", layer, gate});
    project.template operator()<Q>(gate, std::array<Projection<D>, 1>{{{w.down, out, accumulate}}});
    if constexpr (O::active) {
      observer.see({"ffn_down", layer, out, w.down.work(rows)});
      observer.see({"ffn_out", layer, out});  // of a dense layer they are one
    }
  }
};

}  // namespace nihao
