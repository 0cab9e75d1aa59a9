// Mixture of experts: Shazeer et al. 2017, arXiv:1701.06538. A router sends each token to a few of many feed-forwards.
#pragma once

#include "../kernels/experts.hpp"
#include "ffn.hpp"

namespace nihao {

/// Router: a policy of kernels/router.hpp; F: the experts' gate. With a shared expert (the config has its width) all tokens go
/// there too: Dai et al. 2024, arXiv:2401.06066.
template <class Router, class F>
struct MoE {};

template <class Router, class F>
struct FFN<MoE<Router, F>> {
  static constexpr bool can_accumulate = false;  // experts are summed before the residual stream is added to

  template <class D>
  struct Weights {
    Linear<D> router;                ///< [experts, d_model]
    std::vector<float> choice_bias;  ///< [experts]: of the choice alone; empty without
    std::vector<Expert<typename Ops<D>::Weight>> experts;
    std::vector<float> biases;  ///< what the experts' bias pointers point into
    detail::GatedWeights<D> shared;
  };

  [[nodiscard]] static std::size_t area(const Config& c) noexcept {
    const std::size_t d = c.d_model, chosen = c.router.chosen;
    return Area::floats({c.router.experts, 2 * chosen, chosen, c.router.experts + 1, chosen, chosen, d, c.expert_ff, c.expert_ff,
                         d, c.shared_ff, c.shared_ff, c.shared_ff > 0 ? d : 0, chosen * c.expert_ff});
  }
  [[nodiscard]] static std::size_t widest(const Config& c) noexcept { return std::max(c.expert_ff, c.shared_ff); }

  template <class D, class L>
  [[nodiscard]] static Expected<Weights<D>> load(L& loader, const Config& c, std::size_t i) {
    Weights<D> w;
    NIHAO_TRY(w.router, loader.linear(Role::router, i, c.router.experts, c.d_model, c.router_bias));
    if (loader.has(Role::router_choice_bias, i)) {
      NIHAO_TRY(w.choice_bias, loader.floats(Role::router_choice_bias, i, c.router.experts));
    }
    NIHAO_CHECK(loader.experts(i, c, w.experts, w.biases));
    if (c.shared_ff > 0) { NIHAO_TRY(w.shared, detail::load_gated<D>(loader, c, i, detail::shared_roles, c.shared_ff)); }
    return w;
  }

  /// out = what the chosen experts and the shared one make of h. h, out: [tokens, d_model].
  template <class Q, class D, Observer O>
  static void forward(const Projector<D>& project, const Weights<D>& w, const Config& config, const Activations& a, int layer,
                      MatrixView<const float> h, MatrixView<float> out, bool, O& observer) noexcept {
    const D& device = project.device;
    const RouterShape& shape = config.router;
    const std::size_t rows = h.rows();
    Area area = a.area(rows);
    const MatrixView<float> logits = area.take(shape.experts);
    const std::span<Choice> chosen = area.take_each<Choice>(shape.chosen);
    const std::span<std::uint32_t> order = area.take_each<std::uint32_t>(shape.chosen);
    const std::span<std::uint32_t> offsets = area.take_each<std::uint32_t>(shape.experts + 1).first(shape.experts + 1);
    project.template operator()<Q>(h, std::array<Projection<D>, 1>{{{w.router, logits}}}, InputPrecision::fine);
    if constexpr (O::active) observer.see({"router.logits", layer, logits, w.router.work(rows)});
    Ops<D>::template route<Router>(device, shape, logits, w.choice_bias, chosen);
    if constexpr (O::active) {
      const MatrixView<float> experts = area.take(shape.chosen), weights = area.take(shape.chosen);
      for (std::size_t t = 0; t < rows; ++t)
        for (std::size_t j = 0; j < shape.chosen; ++j) {
          const Choice& c = chosen[t * shape.chosen + j];
          experts(t, j) = static_cast<float>(c.expert), weights(t, j) = c.weight;
        }
      observer.see({"router.experts", layer, experts});
      observer.see({"router.weights", layer, weights});
    }
    ExpertBuffers buffers{area.take_room(config.d_model),
                          area.take_room(config.expert_ff),
                          area.take_room(config.expert_ff),
                          area.take_room(config.d_model),
                          order,
                          offsets};
    if constexpr (O::active) buffers.kept = area.take(shape.chosen * config.expert_ff);
    Ops<D>::template experts<Q, F, Router::weighs_input>(device, project.scratch, h, w.experts, chosen, buffers, out,
                                                         config.gate_limit);
    if constexpr (O::active) {
      observer.see({"routed_experts_out", layer, out, work(w, chosen)});
      observer.see({"experts.ffn_act", layer, buffers.kept});
    }
    if (config.shared_ff > 0) {
      const MatrixView<float> gate = area.take(config.shared_ff), up = area.take(config.shared_ff);
      project.template operator()<Q>(h, std::array<Projection<D>, 2>{{{w.shared.gate, gate}, {w.shared.up, up}}});
      if constexpr (O::active) {
        observer.see({"shared.ffn_gate", layer, gate, w.shared.gate.work(rows)});
        observer.see({"shared.ffn_up", layer, up, w.shared.up.work(rows)});
      }
      Ops<D>::template gated<F>(device, gate, up, config.gate_limit);
      if constexpr (O::active) observer.see({"shared.ffn_act", layer, gate});
      const MatrixView<float> down = area.take(config.d_model);
      project.template operator()<Q>(gate, std::array<Projection<D>, 1>{{{w.shared.down, down}}});
      if constexpr (O::active) observer.see({"shared.ffn_down", layer, down, w.shared.down.work(rows)});
      Ops<D>::add(device, out, down);
    }
    if constexpr (O::active) observer.see({"ffn_out", layer, out});
  }

 private:
  // Each expert that is chosen is read once, and multiplies its own rows.
  template <class D>
  [[nodiscard]] static Work work(const Weights<D>& w, std::span<const Choice> chosen) noexcept {
    Work total;
    for (std::size_t e = 0; e < w.experts.size(); ++e) {
      std::uint64_t rows = 0;
      for (const Choice& c : chosen) rows += c.expert == static_cast<std::int32_t>(e) ? 1 : 0;
      for (const auto* weight : {&w.experts[e].gate, &w.experts[e].up, &w.experts[e].down}) {
        if (rows > 0) total.bytes += weight->bytes();
        total.flops += 2 * rows * weight->rows * weight->cols;
      }
    }
    return total;
  }
};

}  // namespace nihao
