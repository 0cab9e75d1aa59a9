// From a Hugging Face config.json to a Config, in both forms that checkpoints have: rope_theta and rope_scaling at the top level,
// or rope_parameters as transformers 5 writes it. What would change the result and is not known is an error that names its path.
#pragma once

#include "../files/json.hpp"
#include "check_config.hpp"
#include "hf_rope.hpp"

#include <array>
#include <optional>
#include <string_view>

namespace nihao {

/// A Config, and what else a Hugging Face checkpoint's weights need to be understood.
struct HfConfig {
  Config config;
  bool tied = false;      ///< the head multiplies with the embedding
  float norm_offset = 0;  ///< added to norm weights: Gemma stores their distance from 1
};

namespace detail {

/// What a model_type says by itself, without a key.
struct HfFamily {
  std::string_view model_type, activation_key, activation;
  bool tied, qkv_bias;  ///< defaults of tie_word_embeddings; whether q, k and v have biases
};
inline constexpr std::array<HfFamily, 5> hf_families{{{"llama", "hidden_act", "silu", false, false},
                                                      {"mistral", "hidden_act", "silu", false, false},
                                                      {"qwen2", "hidden_act", "silu", false, true},
                                                      {"olmo2", "hidden_act", "silu", false, false},
                                                      {"gemma3_text", "hidden_activation", "gelu_pytorch_tanh", true, false}}};

/// Keys of other architectures, or of variants of these, that change the result wherever they are not null, false, 0 or empty.
inline constexpr std::string_view hf_must_be_off[] = {"attn_logit_softcapping",
                                                      "final_logit_softcapping",
                                                      "num_experts",
                                                      "num_local_experts",
                                                      "n_routed_experts",
                                                      "mlp_bias",
                                                      "clip_qkv",
                                                      "qk_layernorm",
                                                      "use_qk_norm",
                                                      "use_bidirectional_attention",
                                                      "is_encoder_decoder",
                                                      "add_cross_attention",
                                                      "cross_attention_layers",
                                                      "attention_chunk_size",
                                                      "no_rope_layers",
                                                      "rope_interleave",
                                                      "alibi",
                                                      "kv_lora_rank",
                                                      "parallel_attn",
                                                      "use_parallel_residual",
                                                      "quantization_config",
                                                      "vision_config"};
/// Factors of such architectures: only 1 is nothing.
inline constexpr std::string_view hf_must_be_one[] = {
    "partial_rotary_factor", "rotary_pct",     "embedding_multiplier", "residual_multiplier",
    "attention_multiplier",  "logits_scaling", "logit_scale"};

[[nodiscard]] inline Error hf_unsupported(const Json& value, std::string_view path, std::string_view model_type) {
  return Error{ErrorCode::unsupported, concat("it is ", json_kind(value), ", which the ", model_type, " family here does not do"),
               std::string(path)};
}

[[nodiscard]] inline bool hf_is_off(const Json& value) {
  double number = 1;
  bool flag = true;
  if (JsonRead<double>::read(value, number)) return number == 0;
  if (JsonRead<bool>::read(value, flag)) return !flag;
  return value.is_null() || ((value.is_array() || value.is_object()) && value.empty());
}

[[nodiscard]] inline Expected<void> hf_refuse_unknown(const Json& json, const HfFamily& family) {
  for (const std::string_view key : hf_must_be_off)
    if (const Json* value = json_find(json, key); value != nullptr && !hf_is_off(*value))
      return hf_unsupported(*value, key, family.model_type);
  for (const std::string_view key : hf_must_be_one) {
    NIHAO_TRY(const double value, json_get_or<double>(json, key, 1.0));
    if (value != 1.0) return hf_unsupported(*json_find(json, key), key, family.model_type);
  }
  if (!family.qkv_bias)
    for (const std::string_view key : {"attention_bias", "qkv_bias"})
      if (const Json* value = json_find(json, key); value != nullptr && !hf_is_off(*value))
        return hf_unsupported(*value, key, family.model_type);
  NIHAO_TRY(const auto activation, json_get_or<std::string_view>(json, family.activation_key, family.activation));
  if (activation != family.activation && !(family.activation == "silu" && activation == "swish"))
    return hf_unsupported(*json_find(json, family.activation_key), family.activation_key, family.model_type);
  return {};
}

/// layer_types, if the file has it: true where a layer's attention slides.
[[nodiscard]] inline Expected<std::optional<std::vector<bool>>> hf_layer_types(const Json& json, std::size_t layers) {
  const Json* value = json_find(json, "layer_types");
  if (value == nullptr || value->is_null()) return std::optional<std::vector<bool>>{};
  NIHAO_TRY(const auto types, json_array<std::string_view>(json, "layer_types"));
  if (types.size() != layers)
    return Error{ErrorCode::mismatch, concat("it has ", types.size(), " entries for ", layers, " layers"), "layer_types"};
  std::vector<bool> slides;
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i] != "sliding_attention" && types[i] != "full_attention")
      return Error{ErrorCode::unsupported, concat("unknown layer type \"", printable(types[i]), "\""), concat("layer_types.", i)};
    slides.push_back(types[i] == "sliding_attention");
  }
  return std::optional(std::move(slides));
}

/// Which layers slide, and how far: c.layers, by each family's rule. c.layers has its size.
[[nodiscard]] inline Expected<void> hf_windows(const Json& json, const HfFamily& family, Config& c) {
  const std::size_t layers = c.layers.size();
  NIHAO_TRY(const auto types, hf_layer_types(json, layers));
  std::uint32_t window = 0;
  std::vector<bool> slides(layers, false);
  if (family.model_type == "gemma3_text") {
    NIHAO_TRY(window, json_get_or<std::uint32_t>(json, "sliding_window", 4096));
    const std::string_view key =
        json_find(json, "sliding_window_pattern") != nullptr ? "sliding_window_pattern" : "_sliding_window_pattern";
    NIHAO_TRY(const auto pattern, json_get_or<std::uint32_t>(json, key, 6));
    if (pattern == 0) return Error{ErrorCode::malformed, "it is 0", std::string(key)};
    for (std::size_t i = 0; i < layers; ++i) slides[i] = types ? (*types)[i] : (i + 1) % pattern != 0;
  } else if (family.model_type == "qwen2") {
    NIHAO_TRY(const bool use, json_get_or<bool>(json, "use_sliding_window", false));
    const Json* stated = json_find(json, "sliding_window");
    if (use && (stated == nullptr || !stated->is_null())) {
      NIHAO_TRY(window, json_get_or<std::uint32_t>(json, "sliding_window", 4096));
      NIHAO_TRY(const auto first, json_get_or<std::uint32_t>(json, "max_window_layers", 28));
      for (std::size_t i = first; i < layers; ++i) slides[i] = true;
    }
    if (types) slides = *types;
  } else if (family.model_type == "mistral") {
    const Json* stated = json_find(json, "sliding_window");
    if (stated == nullptr || !stated->is_null()) {  // absent is not null: the family's default is 4096
      NIHAO_TRY(window, json_get_or<std::uint32_t>(json, "sliding_window", 4096));
      slides.assign(layers, true);
    }
    if (types && *types != slides)
      return Error{ErrorCode::unsupported, "layers of both kinds, which the mistral family does not have", "layer_types"};
  } else {
    if (const Json* stated = json_find(json, "sliding_window"); stated != nullptr && !hf_is_off(*stated))
      return hf_unsupported(*stated, "sliding_window", family.model_type);
    if (types) slides = *types;
  }
  for (std::size_t i = 0; i < layers; ++i) {
    if (!slides[i]) continue;
    if (window == 0) return Error{ErrorCode::malformed, concat("layer ", i, " slides, and there is no window"), "sliding_window"};
    c.layers[i].window = window;
    if (family.model_type == "gemma3_text") c.layers[i].rope = 1;
  }
  return {};
}

/// c.ropes: one for all layers, or Gemma's two, the global layers' first.
[[nodiscard]] inline Expected<void> hf_ropes(const Json& json, const HfFamily& family, Config& c) {
  if (family.model_type != "gemma3_text") {
    NIHAO_TRY(const RopeParams rope, hf_rope(json, {"rope_scaling", "rope_parameters", "rope_theta", 10000.0}));
    c.ropes = {rope};
    return {};
  }
  if (const Json* both = json_find(json, "rope_parameters"); both != nullptr && !both->is_null()) {  // an object for each kind
    const auto* members = both->get_ptr<const Json::object_t*>();
    if (members == nullptr)
      return Error{ErrorCode::mismatch, concat("wanted an object, found ", json_kind(*both)), "rope_parameters"};
    for (const auto& [key, value] : *members)
      if (key != "full_attention" && key != "sliding_attention")
        return hf_unsupported(value, concat("rope_parameters.", printable(key)), family.model_type);
  }
  NIHAO_TRY(const RopeParams global, hf_rope(json, {"rope_scaling", "rope_parameters.full_attention", "rope_theta", 1e6}));
  NIHAO_TRY(const RopeParams local, hf_rope(json, {"", "rope_parameters.sliding_attention", "rope_local_base_freq", 10000.0}));
  c.ropes = {global, local};
  return {};
}

}  // namespace detail

/// Reads the config.json of any family in detail::hf_families. Errors: missing, mismatch (a value's type, or two keys that
/// disagree), malformed, unsupported; each names the JSON path, or the size that makes no sense.
[[nodiscard]] inline Expected<HfConfig> config_from_hf(const Json& json) {
  NIHAO_TRY(const auto model_type, json_get<std::string_view>(json, "model_type"));
  const detail::HfFamily* family = nullptr;
  for (const detail::HfFamily& known : detail::hf_families)
    if (known.model_type == model_type) family = &known;
  if (family == nullptr) {
    std::string known;
    for (const detail::HfFamily& f : detail::hf_families) known += concat(known.empty() ? "" : ", ", f.model_type);
    return Error{ErrorCode::unsupported, concat("\"", printable(model_type), "\" is none of: ", known), "model_type"};
  }
  NIHAO_CHECK(detail::hf_refuse_unknown(json, *family));

  // Gemma's files leave out what their class has by default; of the others a size that is not there is a damaged file.
  const bool gemma = family->model_type == "gemma3_text";
  const auto size = [&](std::string_view key, std::uint32_t gemmas) {
    return gemma ? json_get_or<std::uint32_t>(json, key, gemmas) : json_get<std::uint32_t>(json, key);
  };
  HfConfig result;
  Config& c = result.config;
  c.architecture = model_type;
  c.rope_style = RopeStyle::halves;
  NIHAO_TRY(const std::uint32_t layers, size("num_hidden_layers", 26));
  NIHAO_TRY(c.vocab, size("vocab_size", 262208));
  NIHAO_TRY(c.d_model, size("hidden_size", 2304));
  NIHAO_TRY(c.d_ff, size("intermediate_size", 9216));
  NIHAO_TRY(c.heads, size("num_attention_heads", 8));
  NIHAO_TRY(c.context, size("max_position_embeddings", 131072));
  if (layers == 0 || layers > 4096) return Error{ErrorCode::malformed, concat("it is ", layers), "num_hidden_layers"};
  if (c.heads == 0) return Error{ErrorCode::malformed, "it is 0", "num_attention_heads"};
  c.layers.resize(layers);
  if (const Json* kv = json_find(json, "num_key_value_heads");
      kv == nullptr && (family->qkv_bias || family->model_type == "mistral"))
    return Error{ErrorCode::missing, "not there", "num_key_value_heads"};  // these families' own default is a number, not `heads`
  NIHAO_TRY(c.kv_heads, json_get_or<std::uint32_t>(json, "num_key_value_heads", gemma ? 4 : c.heads));
  const Json* head_dim = json_find(json, "head_dim");
  if (head_dim != nullptr && !head_dim->is_null()) {
    NIHAO_TRY(c.head_dim, json_as<std::uint32_t>(*head_dim, "head_dim"));
  } else if (gemma) {
    c.head_dim = 256;
  } else {
    if (c.d_model % c.heads != 0)
      return Error{ErrorCode::malformed, concat(c.d_model, " is not a multiple of ", c.heads, " heads"), "hidden_size"};
    c.head_dim = c.d_model / c.heads;
  }
  if (gemma) {
    NIHAO_TRY(c.norm_eps, json_get_or<float>(json, "rms_norm_eps", 1e-6f));
    NIHAO_TRY(const double scalar, json_get_or<double>(json, "query_pre_attn_scalar", 256.0));
    if (!(scalar > 0)) return Error{ErrorCode::malformed, concat("it is ", scalar), "query_pre_attn_scalar"};
    c.attention_scale = static_cast<float>(1.0 / std::sqrt(scalar));
    c.embedding_scale = std::sqrt(static_cast<float>(c.d_model));
    result.norm_offset = 1.0f;
  } else {
    NIHAO_TRY(c.norm_eps, json_get<float>(json, "rms_norm_eps"));
    c.attention_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(c.head_dim)));
  }
  NIHAO_CHECK(detail::hf_windows(json, *family, c));
  NIHAO_CHECK(detail::hf_ropes(json, *family, c));
  NIHAO_TRY(result.tied, json_get_or<bool>(json, "tie_word_embeddings", family->tied));
  NIHAO_CHECK(check_config(c));
  return result;
}

}  // namespace nihao
