// From a Hugging Face config.json to a Config, in both forms that checkpoints have: rope_theta and rope_scaling at the top level,
// or rope_parameters as transformers 5 writes it. What would change the result and is not known is an error that names its path.
#pragma once

#include "check_config.hpp"
#include "hf_families.hpp"

#include <algorithm>
#include <string_view>

namespace nihao {

namespace detail {

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
                                                      "vision_config"};
/// Factors of such architectures: only 1 is nothing.
inline constexpr std::string_view hf_must_be_one[] = {
    "partial_rotary_factor", "rotary_pct",     "embedding_multiplier", "residual_multiplier",
    "attention_multiplier",  "logits_scaling", "logit_scale"};

[[nodiscard]] inline Expected<void> hf_refuse_unknown(const Json& json, const HfFamily& family) {
  const auto reads = [&](std::string_view key) {
    return std::find(family.reads.begin(), family.reads.end(), key) != family.reads.end();
  };
  for (const std::string_view key : hf_must_be_off)
    if (const Json* value = json_find(json, key); value != nullptr && !reads(key) && !hf_is_off(*value))
      return hf_unsupported(*value, key, family.model_type);
  // Embedding models made of decoders have every position see all others.
  NIHAO_TRY(const bool causal, json_get_or<bool>(json, "is_causal", true));
  if (!causal) return hf_unsupported(*json_find(json, "is_causal"), "is_causal", family.model_type);
  for (const std::string_view key : hf_must_be_one) {
    if (reads(key)) continue;
    NIHAO_TRY(const double value, json_get_or<double>(json, key, 1.0));
    if (value != 1.0) return hf_unsupported(*json_find(json, key), key, family.model_type);
  }
  NIHAO_TRY(const auto activation, json_get_or<std::string_view>(json, family.activation_key, family.activation));
  if (activation != family.activation && !(family.activation == "silu" && activation == "swish"))
    return hf_unsupported(*json_find(json, family.activation_key), family.activation_key, family.model_type);
  return {};
}

/// c.ropes: one for all layers, or Gemma's two, the global layers' first.
[[nodiscard]] inline Expected<void> hf_ropes(const Json& json, const HfFamily& family, Config& c) {
  if (family.model_type != "gemma3_text") {
    const bool part = std::find(family.reads.begin(), family.reads.end(), "partial_rotary_factor") != family.reads.end();
    NIHAO_TRY(const HfRope rope,
              hf_rope(json, {"rope_scaling", "rope_parameters", "rope_theta", family.rope_theta, part, family.rotary_part}));
    c.ropes = {rope.params};
    if (rope.part != 1.0) {
      c.rotated = static_cast<std::uint32_t>(rope.part * static_cast<double>(c.head_dim));
      if (c.rotated == 0 || c.rotated > c.head_dim)
        return Error{ErrorCode::malformed, concat("it is ", rope.part), "partial_rotary_factor"};
    }
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
  NIHAO_TRY(const HfRope global,
            hf_rope(json, {"rope_scaling", "rope_parameters.full_attention", "rope_theta", family.rope_theta}));
  NIHAO_TRY(const HfRope local, hf_rope(json, {"", "rope_parameters.sliding_attention", "rope_local_base_freq", 10000.0}));
  c.ropes = {global.params, local.params};
  return {};
}

}  // namespace detail

/// Reads the config.json of any family in detail::hf_families; of a model of images and text that is built around one of them
/// (`llama4`, `gemma3`), that of its language model. Errors: missing, mismatch (a value's type, or two keys that disagree),
/// malformed, unsupported; each names the JSON path, or the size that makes no sense.
[[nodiscard]] inline Expected<HfConfig> config_from_hf(const Json& json) {
  NIHAO_TRY(const auto model_type, json_get<std::string_view>(json, "model_type"));
  if (model_type == "llama4" || model_type == "gemma3") {
    const Json* const text = json_find(json, "text_config");
    if (text == nullptr || json_find(*text, "text_config") != nullptr)
      return Error{ErrorCode::missing, "not there", "text_config"};
    auto inner = config_from_hf(*text);
    if (!inner) {
      inner.error().where = concat("text_config.", inner.error().where);
      return inner;
    }
    inner->prefix = "language_model.";
    return inner;
  }
  const detail::HfFamily* const family = detail::find_hf_family(model_type);
  if (family == nullptr)
    return detail::no_such_family(model_type, detail::hf_families, &detail::HfFamily::model_type, "model_type");
  NIHAO_CHECK(detail::hf_refuse_unknown(json, *family));

  // Gemma's files leave out what their class has by default; of the others a size that is not there is a damaged file.
  struct Defaults {
    std::uint32_t layers, vocab, d_model, d_ff, heads, kv_heads, context;
  };
  const bool gemma2 = family->model_type == "gemma2", gemma = gemma2 || family->model_type == "gemma3_text";
  constexpr Defaults of_gemma2{26, 256000, 2304, 9216, 8, 4, 8192}, of_gemma3{26, 262208, 2304, 9216, 8, 4, 131072};
  const Defaults& gemmas = gemma2 ? of_gemma2 : of_gemma3;
  const detail::HfKeys& keys = family->keys;
  const auto size = [&](std::string_view key, std::uint32_t otherwise) {
    return gemma ? json_get_or<std::uint32_t>(json, key, otherwise) : json_get<std::uint32_t>(json, key);
  };
  HfConfig result;
  Config& c = result.config;
  c.architecture = model_type;
  c.rope_style = RopeStyle::halves;
  NIHAO_TRY(const std::uint32_t layers, size(keys.layers, gemmas.layers));
  NIHAO_TRY(c.vocab, size("vocab_size", gemmas.vocab));
  NIHAO_TRY(c.d_model, size(keys.d_model, gemmas.d_model));
  NIHAO_TRY(c.d_ff, size(keys.d_ff, gemmas.d_ff));
  NIHAO_TRY(c.heads, size(keys.heads, gemmas.heads));
  NIHAO_TRY(c.context, size(keys.context, gemmas.context));
  if (layers == 0 || layers > 4096) return Error{ErrorCode::malformed, concat("it is ", layers), std::string(keys.layers)};
  if (c.heads == 0) return Error{ErrorCode::malformed, "it is 0", std::string(keys.heads)};
  c.layers.resize(layers);
  if (json_find(json, keys.kv_heads) == nullptr && family->kv_heads)
    return Error{ErrorCode::missing, "not there",
                 std::string(keys.kv_heads)};  // the family's own default is a number, not `heads`
  NIHAO_TRY(c.kv_heads, json_get_or<std::uint32_t>(json, keys.kv_heads, gemma ? gemmas.kv_heads : c.heads));
  const Json* head_dim = json_find(json, "head_dim");
  if (head_dim != nullptr && !head_dim->is_null()) {
    NIHAO_TRY(c.head_dim, json_as<std::uint32_t>(*head_dim, "head_dim"));
  } else if (head_dim == nullptr && family->head_dim > 0) {
    c.head_dim = family->head_dim;
  } else {
    if (c.d_model % c.heads != 0)
      return Error{ErrorCode::malformed, concat(c.d_model, " is not a multiple of ", c.heads, " heads"),
                   std::string(keys.d_model)};
    c.head_dim = c.d_model / c.heads;
  }
  c.attention_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(c.head_dim)));
  if (keys.eps.empty()) c.norm_eps = 1e-5f;
  else if (gemma) {
    NIHAO_TRY(c.norm_eps, json_get_or<float>(json, keys.eps, 1e-6f));
  } else {
    NIHAO_TRY(c.norm_eps, json_get<float>(json, keys.eps));
  }
  NIHAO_TRY(const bool attention_bias, json_get_or<bool>(json, "attention_bias", family->attention_bias));
  c.qkv_bias = attention_bias || family->qkv_bias;
  c.o_bias = attention_bias && !family->qkv_bias;
  if (std::find(family->reads.begin(), family->reads.end(), "mlp_bias") != family->reads.end()) {
    NIHAO_TRY(c.ffn_bias, json_get_or<bool>(json, "mlp_bias", false));
  }
  NIHAO_CHECK(detail::hf_ropes(json, *family, c));
  NIHAO_CHECK(family->read(json, result));
  NIHAO_TRY(result.tied, json_get_or<bool>(json, "tie_word_embeddings", family->tied));
  NIHAO_CHECK(check_config(c));
  return result;
}

}  // namespace nihao
