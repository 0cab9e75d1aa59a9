// What each architecture of a GGUF file means beyond what all have in common: a line in a table, and a function where a family
// has keys of its own. Keys are those that llama.cpp writes.
#pragma once

#include "../files/gguf.hpp"
#include "../layers/config.hpp"

#include <array>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

namespace nihao::detail {

/// A file, and the prefix of its architecture's keys.
struct GgufKeys {
  const Gguf& file;
  std::string_view architecture;

  [[nodiscard]] std::string path(std::string_view name) const { return concat(architecture, ".", name); }
  template <class T>
  [[nodiscard]] Expected<T> get(std::string_view name) const {
    return file.get<T>(path(name));
  }
  template <class T>
  [[nodiscard]] Expected<T> get_or(std::string_view name, T otherwise) const {
    return file.get_or<T>(path(name), otherwise);
  }
  /// A number, or an array of one for each layer that are all the same but for zeros: older and newer files have either.
  [[nodiscard]] Expected<std::uint32_t> one_of_all(std::string_view name, std::uint32_t otherwise) const {
    if (!file.has(path(name))) return otherwise;
    if (auto number = file.get<std::uint32_t>(path(name))) return number;
    NIHAO_TRY(const auto all, file.array<std::uint32_t>(path(name)));
    std::uint32_t one = 0;
    for (const std::uint32_t n : all) {
      if (n != 0 && one != 0 && n != one)
        return Error{ErrorCode::unsupported, concat("layers of ", one, " and of ", n), path(name)};
      if (n != 0) one = n;
    }
    return one;
  }
};

/// What an architecture says by itself, without a key.
struct GgufFamily {
  std::string_view architecture;
  RopeStyle rope = RopeStyle::halves;
  std::array<std::string_view, 9> reads = {};  ///< keys that change other families' results, and that this one understands
  Expected<void> (*read)(const GgufKeys&, Config&) = nullptr;  ///< what only its files say: c.layers has its size
  std::string_view eps = "attention.layer_norm_rms_epsilon";
};

/// The window of all layers but each `pattern`th (0: of all), unless the file says which slide: by another number, or by a flag
/// for each layer.
[[nodiscard]] inline Expected<void> gguf_slide(const GgufKeys& keys, Config& c, std::uint32_t window, std::uint32_t pattern) {
  const std::string key = keys.path("attention.sliding_window_pattern");
  std::vector<bool> flags;
  if (auto stated = keys.file.array<bool>(key)) {
    flags = *std::move(stated);
    if (flags.size() != c.layers.size())
      return Error{ErrorCode::mismatch, concat("it has ", flags.size(), " flags for ", c.layers.size(), " layers"), key};
  } else {
    NIHAO_TRY(pattern, keys.file.get_or<std::uint32_t>(key, pattern));
    for (std::size_t i = 0; i < c.layers.size(); ++i) flags.push_back(pattern == 0 || (i + 1) % pattern != 0);
  }
  for (std::size_t i = 0; i < c.layers.size(); ++i) c.layers[i].window = flags[i] ? window : 0;
  return {};
}
[[nodiscard]] inline Expected<void> gguf_slide_all(const GgufKeys& keys, Config& c) {
  NIHAO_TRY(const auto window, keys.get_or<std::uint32_t>("attention.sliding_window", 0));
  return gguf_slide(keys, c, window, 0);
}

/// What a router makes of its logits, as expert_gating_func says it.
enum GgufGating : std::uint32_t { gguf_softmax = 1, gguf_sigmoid = 2, gguf_softmax_of_chosen = 3 };
[[nodiscard]] inline Expected<void> gguf_experts(const GgufKeys& keys, Config& c, GgufGating gating, bool normalize) {
  NIHAO_TRY(c.router.experts, keys.get<std::uint32_t>("expert_count"));
  NIHAO_TRY(c.router.chosen, keys.get<std::uint32_t>("expert_used_count"));
  NIHAO_TRY(c.expert_ff, keys.one_of_all("expert_feed_forward_length", c.d_ff));
  NIHAO_TRY(c.router.normalize, keys.get_or<bool>("expert_weights_norm", normalize));
  NIHAO_TRY(c.router.scale, keys.get_or<float>("expert_weights_scale", 1.0f));
  if (c.router.scale == 0) c.router.scale = 1;
  NIHAO_TRY(const auto stated, keys.get_or<std::uint32_t>("expert_gating_func", gating));
  if (stated != gating && stated != 0)
    return Error{ErrorCode::unsupported, concat("it is ", stated, ", and the family's routers do ", std::uint32_t{gating}),
                 keys.path("expert_gating_func")};
  return {};
}

[[nodiscard]] inline Expected<void> gguf_llama(const GgufKeys& keys, Config& c) {
  NIHAO_TRY(const auto experts, keys.get_or<std::uint32_t>("expert_count", 0));
  if (experts > 0) { NIHAO_CHECK(gguf_experts(keys, c, gguf_softmax, true)); }  // Mixtral
  return gguf_slide_all(keys, c);
}
[[nodiscard]] inline Expected<void> gguf_smollm3(const GgufKeys& keys, Config& c) {
  for (std::size_t i = 3; i < c.layers.size(); i += 4) c.layers[i].rope = no_rope;
  return gguf_slide_all(keys, c);
}
[[nodiscard]] inline Expected<void> gguf_qwen2(const GgufKeys& keys, Config& c) {
  c.qkv_bias = true;
  return gguf_slide_all(keys, c);
}
[[nodiscard]] inline Expected<void> gguf_qwen3_moe(const GgufKeys& keys, Config& c) {
  NIHAO_CHECK(gguf_experts(keys, c, gguf_softmax, true));
  for (std::size_t i = 0; i < c.layers.size(); ++i)  // those that are dense have no router
    c.layers[i].kind = keys.file.tensors().find(concat("blk.", i, ".ffn_gate_inp.weight")) != nullptr ? 1 : 0;
  return gguf_slide_all(keys, c);
}
[[nodiscard]] inline Expected<void> gguf_gemma2(const GgufKeys& keys, Config& c) {
  c.embedding_scale = std::sqrt(static_cast<float>(c.d_model));
  // The largest of the family scales by the width per head; its file does not say so, its depth does.
  if (c.layers.size() == 46) c.attention_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(c.d_model) / c.heads));
  NIHAO_TRY(c.attention_softcap, keys.get_or<float>("attn_logit_softcapping", 50.0f));
  NIHAO_TRY(c.logit_softcap, keys.get_or<float>("final_logit_softcapping", 30.0f));
  NIHAO_TRY(const auto window, keys.get_or<std::uint32_t>("attention.sliding_window", 4096));
  return gguf_slide(keys, c, window, 2);
}
[[nodiscard]] inline Expected<void> gguf_gemma3(const GgufKeys& keys, Config& c) {
  c.embedding_scale = std::sqrt(static_cast<float>(c.d_model));
  if (c.layers.size() == 62) c.attention_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(c.d_model) / c.heads));
  RopeParams local;
  NIHAO_TRY(c.logit_softcap, keys.get_or<float>("final_logit_softcapping", 0.0f));
  NIHAO_TRY(local.base, keys.get_or<double>("rope.freq_base_swa", 10000.0));
  c.ropes.push_back(local);
  NIHAO_TRY(const auto window, keys.get_or<std::uint32_t>("attention.sliding_window", 0));
  NIHAO_CHECK(gguf_slide(keys, c, window, 6));
  for (LayerConfig& layer : c.layers) layer.rope = layer.window > 0 ? 1 : 0;
  return {};
}
/// OLMo 3's files are of this architecture too: layers that slide turn without scaling.
[[nodiscard]] inline Expected<void> gguf_olmo2(const GgufKeys& keys, Config& c) {
  NIHAO_TRY(const auto window, keys.get_or<std::uint32_t>("attention.sliding_window", 0));
  if (window == 0) return {};
  RopeParams local;
  NIHAO_TRY(local.base, keys.get_or<double>("rope.freq_base_swa", c.ropes[0].base));
  c.ropes.push_back(local);
  NIHAO_CHECK(gguf_slide(keys, c, window, 4));
  for (LayerConfig& layer : c.layers) layer.rope = layer.window > 0 ? 1 : 0;
  return {};
}
[[nodiscard]] inline Expected<void> gguf_granite(const GgufKeys& keys, Config& c) {
  NIHAO_TRY(c.attention_scale, keys.get_or<float>("attention.scale", c.attention_scale));
  NIHAO_TRY(c.embedding_scale, keys.get_or<float>("embedding_scale", 1.0f));
  NIHAO_TRY(c.residual_scale, keys.get_or<float>("residual_scale", 1.0f));
  NIHAO_TRY(const float divisor, keys.get_or<float>("logit_scale", 1.0f));
  c.logit_scale = 1.0f / divisor;
  return {};
}
[[nodiscard]] inline Expected<void> gguf_cohere2(const GgufKeys& keys, Config& c) {
  NIHAO_TRY(c.logit_scale, keys.get<float>("logit_scale"));
  NIHAO_TRY(const auto window, keys.get<std::uint32_t>("attention.sliding_window"));
  NIHAO_CHECK(gguf_slide(keys, c, window, 4));
  for (LayerConfig& layer : c.layers) layer.rope = layer.window > 0 ? 0 : no_rope;
  return {};
}
[[nodiscard]] inline Expected<void> gguf_phi_moe(const GgufKeys& keys, Config& c) {
  NIHAO_CHECK(gguf_experts(keys, c, gguf_softmax, false));
  c.router.jitter = 0.01f;  // the vendor's; files do not say
  c.norm_bias = c.qkv_bias = c.o_bias = true;
  c.head_bias = keys.file.tensors().find("output.bias") != nullptr;
  return gguf_slide_all(keys, c);
}
[[nodiscard]] inline Expected<void> gguf_dbrx(const GgufKeys& keys, Config& c) {
  NIHAO_CHECK(gguf_experts(keys, c, gguf_softmax, true));
  NIHAO_TRY(c.qkv_clip, keys.get_or<float>("attention.clamp_kqv", 0.0f));
  return {};
}
[[nodiscard]] inline Expected<void> gguf_deepseek2(const GgufKeys& keys, Config& c) {
  MlaConfig& m = c.mla;
  NIHAO_TRY(m.q_rank, keys.get_or<std::uint32_t>("attention.q_lora_rank", 0));
  NIHAO_TRY(m.kv_rank, keys.get<std::uint32_t>("attention.kv_lora_rank"));
  NIHAO_TRY(m.rope, keys.get<std::uint32_t>("rope.dimension_count"));
  // Files made for an absorbed cache give the latent's widths as those of keys and values, and the heads' own beside them.
  NIHAO_TRY(c.head_dim, keys.get_or<std::uint32_t>("attention.key_length_mla", c.head_dim));
  NIHAO_TRY(c.value_dim, keys.get_or<std::uint32_t>("attention.value_length_mla", c.value_width()));
  if (m.rope >= c.head_dim)
    return Error{ErrorCode::malformed, concat(m.rope, " of ", c.head_dim, " values turn"), keys.path("rope.dimension_count")};
  m.nope = c.head_dim - m.rope;
  m.norm_eps = c.norm_eps;
  c.rotated = m.rope;
  c.kv_heads = c.heads;
  NIHAO_TRY(const double log_multiplier, keys.get_or<double>("rope.scaling.yarn_log_multiplier", 0.0));
  double scale = 1.0 / std::sqrt(static_cast<double>(c.head_dim));
  if (log_multiplier != 0 && c.ropes[0].scaling == RopeScaling::yarn) {  // 0.1 mscale_all_dim; cos and sin then have no magnitude
    const double magnitude = yarn_magnitude(c.ropes[0].factor, 10.0 * log_multiplier);
    scale *= magnitude * magnitude;
    c.ropes[0].attention_factor = 1;
  }
  c.attention_scale = static_cast<float>(scale);

  NIHAO_TRY(const auto gating, keys.get_or<std::uint32_t>("expert_gating_func", gguf_softmax));
  c.router.sigmoid = gating == gguf_sigmoid;
  NIHAO_CHECK(gguf_experts(keys, c, c.router.sigmoid ? gguf_sigmoid : gguf_softmax, false));
  NIHAO_TRY(const auto shared, keys.get_or<std::uint32_t>("expert_shared_count", 0));
  c.shared_ff = shared * c.expert_ff;
  NIHAO_TRY(c.router.groups, keys.get_or<std::uint32_t>("expert_group_count", 1));
  NIHAO_TRY(c.router.groups_kept, keys.get_or<std::uint32_t>("expert_group_used_count", 1));
  NIHAO_TRY(const auto dense, keys.get_or<std::uint32_t>("leading_dense_block_count", 0));
  for (std::size_t i = dense; i < c.layers.size(); ++i) c.layers[i].kind = 1;
  return {};
}
[[nodiscard]] inline Expected<void> gguf_llama4(const GgufKeys& keys, Config& c) {
  NIHAO_CHECK(gguf_experts(keys, c, gguf_sigmoid, false));
  c.shared_ff = c.expert_ff;
  c.qk_norm = c.router.experts != 128;  // files do not say; of the two models that there are, the larger has none
  NIHAO_TRY(const auto every, keys.get<std::uint32_t>("interleave_moe_layer_step"));
  NIHAO_TRY(const auto chunk, keys.get_or<std::uint32_t>("attention.sliding_window", 8192));
  for (const auto& [name, value] : {std::pair(std::string_view("interleave_moe_layer_step"), every),
                                    std::pair(std::string_view("attention.sliding_window"), chunk)})
    if (value == 0) return Error{ErrorCode::unsupported, "it is 0", keys.path(name)};
  NIHAO_TRY(c.temperature_scale, keys.get_or<float>("attention.temperature_scale", 0.1f));
  NIHAO_TRY(c.temperature_floor, keys.get_or<float>("attention.temperature_length", 8192.0f));
  if (!(c.temperature_floor > 0))
    return Error{ErrorCode::malformed, concat("it is ", c.temperature_floor), keys.path("attention.temperature_length")};
  NIHAO_CHECK(gguf_slide(keys, c, chunk, 4));
  for (std::size_t i = 0; i < c.layers.size(); ++i) {
    LayerConfig& layer = c.layers[i];
    layer.chunk = std::exchange(layer.window, 0);
    layer.rope = layer.chunk > 0 ? 0 : no_rope;
    layer.kind = (i + 1) % every == 0 ? 1 : 0;
  }
  return {};
}
[[nodiscard]] inline Expected<void> gguf_gpt_oss(const GgufKeys& keys, Config& c) {
  NIHAO_CHECK(gguf_experts(keys, c, gguf_softmax_of_chosen, false));
  c.qkv_bias = c.o_bias = c.ffn_bias = c.router_bias = true;
  c.gate_limit = 7;
  c.ropes[0].truncate = false;
  NIHAO_TRY(const auto window, keys.get<std::uint32_t>("attention.sliding_window"));
  return gguf_slide(keys, c, window, 2);
}

inline constexpr GgufFamily gguf_families[] = {
    {.architecture = "llama", .rope = RopeStyle::neighbours, .reads = {"expert_count"}, .read = gguf_llama},
    {.architecture = "smollm3", .rope = RopeStyle::neighbours, .read = gguf_smollm3},
    {.architecture = "glm4", .rope = RopeStyle::neighbours, .reads = {"rope.dimension_count"}, .read = gguf_slide_all},
    {.architecture = "qwen2", .read = gguf_qwen2},
    {.architecture = "qwen3", .read = gguf_slide_all},
    {.architecture = "qwen3moe", .reads = {"expert_count"}, .read = gguf_qwen3_moe},
    {.architecture = "olmo2", .reads = {"rope.freq_base_swa"}, .read = gguf_olmo2},
    {.architecture = "gemma2", .reads = {"attn_logit_softcapping", "final_logit_softcapping"}, .read = gguf_gemma2},
    {.architecture = "gemma3", .reads = {"final_logit_softcapping", "rope.freq_base_swa"}, .read = gguf_gemma3},
    {.architecture = "phi3", .reads = {"rope.dimension_count"}, .read = gguf_slide_all},
    {.architecture = "phimoe", .reads = {"expert_count"}, .read = gguf_phi_moe},
    {.architecture = "granite",
     .rope = RopeStyle::neighbours,
     .reads = {"attention.scale", "embedding_scale", "residual_scale", "logit_scale"},
     .read = gguf_granite},
    {.architecture = "cohere2",
     .rope = RopeStyle::neighbours,
     .reads = {"logit_scale"},
     .read = gguf_cohere2,
     .eps = "attention.layer_norm_epsilon"},
    {.architecture = "dbrx",
     .reads = {"expert_count", "attention.clamp_kqv"},
     .read = gguf_dbrx,
     .eps = "attention.layer_norm_epsilon"},
    {.architecture = "deepseek2",
     .rope = RopeStyle::neighbours,
     .reads = {"expert_count", "rope.scaling.yarn_log_multiplier", "rope.dimension_count", "attention.value_length",
               "leading_dense_block_count", "expert_shared_count", "expert_group_count", "attention.q_lora_rank",
               "attention.kv_lora_rank"},
     .read = gguf_deepseek2},
    {.architecture = "llama4",
     .rope = RopeStyle::neighbours,
     .reads = {"expert_count", "interleave_moe_layer_step", "attention.temperature_scale"},
     .read = gguf_llama4},
    {.architecture = "gpt-oss", .reads = {"expert_count"}, .read = gguf_gpt_oss},
};

/// The family of that name, or null.
[[nodiscard]] constexpr const GgufFamily* find_gguf_family(std::string_view architecture) noexcept {
  for (const GgufFamily& family : gguf_families)
    if (family.architecture == architecture) return &family;
  return nullptr;
}

}  // namespace nihao::detail
