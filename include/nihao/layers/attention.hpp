// Attention as a layer: projections, position, cache, scores, output.
#pragma once

#include "../cache/kv_cache.hpp"
#include "../kernels/attention.hpp"
#include "activations.hpp"
#include "config.hpp"
#include "linear.hpp"
#include "names.hpp"
#include "norm.hpp"

#include <array>

namespace nihao {

/// Where q and k are normalised: not at all; each head by itself before it turns (Gemma 3, Qwen 3); the whole row (OLMo 2); each
/// head after it has turned, without weights, in layers that turn (Llama 4).
enum class QkNorm : std::uint8_t { none, per_head, whole, turned };

/// Options of grouped-query attention.
struct GqaOptions {
  QkNorm qk_norm = QkNorm::none;
  bool sinks = false;  ///< each head has a score of its own that joins the softmax (gpt-oss)
};

/// Grouped-query attention: Ainslie et al. 2023, arXiv:2305.13245. Multi-head attention is the case kv_heads == heads,
/// multi-query attention (Shazeer 2019, arXiv:1911.02150) the case kv_heads == 1.
template <GqaOptions Options = GqaOptions{}>
struct GQA {};

/// What a step gives to a layer's attention.
struct AttentionStep {
  const BatchView& batch;
  const KvCache& cache;
  std::size_t layer;
};

/// The primary template is the error.
template <class Variant>
struct Attention {
  static_assert(sizeof(Variant) == 0,
                "nihao::Attention<V>: V must be an attention variant, such as nihao::GQA<> or nihao::MLA<>.");
};

namespace detail {

/// What attention reads and computes in one layer.
[[nodiscard]] inline Work attention_step_work(const AttentionShape& shape, const KvLayout& layout,
                                              const BatchView& batch) noexcept {
  Work total;
  for (const SequenceRows& s : batch.sequences) {
    const Work one = attention_work(shape, layout, batch.position[s.first], s.count);
    total.bytes += one.bytes, total.flops += one.flops;
  }
  return total;
}

/// Stores the rows' keys and values, and lets the queries look at them: heads = softmax(q k^T) v. `name` is its station's.
template <class D, Observer O>
void attend(const D& device, const typename Ops<D>::Scratch& scratch, const AttentionShape& shape, const AttentionStep& step,
            MatrixView<const float> q, MatrixView<const float> k, MatrixView<const float> v, MatrixView<float> heads,
            [[maybe_unused]] std::string_view name, O& observer) noexcept {
  const KvLayout& layout = step.cache.layout(step.layer);
  std::byte* const base = step.cache.data(step.layer);
  Ops<D>::append(device, layout, base, step.batch, k, v);
  Ops<D>::attention(device, scratch, shape, layout, base, step.batch, q, heads);
  if constexpr (O::active) {
    const AttentionInputs inputs{shape, layout, base, step.batch, q, device.isa()};
    observer.see({name, static_cast<int>(step.layer), heads, attention_step_work(shape, layout, step.batch), &inputs});
  }
}

}  // namespace detail

template <GqaOptions Options>
struct Attention<GQA<Options>> {
  static constexpr GqaOptions options = Options;

  template <class D>
  struct Weights {
    Linear<D> q, k, v, o;
    std::vector<float> q_norm, k_norm;  ///< [head_dim], or the whole width; empty without qk_norm
    std::vector<float> sinks;           ///< [heads]; empty without
  };

  [[nodiscard]] static CacheSpec cache_spec(const Config& c) noexcept { return {c.kv_heads, c.head_dim, c.value_dim}; }

  /// Floats of a row of an Area.
  [[nodiscard]] static std::size_t area(const Config& c) noexcept {
    const std::size_t heads = c.heads, kv_heads = c.kv_heads;
    return Area::floats({heads * c.head_dim, kv_heads * c.head_dim, kv_heads * c.value_width(), heads * c.value_width()});
  }
  /// The widest input of a matmul beside d_model.
  [[nodiscard]] static std::size_t widest(const Config& c) noexcept { return std::size_t{c.heads} * c.value_width(); }

  /// Takes the weights of layer i. Errors: the loader's.
  template <class D, class L>
  [[nodiscard]] static Expected<Weights<D>> load(L& loader, const Config& c, std::size_t i) {
    const std::size_t d = c.d_model, q_width = std::size_t{c.heads} * c.head_dim, k_width = std::size_t{c.kv_heads} * c.head_dim,
                      v_width = std::size_t{c.kv_heads} * c.value_width();
    Weights<D> w;
    if (loader.has(Role::qkv, i)) {  // one matrix, its rows those of q, k and v
      const std::size_t rows = q_width + k_width + v_width;
      NIHAO_TRY(w.q, loader.rows_of(Role::qkv, i, rows, 0, q_width, d, c.qkv_bias));
      NIHAO_TRY(w.k, loader.rows_of(Role::qkv, i, rows, q_width, k_width, d, c.qkv_bias));
      NIHAO_TRY(w.v, loader.rows_of(Role::qkv, i, rows, q_width + k_width, v_width, d, c.qkv_bias));
    } else {
      NIHAO_TRY(w.q, loader.linear(Role::q, i, q_width, d, c.qkv_bias));
      NIHAO_TRY(w.k, loader.linear(Role::k, i, k_width, d, c.qkv_bias));
      NIHAO_TRY(w.v, loader.linear(Role::v, i, v_width, d, c.qkv_bias));
    }
    NIHAO_TRY(w.o, loader.linear(Role::o, i, d, c.heads * c.value_width(), c.o_bias));
    if constexpr (Options.qk_norm == QkNorm::per_head || Options.qk_norm == QkNorm::whole) {
      constexpr bool whole = Options.qk_norm == QkNorm::whole;
      NIHAO_TRY(w.q_norm, loader.floats(Role::q_norm, i, whole ? q_width : c.head_dim));
      NIHAO_TRY(w.k_norm, loader.floats(Role::k_norm, i, whole ? k_width : c.head_dim));
    } else if constexpr (Options.qk_norm == QkNorm::turned) {
      w.q_norm.assign(c.head_dim, 1.0f);
      w.k_norm = w.q_norm;
    }
    if constexpr (Options.sinks) { NIHAO_TRY(w.sinks, loader.floats(Role::sinks, i, c.heads)); }
    return w;
  }

  /// out = attention(h), or out += it. h, out: [tokens, d_model].
  template <Sizes S, class Q, class D, Observer O>
  static void forward(const Projector<D>& project, const Weights<D>& w, const Config& config, const AttentionStep& step,
                      const Activations& a, MatrixView<const float> h, MatrixView<float> out, bool accumulate,
                      O& observer) noexcept {
    const D& device = project.device;
    const std::size_t rows = h.rows();
    const auto head_dim = static_cast<std::size_t>(extent<S.head_dim>(static_cast<std::int32_t>(config.head_dim)));
    const int layer = static_cast<int>(step.layer);
    const LayerConfig& here = config.layers[step.layer];
    Area area = a.area(rows);
    const MatrixView<float> q = area.take(config.heads * head_dim), k = area.take(config.kv_heads * head_dim),
                            v = area.take(std::size_t{config.kv_heads} * config.value_width()),
                            heads = area.take(std::size_t{config.heads} * config.value_width());

    project.template operator()<Q>(h, std::array<Projection<D>, 3>{{{w.q, q}, {w.k, k}, {w.v, v}}});
    if constexpr (O::active) {
      observer.see({"q_proj", layer, q, w.q.work(rows)});
      observer.see({"k_proj", layer, k, w.k.work(rows)});
      observer.see({"v_proj", layer, v, w.v.work(rows)});
    }

    if (config.qkv_clip > 0)
      for (const MatrixView<float>& x : {q, k, v}) Ops<D>::clip(device, x, config.qkv_clip);
    if constexpr (Options.qk_norm == QkNorm::per_head) {
      norm_heads(device, w, config, q, k);
    } else if constexpr (Options.qk_norm == QkNorm::whole) {
      Ops<D>::rms_norm(device, q, w.q_norm, config.norm_eps, q);
      Ops<D>::rms_norm(device, k, w.k_norm, config.norm_eps, k);
    }
    if constexpr (O::active) {
      observer.see({"q_before_rope", layer, q});
      observer.see({"k_before_rope", layer, k});
    }
    if (here.rope != no_rope) {
      const MatrixView<const float> cos = a.cos(rows, here.rope), sin = a.sin(rows, here.rope);
      Ops<D>::rope(device, q, head_dim, cos, sin, config.rope_style);
      Ops<D>::rope(device, k, head_dim, cos, sin, config.rope_style);
      if constexpr (O::active) {
        observer.see({"rope.cos", layer, cos});
        observer.see({"rope.sin", layer, sin});
      }
      if constexpr (Options.qk_norm == QkNorm::turned)
        if (config.qk_norm) norm_heads(device, w, config, q, k);
    } else if (config.temperature_scale != 0) {
      Ops<D>::scale_rows(device, q, a.temperature(rows));
    }
    if constexpr (O::active) {
      observer.see({"q_after_rope", layer, q});
      observer.see({"k_after_rope", layer, k});
    }

    const AttentionShape shape{config.heads,
                               config.kv_heads,
                               config.head_dim,
                               config.attention_scale,
                               here.window,
                               config.value_dim,
                               here.chunk,
                               config.attention_softcap,
                               Options.sinks ? w.sinks.data() : nullptr};
    detail::attend(device, project.scratch, shape, step, q, k, v, heads, "attn_heads_concat", observer);

    project.template operator()<Q>(heads, std::array<Projection<D>, 1>{{{w.o, out, accumulate}}});
    if constexpr (O::active) observer.see({"attn_out", layer, out, w.o.work(rows)});
  }

 private:
  template <class D>
  static void norm_heads(const D& device, const Weights<D>& w, const Config& config, MatrixView<float> q,
                         MatrixView<float> k) noexcept {
    Ops<D>::rms_norm_heads(device, q, w.q_norm, config.norm_eps);
    Ops<D>::rms_norm_heads(device, k, w.k_norm, config.norm_eps);
  }
};

}  // namespace nihao
