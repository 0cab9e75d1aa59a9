// What each model_type of a Hugging Face config means beyond what all have in common: a line in a table, and a function where a
// family has keys of its own.
#pragma once

#include "../layers/config.hpp"
#include "hf_json.hpp"
#include "hf_rope.hpp"

#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

namespace nihao {

/// A Config, and what else a Hugging Face checkpoint's weights need to be understood.
struct HfConfig {
  Config config;
  bool tied = false;             ///< the head multiplies with the embedding
  float norm_offset = 0;         ///< added to norm weights: Gemma stores their distance from 1
  std::string_view prefix = {};  ///< of its tensors' names, where the folder has more than the language model
};

namespace detail {

/// What the keys of the sizes are called.
struct HfKeys {
  std::string_view layers = "num_hidden_layers", d_model = "hidden_size", d_ff = "intermediate_size",
                   heads = "num_attention_heads", kv_heads = "num_key_value_heads", context = "max_position_embeddings",
                   eps = "rms_norm_eps";
};

/// What a model_type says by itself, without a key.
struct HfFamily {
  std::string_view model_type;
  std::string_view activation = "silu", activation_key = "hidden_act";
  bool tied = false;            ///< default of tie_word_embeddings
  bool qkv_bias = false;        ///< q, k and v have biases, whatever the file says
  bool attention_bias = false;  ///< default of attention_bias
  bool kv_heads = false;        ///< the family's own default of num_key_value_heads is a number, not `heads`: files must state it
  std::uint32_t head_dim = 0;   ///< of files that do not speak of it; 0: hidden_size / heads
  double rope_theta = 10000.0;  ///< of files that do not speak of it; Gemma 3: of its global layers
  double rotary_part = 1.0;     ///< of each head, what turns in files that do not speak of it
  std::string_view gguf = {};   ///< the architecture of its GGUF files; "": they call it as model_type does
  std::array<std::string_view, 6> reads = {};  ///< keys that change other families' results, and that this one understands
  Expected<void> (*read)(const Json&, HfConfig&) = nullptr;  ///< what only its files say: c.layers has its size
  HfKeys keys = {};
};

[[nodiscard]] inline Error hf_unsupported(const Json& value, std::string_view path, std::string_view model_type) {
  return Error{ErrorCode::unsupported, concat("it is ", json_kind(value), ", which the ", model_type, " family here does not do"),
               std::string(path)};
}
/// layer_types, if the file has it: whether each layer's type is `first` (else it is "full_attention").
[[nodiscard]] inline Expected<std::optional<std::vector<bool>>> hf_layer_types(const Json& json, std::size_t layers,
                                                                               std::string_view first = "sliding_attention") {
  if (!hf_stated(json, "layer_types")) return std::optional<std::vector<bool>>{};
  NIHAO_TRY(const auto types, json_array<std::string_view>(json, "layer_types"));
  if (types.size() != layers)
    return Error{ErrorCode::mismatch, concat("it has ", types.size(), " entries for ", layers, " layers"), "layer_types"};
  std::vector<bool> result;
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i] != first && types[i] != "full_attention")
      return Error{ErrorCode::unsupported, concat("unknown layer type \"", printable(types[i]), "\""), concat("layer_types.", i)};
    result.push_back(types[i] == first);
  }
  return std::optional(std::move(result));
}

/// Gives the layers that slide their window.
[[nodiscard]] inline Expected<void> hf_slide(Config& c, const std::vector<bool>& slides, std::uint32_t window) {
  for (std::size_t i = 0; i < c.layers.size(); ++i) {
    if (!slides[i]) continue;
    if (window == 0) return Error{ErrorCode::malformed, concat("layer ", i, " slides, and there is no window"), "sliding_window"};
    c.layers[i].window = window;
  }
  return {};
}

/// Every layer, or none: `otherwise` is the window where the file does not speak of it.
[[nodiscard]] inline Expected<void> hf_slide_all(const Json& json, Config& c, std::uint32_t otherwise, std::string_view family) {
  const Json* stated = json_find(json, "sliding_window");
  std::vector<bool> slides(c.layers.size(), false);
  std::uint32_t window = 0;
  if (stated == nullptr ? otherwise > 0 : !stated->is_null()) {
    NIHAO_TRY(window, json_get_or<std::uint32_t>(json, "sliding_window", otherwise));
    slides.assign(c.layers.size(), true);
  }
  NIHAO_TRY(const auto types, hf_layer_types(json, c.layers.size()));
  if (types && *types != slides)
    return Error{ErrorCode::unsupported, concat("layers of both kinds, which the ", family, " family does not have"),
                 "layer_types"};
  return hf_slide(c, slides, window);
}

/// All layers but each `pattern`th, as layer_types or the pattern says.
[[nodiscard]] inline Expected<void> hf_slide_pattern(const Json& json, Config& c, std::uint32_t pattern_by_default) {
  NIHAO_TRY(const auto types, hf_layer_types(json, c.layers.size()));
  NIHAO_TRY(const auto window, json_get_or<std::uint32_t>(json, "sliding_window", 4096));
  const std::string_view key =
      json_find(json, "sliding_window_pattern") != nullptr ? "sliding_window_pattern" : "_sliding_window_pattern";
  NIHAO_TRY(const auto pattern, json_get_or<std::uint32_t>(json, key, pattern_by_default));
  if (pattern == 0) return Error{ErrorCode::malformed, "it is 0", std::string(key)};
  std::vector<bool> slides(c.layers.size());
  for (std::size_t i = 0; i < slides.size(); ++i) slides[i] = types ? (*types)[i] : (i + 1) % pattern != 0;
  return hf_slide(c, slides, window);
}

/// Qwen's rule: where use_sliding_window says so, the layers from max_window_layers on.
[[nodiscard]] inline Expected<void> hf_qwen_windows(const Json& json, HfConfig& hf) {
  Config& c = hf.config;
  NIHAO_TRY(const auto types, hf_layer_types(json, c.layers.size()));
  NIHAO_TRY(const bool use, json_get_or<bool>(json, "use_sliding_window", false));
  const Json* stated = json_find(json, "sliding_window");
  std::uint32_t window = 0;
  std::vector<bool> slides(c.layers.size(), false);
  if (use && (stated == nullptr || !stated->is_null())) {
    NIHAO_TRY(window, json_get_or<std::uint32_t>(json, "sliding_window", 4096));
    NIHAO_TRY(const auto first, json_get_or<std::uint32_t>(json, "max_window_layers", 28));
    for (std::size_t i = first; i < slides.size(); ++i) slides[i] = true;
  }
  return hf_slide(c, types ? *types : slides, window);
}

/// How many experts there are, how many a token goes to, and how wide one is.
[[nodiscard]] inline Expected<void> hf_experts(const Json& json, Config& c, std::string_view experts, std::string_view chosen,
                                               std::string_view width) {
  NIHAO_TRY(c.router.experts, json_get<std::uint32_t>(json, experts));
  NIHAO_TRY(c.router.chosen, json_get<std::uint32_t>(json, chosen));
  NIHAO_TRY(c.expert_ff, json_get<std::uint32_t>(json, width));
  return {};
}

/// Gemma 2 and 3 have in common: norms stored as their distance from 1, scaled embeddings, a scale of the scores.
[[nodiscard]] inline Expected<void> hf_gemma(const Json& json, HfConfig& hf) {
  Config& c = hf.config;
  NIHAO_TRY(const double scalar, json_get_or<double>(json, "query_pre_attn_scalar", 256.0));
  if (!(scalar > 0)) return Error{ErrorCode::malformed, concat("it is ", scalar), "query_pre_attn_scalar"};
  c.attention_scale = static_cast<float>(1.0 / std::sqrt(scalar));
  c.embedding_scale = std::sqrt(static_cast<float>(c.d_model));
  hf.norm_offset = 1.0f;
  return {};
}
[[nodiscard]] inline Expected<void> hf_gemma2(const Json& json, HfConfig& hf) {
  Config& c = hf.config;
  NIHAO_CHECK(hf_gemma(json, hf));
  const auto cap = [&](std::string_view key, float by_default) -> Expected<float> {  // null: none
    const Json* value = json_find(json, key);
    if (value != nullptr && value->is_null()) return 0.0f;
    return json_get_or<float>(json, key, by_default);
  };
  NIHAO_TRY(c.attention_softcap, cap("attn_logit_softcapping", 50.0f));
  NIHAO_TRY(c.logit_softcap, cap("final_logit_softcapping", 30.0f));
  return hf_slide_pattern(json, c, 2);
}
[[nodiscard]] inline Expected<void> hf_gemma3(const Json& json, HfConfig& hf) {
  NIHAO_CHECK(hf_gemma(json, hf));
  NIHAO_CHECK(hf_slide_pattern(json, hf.config, 6));
  for (LayerConfig& layer : hf.config.layers) layer.rope = layer.window > 0 ? 1 : 0;
  return {};
}
[[nodiscard]] inline Expected<void> hf_mistral(const Json& json, HfConfig& hf) {
  return hf_slide_all(json, hf.config, 4096, "mistral");  // absent is not null
}
[[nodiscard]] inline Expected<void> hf_phi3(const Json& json, HfConfig& hf) { return hf_slide_all(json, hf.config, 0, "phi3"); }
[[nodiscard]] inline Expected<void> hf_granite(const Json& json, HfConfig& hf) {
  Config& c = hf.config;
  NIHAO_TRY(c.attention_scale, json_get_or<float>(json, "attention_multiplier", 1.0f));
  NIHAO_TRY(c.embedding_scale, json_get_or<float>(json, "embedding_multiplier", 1.0f));
  NIHAO_TRY(c.residual_scale, json_get_or<float>(json, "residual_multiplier", 1.0f));
  NIHAO_TRY(const float divisor, json_get_or<float>(json, "logits_scaling", 1.0f));
  c.logit_scale = 1.0f / divisor;
  return {};
}
[[nodiscard]] inline Expected<void> hf_cohere2(const Json& json, HfConfig& hf) {
  Config& c = hf.config;
  NIHAO_TRY(c.logit_scale, json_get_or<float>(json, "logit_scale", 0.0625f));
  NIHAO_CHECK(hf_slide_pattern(json, c, 4));
  c.rope_style = RopeStyle::neighbours;
  for (LayerConfig& layer : c.layers) layer.rope = layer.window > 0 ? 0 : no_rope;
  return {};
}
[[nodiscard]] inline Expected<void> hf_mixtral(const Json& json, HfConfig& hf) {
  Config& c = hf.config;
  NIHAO_CHECK(hf_experts(json, c, "num_local_experts", "num_experts_per_tok", "intermediate_size"));
  c.router.normalize = true;
  return hf_slide_all(json, c, 0, "mixtral");
}
[[nodiscard]] inline Expected<void> hf_qwen3_moe(const Json& json, HfConfig& hf) {
  Config& c = hf.config;
  // All layers slide or none: its reference has no max_window_layers.
  NIHAO_TRY(const bool slides, json_get_or<bool>(json, "use_sliding_window", false));
  if (slides) { NIHAO_CHECK(hf_slide_all(json, c, 4096, "qwen3_moe")); }
  const bool old = hf_stated(json, "num_experts");  // transformers 5 writes the other
  NIHAO_CHECK(hf_experts(json, c, old ? "num_experts" : "num_local_experts", "num_experts_per_tok", "moe_intermediate_size"));
  NIHAO_TRY(c.router.normalize, json_get_or<bool>(json, "norm_topk_prob", false));
  NIHAO_TRY(const auto step, json_get_or<std::uint32_t>(json, "decoder_sparse_step", 1));
  if (step == 0) return Error{ErrorCode::malformed, "it is 0", "decoder_sparse_step"};
  std::vector<std::uint32_t> dense;
  if (hf_stated(json, "mlp_only_layers")) { NIHAO_TRY(dense, json_array<std::uint32_t>(json, "mlp_only_layers")); }
  for (std::uint32_t i = 0; i < c.layers.size(); ++i)
    c.layers[i].kind = (i + 1) % step == 0 && std::find(dense.begin(), dense.end(), i) == dense.end() ? 1 : 0;
  return {};
}
[[nodiscard]] inline Expected<void> hf_phimoe(const Json& json, HfConfig& hf) {
  Config& c = hf.config;
  NIHAO_CHECK(hf_experts(json, c, "num_local_experts", "num_experts_per_tok", "intermediate_size"));
  if (c.router.chosen != 2)
    return Error{ErrorCode::unsupported, concat("it is ", c.router.chosen, ", and a sparse mixer takes 2"),
                 "num_experts_per_tok"};
  NIHAO_TRY(c.router.jitter, json_get_or<float>(json, "router_jitter_noise", 0.01f));
  NIHAO_TRY(c.head_bias, json_get_or<bool>(json, "lm_head_bias", false));
  c.norm_bias = true;
  return hf_slide_all(json, c, 0, "phimoe");
}
[[nodiscard]] inline Expected<void> hf_dbrx(const Json& json, HfConfig& hf) {
  Config& c = hf.config;
  NIHAO_CHECK(hf_experts(json, c, "ffn_config.moe_num_experts", "ffn_config.moe_top_k", "ffn_config.ffn_hidden_size"));
  NIHAO_TRY(c.qkv_clip, json_get_or<float>(json, "attn_config.clip_qkv", 0.0f));
  constexpr std::string_view order = "ffn_config.moe_normalize_expert_weights";
  NIHAO_TRY(const auto norm, json_get_or<double>(json, order, 1.0));
  if (norm != 1)
    return Error{ErrorCode::unsupported, concat("weights are divided by their sum here, and it is the norm of order ", norm),
                 std::string(order)};
  c.router.normalize = json_find(json, order) == nullptr || hf_stated(json, order);  // null: they are not
  NIHAO_TRY(const auto activation, json_get_or<std::string_view>(json, "ffn_config.ffn_act_fn.name", "silu"));
  if (activation != "silu")
    return Error{ErrorCode::unsupported, concat("it is \"", printable(activation), "\", and this family has silu here"),
                 "ffn_config.ffn_act_fn.name"};
  // Published files have it here alone; those that transformers writes, at the top.
  NIHAO_TRY(const double theirs, json_get_or<double>(json, "attn_config.rope_theta", c.ropes[0].base));
  if (!hf_stated(json, "rope_theta") && !hf_stated(json, "rope_parameters") && !hf_stated(json, "rope_scaling"))
    c.ropes[0].base = theirs;
  if (theirs != c.ropes[0].base)
    return Error{ErrorCode::mismatch, concat("it is ", theirs, ", and rope_theta is ", c.ropes[0].base),
                 "attn_config.rope_theta"};
  return {};
}
[[nodiscard]] inline Expected<void> hf_deepseek(const Json& json, HfConfig& hf) {
  Config& c = hf.config;
  MlaConfig& m = c.mla;
  const bool v3 = c.architecture == "deepseek_v3";
  if (hf_stated(json, "q_lora_rank")) { NIHAO_TRY(m.q_rank, json_get<std::uint32_t>(json, "q_lora_rank")); }
  NIHAO_TRY(m.kv_rank, json_get<std::uint32_t>(json, "kv_lora_rank"));
  NIHAO_TRY(m.nope, json_get<std::uint32_t>(json, "qk_nope_head_dim"));
  NIHAO_TRY(m.rope, json_get<std::uint32_t>(json, "qk_rope_head_dim"));
  NIHAO_TRY(c.value_dim, json_get<std::uint32_t>(json, "v_head_dim"));
  c.head_dim = m.nope + m.rope;
  c.rotated = m.rope;
  c.kv_heads = c.heads;
  NIHAO_TRY(const bool interleaved, json_get_or<bool>(json, "rope_interleave", true));
  if (!interleaved && !v3) return hf_unsupported(*json_find(json, "rope_interleave"), "rope_interleave", c.architecture);
  c.rope_style = interleaved ? RopeStyle::neighbours : RopeStyle::halves;
  // Yarn's magnitude of all dimensions is in the scores' scale, twice; cos and sin have what is left of it.
  double scale = 1.0 / std::sqrt(static_cast<double>(c.head_dim));
  for (const std::string_view form : {"rope_scaling.mscale_all_dim", "rope_parameters.mscale_all_dim"}) {
    if (!hf_stated(json, form) || c.ropes[0].scaling != RopeScaling::yarn) continue;
    NIHAO_TRY(const double all, json_get<double>(json, form));
    const double magnitude = yarn_magnitude(c.ropes[0].factor, all);
    if (all != 0) scale *= magnitude * magnitude;
    break;
  }
  c.attention_scale = static_cast<float>(scale);

  NIHAO_CHECK(hf_experts(json, c, "n_routed_experts", "num_experts_per_tok", "moe_intermediate_size"));
  NIHAO_TRY(const auto shared, json_get_or<std::uint32_t>(json, "n_shared_experts", 0));
  c.shared_ff = shared * c.expert_ff;
  const Json* const normalize = json_find(json, "norm_topk_prob");
  NIHAO_TRY(c.router.normalize, json_get_or<bool>(json, "norm_topk_prob", v3 && normalize == nullptr));
  // DeepSeek's own code then leaves out the scale, and that of transformers does not normalise.
  if (c.router.normalize && !v3) return hf_unsupported(*normalize, "norm_topk_prob", c.architecture);
  NIHAO_TRY(c.router.scale,
            v3 ? json_get<float>(json, "routed_scaling_factor") : json_get_or<float>(json, "routed_scaling_factor", 1.0f));
  c.router.sigmoid = v3;
  const std::string_view scores = v3 ? "sigmoid" : "softmax";
  NIHAO_TRY(const auto stated, json_get_or<std::string_view>(json, "scoring_func", scores));
  if (stated != scores)
    return Error{ErrorCode::unsupported, concat("it is \"", printable(stated), "\", and this family has ", scores, " here"),
                 "scoring_func"};
  NIHAO_TRY(const auto method, json_get_or<std::string_view>(json, "topk_method", v3 ? "noaux_tc" : "greedy"));
  if (method != (v3 ? "noaux_tc" : "greedy") && method != (v3 ? "noaux_tc" : "group_limited_greedy"))
    return Error{ErrorCode::unsupported, concat("unknown method \"", printable(method), "\""), "topk_method"};
  if (method != "greedy") {
    NIHAO_TRY(c.router.groups, json_get<std::uint32_t>(json, "n_group"));
    NIHAO_TRY(c.router.groups_kept, json_get<std::uint32_t>(json, "topk_group"));
  }
  if (v3) { NIHAO_TRY(c.draft_layers, json_get_or<std::uint32_t>(json, "num_nextn_predict_layers", 0)); }
  NIHAO_TRY(const auto first, json_get_or<std::uint32_t>(json, "first_k_dense_replace", 0));
  NIHAO_TRY(const auto every, json_get_or<std::uint32_t>(json, "moe_layer_freq", 1));
  if (every == 0) return Error{ErrorCode::malformed, "it is 0", "moe_layer_freq"};
  for (std::uint32_t i = 0; i < c.layers.size(); ++i) c.layers[i].kind = i >= first && i % every == 0 ? 1 : 0;
  return {};
}
/// Which layers turn: those that no_rope_layers, for all its name, has a 1 for; else all but each no_rope_layer_interval'th.
[[nodiscard]] inline Expected<std::vector<bool>> hf_turning_layers(const Json& json, std::size_t layers) {
  std::vector<bool> turns(layers);
  if (const Json* list = json_find(json, "no_rope_layers"); list != nullptr && !hf_is_off(*list)) {
    NIHAO_TRY(const auto stated, json_array<std::uint32_t>(json, "no_rope_layers"));
    if (stated.size() != layers)
      return Error{ErrorCode::mismatch, concat("it has ", stated.size(), " entries for ", layers, " layers"), "no_rope_layers"};
    for (std::size_t i = 0; i < layers; ++i) turns[i] = stated[i] != 0;
  } else {
    NIHAO_TRY(const auto every, json_get_or<std::uint32_t>(json, "no_rope_layer_interval", 4));
    if (every == 0) return Error{ErrorCode::malformed, "it is 0", "no_rope_layer_interval"};
    for (std::size_t i = 0; i < layers; ++i) turns[i] = (i + 1) % every != 0;
  }
  return turns;
}
[[nodiscard]] inline Expected<void> hf_llama4(const Json& json, HfConfig& hf) {
  Config& c = hf.config;
  const auto layers = static_cast<std::uint32_t>(c.layers.size());
  NIHAO_CHECK(hf_experts(json, c, "num_local_experts", "num_experts_per_tok", "intermediate_size"));
  c.shared_ff = c.expert_ff;
  NIHAO_TRY(c.d_ff, json_get<std::uint32_t>(json, "intermediate_size_mlp"));
  c.rope_style = RopeStyle::neighbours;
  NIHAO_TRY(c.qk_norm, json_get_or<bool>(json, "use_qk_norm", true));

  NIHAO_TRY(const std::vector<bool> turns, hf_turning_layers(json, layers));
  NIHAO_TRY(const auto chunk, json_get_or<std::uint32_t>(json, "attention_chunk_size", 8192));
  NIHAO_TRY(const auto types, hf_layer_types(json, layers, "chunked_attention"));
  for (std::uint32_t i = 0; i < layers; ++i) {
    const bool chunked = types ? (*types)[i] : turns[i];
    c.layers[i].rope = turns[i] ? 0 : no_rope;
    c.layers[i].chunk = chunked ? chunk : 0;
  }
  double tuned = 1;  // true, or 4 as Meta's own files have it
  if (const Json* value = json_find(json, "attn_temperature_tuning")) tuned = hf_is_off(*value) ? 0 : 1;
  if (tuned != 0) {
    NIHAO_TRY(c.temperature_scale, json_get_or<float>(json, "attn_scale", 0.1f));
    NIHAO_TRY(c.temperature_floor, json_get_or<float>(json, "floor_scale", 8192.0f));
    if (!(c.temperature_floor > 0)) return Error{ErrorCode::malformed, concat("it is ", c.temperature_floor), "floor_scale"};
  }

  std::vector<std::uint32_t> moe;
  if (hf_stated(json, "moe_layers")) {
    NIHAO_TRY(moe, json_array<std::uint32_t>(json, "moe_layers"));
  } else {
    NIHAO_TRY(const auto every, json_get_or<std::uint32_t>(json, "interleave_moe_layer_step", 1));
    if (every == 0) return Error{ErrorCode::malformed, "it is 0", "interleave_moe_layer_step"};
    for (std::uint32_t i = every - 1; i < layers; i += every) moe.push_back(i);
  }
  for (const std::uint32_t i : moe) {
    if (i >= layers) return Error{ErrorCode::malformed, concat("layer ", i, " of ", layers), "moe_layers"};
    c.layers[i].kind = 1;
  }
  return {};
}
[[nodiscard]] inline Expected<void> hf_gpt_oss(const Json& json, HfConfig& hf) {
  Config& c = hf.config;
  NIHAO_CHECK(hf_experts(json, c, "num_local_experts", "num_experts_per_tok", "intermediate_size"));
  if (!hf_stated(json, "rope_scaling") && !hf_stated(json, "rope_parameters"))  // by default its reference scales, by yarn
    return Error{ErrorCode::missing, "not there", "rope_scaling"};
  c.ffn_bias = c.router_bias = true;
  NIHAO_TRY(c.gate_limit, json_get_or<float>(json, "swiglu_limit", 7.0f));
  NIHAO_TRY(const auto alpha, json_get_or<double>(json, "swiglu_alpha", 1.702));
  if (alpha != 1.702) return Error{ErrorCode::unsupported, concat("it is ", alpha, ", and 1.702 here"), "swiglu_alpha"};
  NIHAO_TRY(const auto window, json_get_or<std::uint32_t>(json, "sliding_window", 128));
  NIHAO_TRY(const auto types, hf_layer_types(json, c.layers.size()));
  std::vector<bool> slides(c.layers.size());
  for (std::size_t i = 0; i < slides.size(); ++i) slides[i] = types ? (*types)[i] : i % 2 == 0;
  return hf_slide(c, slides, window);
}
[[nodiscard]] inline Expected<void> hf_no_windows(const Json& json, HfConfig& hf) {
  if (const Json* stated = json_find(json, "sliding_window"); stated != nullptr && !hf_is_off(*stated))
    return hf_unsupported(*stated, "sliding_window", hf.config.architecture);
  NIHAO_TRY(const auto types, hf_layer_types(json, hf.config.layers.size()));
  return hf_slide(hf.config, types ? *types : std::vector<bool>(hf.config.layers.size(), false), 0);
}
/// Where windows are used, the layers without rope have one.
[[nodiscard]] inline Expected<void> hf_smollm3(const Json& json, HfConfig& hf) {
  Config& c = hf.config;
  NIHAO_TRY(const std::vector<bool> turns, hf_turning_layers(json, c.layers.size()));
  for (std::size_t i = 0; i < c.layers.size(); ++i) c.layers[i].rope = turns[i] ? 0 : no_rope;
  NIHAO_TRY(const auto types, hf_layer_types(json, c.layers.size()));
  NIHAO_TRY(const bool use, json_get_or<bool>(json, "use_sliding_window", false));
  std::uint32_t window = 0;
  if (use && hf_stated(json, "sliding_window")) { NIHAO_TRY(window, json_get<std::uint32_t>(json, "sliding_window")); }
  std::vector<bool> slides(c.layers.size(), false);
  for (std::size_t i = 0; i < slides.size(); ++i) slides[i] = types ? (*types)[i] : window > 0 && !turns[i];
  return hf_slide(c, slides, window);
}
[[nodiscard]] inline Expected<void> hf_glm4(const Json& json, HfConfig& hf) {
  Config& c = hf.config;
  c.o_bias = false;
  c.rope_style = RopeStyle::neighbours;
  return hf_no_windows(json, hf);
}

inline constexpr HfFamily hf_families[] = {
    {.model_type = "llama", .reads = {"mlp_bias"}, .read = hf_no_windows},
    {.model_type = "mistral", .kv_heads = true, .gguf = "llama", .read = hf_mistral},
    {.model_type = "smollm3",
     .tied = true,
     .kv_heads = true,
     .rope_theta = 2e6,
     .reads = {"mlp_bias", "no_rope_layers"},
     .read = hf_smollm3},
    {.model_type = "glm4",
     .attention_bias = true,
     .kv_heads = true,
     .head_dim = 128,
     .rotary_part = 0.5,
     .reads = {"partial_rotary_factor"},
     .read = hf_glm4},
    {.model_type = "qwen2", .qkv_bias = true, .kv_heads = true, .read = hf_qwen_windows},
    {.model_type = "qwen3", .kv_heads = true, .head_dim = 128, .read = hf_qwen_windows},
    {.model_type = "qwen3_moe",
     .kv_heads = true,
     .gguf = "qwen3moe",
     .reads = {"num_experts", "num_local_experts"},
     .read = hf_qwen3_moe},
    {.model_type = "olmo2", .read = hf_no_windows},
    {.model_type = "gemma2",
     .activation = "gelu_pytorch_tanh",
     .activation_key = "hidden_activation",
     .tied = true,
     .head_dim = 256,
     .reads = {"attn_logit_softcapping", "final_logit_softcapping"},
     .read = hf_gemma2},
    {.model_type = "gemma3_text",
     .activation = "gelu_pytorch_tanh",
     .activation_key = "hidden_activation",
     .tied = true,
     .head_dim = 256,
     .rope_theta = 1e6,
     .gguf = "gemma3",
     .read = hf_gemma3},
    {.model_type = "phi3", .reads = {"partial_rotary_factor"}, .read = hf_phi3},
    {.model_type = "phimoe", .kv_heads = true, .rope_theta = 1e6, .reads = {"num_local_experts"}, .read = hf_phimoe},
    {.model_type = "granite",
     .reads = {"mlp_bias", "embedding_multiplier", "residual_multiplier", "attention_multiplier", "logits_scaling"},
     .read = hf_granite},
    {.model_type = "cohere2", .tied = true, .reads = {"logit_scale"}, .read = hf_cohere2, .keys = {.eps = "layer_norm_eps"}},
    {.model_type = "mixtral",
     .kv_heads = true,
     .rope_theta = 1e6,
     .gguf = "llama",
     .reads = {"num_local_experts"},
     .read = hf_mixtral},
    {.model_type = "dbrx",
     .read = hf_dbrx,
     .keys = {.layers = "n_layers",
              .d_model = "d_model",
              .d_ff = "ffn_config.ffn_hidden_size",
              .heads = "n_heads",
              .kv_heads = "attn_config.kv_n_heads",
              .context = "max_seq_len",
              .eps = ""}},
    {.model_type = "deepseek_v2",
     .gguf = "deepseek2",
     .reads = {"n_routed_experts", "kv_lora_rank", "rope_interleave"},
     .read = hf_deepseek},
    {.model_type = "deepseek_v3",
     .gguf = "deepseek2",
     .reads = {"n_routed_experts", "kv_lora_rank", "rope_interleave"},
     .read = hf_deepseek},
    {.model_type = "llama4_text",
     .kv_heads = true,
     .head_dim = 128,
     .rope_theta = 500000.0,
     .gguf = "llama4",
     .reads = {"num_local_experts", "use_qk_norm", "attention_chunk_size", "no_rope_layers"},
     .read = hf_llama4},
    {.model_type = "gpt_oss",
     .attention_bias = true,
     .kv_heads = true,
     .head_dim = 64,
     .rope_theta = 150000.0,
     .gguf = "gpt-oss",
     .reads = {"num_local_experts"},
     .read = hf_gpt_oss},
};

/// The family of that name, or null.
[[nodiscard]] constexpr const HfFamily* find_hf_family(std::string_view model_type) noexcept {
  for (const HfFamily& family : hf_families)
    if (family.model_type == model_type) return &family;
  return nullptr;
}

}  // namespace detail
}  // namespace nihao
