// What a model's shape says without its weights: parameters, those that work on one token, and what a token leaves in the cache.
#pragma once

#include "../layers/mla.hpp"

#include <cstdint>

namespace nihao {

/// Whether layers of a kind have experts, and so what `kind` of LayerConfig means: families of one kind have it in all layers.
[[nodiscard]] inline bool has_experts(const Config& c, const LayerConfig& layer) noexcept {
  if (c.router.experts == 0) return false;
  for (const LayerConfig& other : c.layers)
    if (other.kind != 0) return layer.kind != 0;  // two kinds: dense, then experts
  return true;
}

/// Weights of a model.
struct ParameterCount {
  std::uint64_t total = 0;
  std::uint64_t active = 0;  ///< without the experts that a token does not go to
};

/// Counts matrices, biases and norms; of a tied model the embedding once.
[[nodiscard]] inline ParameterCount count_parameters(const Config& c, bool tied) noexcept {
  const std::uint64_t d = c.d_model, h = c.heads, v = c.value_width();
  ParameterCount n;
  const auto both = [&](std::uint64_t weights) { n.total += weights, n.active += weights; };
  both(std::uint64_t{c.vocab} * d * (tied ? 1 : 2) + d + (c.head_bias ? c.vocab : 0));
  for (const LayerConfig& layer : c.layers) {
    both(2 * d * (c.norm_bias ? 2 : 1));
    if (c.mla.kv_rank > 0) {
      const MlaConfig& m = c.mla;
      const std::uint64_t q = h * (m.nope + m.rope);
      both(m.q_rank > 0 ? d * m.q_rank + m.q_rank + m.q_rank * q : d * q);
      both(d * (m.kv_rank + m.rope) + m.kv_rank + m.kv_rank * h * (m.nope + v) + h * v * d);
    } else {
      const std::uint64_t q = h * c.head_dim, k = std::uint64_t{c.kv_heads} * c.head_dim, values = std::uint64_t{c.kv_heads} * v;
      both(d * (q + k + values) + h * v * d + (c.qkv_bias ? q + k + values : 0) + (c.o_bias ? d : 0));
    }
    if (!has_experts(c, layer)) {
      both(3 * d * c.d_ff + (c.ffn_bias ? 2 * std::uint64_t{c.d_ff} + d : 0));
      continue;
    }
    const std::uint64_t expert = 3 * d * c.expert_ff + (c.ffn_bias ? 2 * std::uint64_t{c.expert_ff} + d : 0);
    both(d * c.router.experts + (c.router_bias ? c.router.experts : 0) + 3 * d * c.shared_ff);
    n.total += c.router.experts * expert;
    n.active += c.router.chosen * expert;
  }
  return n;
}

/// What one layer keeps of its keys and values.
[[nodiscard]] inline KvLayout cache_layout(const Config& c, KvType type) noexcept {
  const CacheSpec spec = c.mla.kv_rank > 0 ? Attention<MLA<>>::cache_spec(c) : Attention<GQA<>>::cache_spec(c);
  return spec.layout(type);
}
/// Bytes of keys and values of one token, in all layers that see far enough back.
[[nodiscard]] inline std::uint64_t cache_bytes_per_token(const Config& c, KvType type) noexcept {
  return cache_layout(c, type).block_bytes() * c.layers.size() / kv_block;
}

}  // namespace nihao
