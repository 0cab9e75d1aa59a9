// Attention as a layer: projections, position, cache, scores, output.
#pragma once

#include "../cache/kv_cache.hpp"
#include "../kernels/attention.hpp"
#include "activations.hpp"
#include "config.hpp"
#include "linear.hpp"
#include "norm.hpp"

#include <array>

namespace nihao {

/// Where q and k are normalised before they turn: not at all, each head by itself (Gemma 3, Qwen 3), or the whole row (OLMo 2).
enum class QkNorm : std::uint8_t { none, per_head, whole };

/// Options of grouped-query attention.
struct GqaOptions {
  bool qkv_bias = false;  ///< q, k and v have biases (Qwen 2)
  QkNorm qk_norm = QkNorm::none;
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
  static_assert(sizeof(Variant) == 0, "nihao::Attention<V>: V must be an attention variant, such as nihao::GQA<>.");
};

template <GqaOptions Options>
struct Attention<GQA<Options>> {
  static constexpr GqaOptions options = Options;

  template <class D>
  struct Weights {
    Linear<D> q, k, v, o;
    std::vector<float> q_norm, k_norm;  ///< [head_dim], or the whole width; empty without qk_norm
  };

  [[nodiscard]] static CacheSpec cache_spec(const Config& config) noexcept { return {config.kv_heads, config.head_dim}; }

  /// out = attention(h), or out += it. h, out: [tokens, d_model].
  template <Sizes S, class Q, class D, Observer O>
  static void forward(const D& device, const typename Ops<D>::Scratch& scratch, const Weights<D>& w, const Config& config,
                      const AttentionStep& step, const Activations& a, MatrixView<const float> h, MatrixView<float> out,
                      bool accumulate, O& observer) noexcept {
    const std::size_t rows = h.rows();
    const auto head_dim = static_cast<std::size_t>(extent<S.head_dim>(static_cast<std::int32_t>(config.head_dim)));
    const int layer = static_cast<int>(step.layer);
    const LayerConfig& here = config.layers[step.layer];
    const MatrixView<float> q = a.q(rows), k = a.k(rows), v = a.v(rows), heads = a.heads(rows);

    const std::array<typename Ops<D>::Job, 3> qkv{w.q.to(q), w.k.to(k), w.v.to(v)};
    Ops<D>::template linear<Q>(device, scratch, h, qkv);
    if constexpr (O::active) {
      observer.see({"q_proj", layer, q, w.q.work(rows)});
      observer.see({"k_proj", layer, k, w.k.work(rows)});
      observer.see({"v_proj", layer, v, w.v.work(rows)});
    }

    if constexpr (Options.qk_norm == QkNorm::per_head) {
      Ops<D>::rms_norm_heads(device, q, w.q_norm, config.norm_eps);
      Ops<D>::rms_norm_heads(device, k, w.k_norm, config.norm_eps);
    } else if constexpr (Options.qk_norm == QkNorm::whole) {
      Ops<D>::rms_norm(device, q, w.q_norm, config.norm_eps, q);
      Ops<D>::rms_norm(device, k, w.k_norm, config.norm_eps, k);
    }
    if constexpr (O::active) {
      observer.see({"q_before_rope", layer, q});
      observer.see({"k_before_rope", layer, k});
    }
    const MatrixView<const float> cos = a.cos(rows, here.rope), sin = a.sin(rows, here.rope);
    Ops<D>::rope(device, q, head_dim, cos, sin, config.rope_style);
    Ops<D>::rope(device, k, head_dim, cos, sin, config.rope_style);
    if constexpr (O::active) {
      observer.see({"rope.cos", layer, cos});
      observer.see({"rope.sin", layer, sin});
      observer.see({"q_after_rope", layer, q});
      observer.see({"k_after_rope", layer, k});
    }

    const KvLayout& layout = step.cache.layout(step.layer);
    Ops<D>::append(device, layout, step.cache.data(step.layer), step.batch, k, v);
    const AttentionShape shape{config.heads, config.kv_heads, config.head_dim, config.attention_scale, here.window};
    Ops<D>::attention(device, scratch, shape, layout, step.cache.data(step.layer), step.batch, q, heads);
    if constexpr (O::active) {
      const AttentionInputs inputs{shape, layout, step.cache.data(step.layer), step.batch, q, device.isa()};
      observer.see({"attn_heads_concat", layer, heads, work(shape, layout, step.batch), &inputs});
    }

    const std::array<typename Ops<D>::Job, 1> o{w.o.to(out, accumulate)};
    Ops<D>::template linear<Q>(device, scratch, heads, o);
    if constexpr (O::active) observer.see({"attn_out", layer, out, w.o.work(rows)});
  }

 private:
  [[nodiscard]] static Work work(const AttentionShape& shape, const KvLayout& layout, const BatchView& batch) noexcept {
    Work total;
    for (const SequenceRows& s : batch.sequences) {
      const Work one = attention_work(shape, layout, batch.position[s.first], s.count);
      total.bytes += one.bytes, total.flops += one.flops;
    }
    return total;
  }
};

}  // namespace nihao
