// What a model's file says of its architecture, in one form for all families and file kinds.
#pragma once

#include "../base/extents.hpp"
#include "../kernels/rope.hpp"
#include "../kernels/router.hpp"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace nihao {

inline constexpr std::uint32_t no_rope = UINT32_MAX;

/// What may differ from layer to layer.
struct LayerConfig {
  std::uint32_t window = 0;  ///< sliding window: a position sees this many, itself included; 0: all before it
  std::uint32_t chunk = 0;   ///< chunked attention: a position sees none before the last multiple of this; 0: no chunks
  std::uint32_t rope = 0;    ///< index into Config::ropes, or no_rope: nothing is turned
  std::uint32_t kind = 0;    ///< which of the family's block kinds
};

/// How multi-head latent attention is computed: layers/mla.hpp.
enum class MlaMode : std::uint8_t { naive, absorbed, merged };

/// Widths of multi-head latent attention: DeepSeek-AI 2024, arXiv:2405.04434, section 2.1.
struct MlaConfig {
  std::uint32_t q_rank = 0;   ///< of the queries' own latent; 0: queries are projected at once
  std::uint32_t kv_rank = 0;  ///< d_c: of the latent that keys and values are made from
  std::uint32_t nope = 0;     ///< d_h: of a head's query and key that is not turned
  std::uint32_t rope = 0;     ///< d_h^R: of what is turned; the key's is one for all heads
  float norm_eps = 1e-6f;     ///< of the latents' norms
  MlaMode mode = MlaMode::absorbed;
};

/// Sizes and constants of a decoder. All are checked when the config is read: kernels may rely on them.
struct Config {
  std::string architecture;  ///< as the file names it: "llama", "gemma3_text"
  std::uint32_t vocab = 0, d_model = 0, heads = 0, kv_heads = 0;
  std::uint32_t head_dim = 0;   ///< of queries and keys
  std::uint32_t value_dim = 0;  ///< of a head's values; 0: head_dim
  std::uint32_t rotated = 0;    ///< values of a head that turn, the first; 0: all (of MLA: mla.rope, the last)
  std::uint32_t d_ff = 0;       ///< of dense layers
  std::uint32_t expert_ff = 0;  ///< of one expert; 0: no layer has any
  std::uint32_t shared_ff = 0;  ///< of the shared expert, which all tokens go to; 0: none
  std::uint32_t context = 0;    ///< positions the model was trained for
  float norm_eps = 1e-5f;
  float attention_scale = 0;                                       ///< of the scores
  float attention_softcap = 0, logit_softcap = 0;                  ///< 0: none
  float embedding_scale = 1, residual_scale = 1, logit_scale = 1;  ///< factors
  float temperature_scale = 0, temperature_floor = 0;              ///< queries of layers that do not turn: see row_temperature
  float qkv_clip = 0;    ///< queries, keys and values are cut off at this magnitude; 0: they are not
  float gate_limit = 0;  ///< ClampedSwiGLU's
  bool qk_norm = true;   ///< of families that normalise q and k: whether this model does
  bool qkv_bias = false, o_bias = false, ffn_bias = false, head_bias = false, router_bias = false, norm_bias = false;
  RopeStyle rope_style = RopeStyle::halves;
  std::vector<RopeParams> ropes;  ///< at least one
  std::vector<LayerConfig> layers;
  std::uint32_t draft_layers = 0;  ///< a checkpoint has so many more, which are left alone: see is_left_alone
  RouterShape router;
  MlaConfig mla;

  [[nodiscard]] std::uint32_t value_width() const noexcept { return value_dim > 0 ? value_dim : head_dim; }
  [[nodiscard]] std::uint32_t rotated_width() const noexcept { return rotated > 0 ? rotated : head_dim; }
  /// Llama 4 multiplies the queries of its layers without rope by 1 + scale * ln(1 + floor((position + 1) / floor)).
  [[nodiscard]] float row_temperature(std::int64_t position) const noexcept {
    const double steps = std::floor(static_cast<double>(position + 1) / static_cast<double>(temperature_floor));
    return static_cast<float>(1.0 + static_cast<double>(temperature_scale) * std::log1p(steps));
  }

  [[nodiscard]] Sizes sizes() const noexcept {
    const auto n = [](std::size_t size) { return static_cast<std::int32_t>(size); };
    return {n(d_model), n(layers.size()), n(heads), n(kv_heads), n(head_dim), n(d_ff), n(vocab)};
  }
};

}  // namespace nihao
