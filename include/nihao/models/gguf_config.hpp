// From a GGUF file's metadata to a Config. Keys are those llama.cpp writes; what would change the result and is not known is an
// error.
#pragma once

#include "check_config.hpp"
#include "gguf_families.hpp"

#include <algorithm>
#include <cmath>

namespace nihao {

namespace detail {
/// Keys that change the result of the families that have them, wherever they are not 0. Some are lists, of one for each layer.
inline constexpr std::string_view gguf_must_be_off[] = {"attn_logit_softcapping",
                                                        "final_logit_softcapping",
                                                        "router_logit_softcapping",
                                                        "expert_count",
                                                        "expert_shared_count",
                                                        "expert_group_count",
                                                        "expert_group_scale",
                                                        "expert_latent_length",
                                                        "leading_dense_block_count",
                                                        "interleave_moe_layer_step",
                                                        "moe_every_n_layers",
                                                        "nextn_predict_layers",
                                                        "swiglu_clamp_exp",
                                                        "swiglu_clamp_shexp",
                                                        "attention.scale",
                                                        "attention.output_scale",
                                                        "attention.value_scale",
                                                        "attention.temperature_scale",
                                                        "attention.clamp_kqv",
                                                        "attention.max_alibi_bias",
                                                        "attention.shared_kv_layers",
                                                        "attention.q_lora_rank",
                                                        "attention.kv_lora_rank",
                                                        "attention.indexer.top_k",
                                                        "full_attention_interval",
                                                        "hyper_connection.count",
                                                        "embedding_length_per_layer_input",
                                                        "rope.dimension_sections",
                                                        "rope.scaling.alpha",
                                                        "rope.scaling.yarn_log_multiplier"};

/// A tensor of one factor for each pair that turns. Errors: mismatch, malformed.
[[nodiscard]] inline Expected<std::vector<float>> rope_factors(const TensorInfo& tensor, const Config& c) {
  const std::string place = concat("tensor ", tensor.name);
  std::vector<float> factors(c.rotated_width() / 2);
  if (tensor.elements() != factors.size())
    return Error{ErrorCode::mismatch, concat("it has ", tensor.elements(), " values for ", factors.size(), " pairs"), place};
  dequantize_row(tensor.format, tensor.bytes, factors);
  for (const float f : factors)
    if (!(f > 0)) return Error{ErrorCode::malformed, "a factor is not positive", place};
  return factors;
}
}  // namespace detail

/// Reads the config of any family of models/families.hpp. Errors: missing, mismatch (a key's type), malformed, unsupported.
[[nodiscard]] inline Expected<Config> config_from_gguf(const Gguf& gguf) {
  Config c;
  NIHAO_TRY(const std::string_view architecture, gguf.get<std::string_view>("general.architecture"));
  c.architecture = architecture;
  const detail::GgufFamily* const family = detail::find_gguf_family(architecture);
  if (family == nullptr)
    return detail::no_such_family(architecture, detail::gguf_families, &detail::GgufFamily::architecture, "general.architecture");
  const detail::GgufKeys keys{gguf, architecture};
  const auto key = [&](std::string_view name) { return keys.path(name); };
  const auto reads = [&](std::string_view name) {
    return std::find(family->reads.begin(), family->reads.end(), name) != family->reads.end();
  };

  // The number, or the largest of a list by its magnitude; 0 if there is none.
  const auto largest = [&](std::string_view name) -> Expected<double> {
    if (auto list = gguf.array<double>(key(name))) {
      double most = 0;
      for (const double one : *list) most = std::max(most, std::abs(one));
      return most;
    }
    return gguf.get_or<double>(key(name), 0.0);
  };
  const auto refuse = [&](std::string_view name, auto value) {
    return Error{ErrorCode::unsupported, concat("it is ", value, ", which the ", architecture, " family here does not do"),
                 key(name)};
  };
  for (const std::string_view name : detail::gguf_must_be_off) {
    if (reads(name)) continue;
    NIHAO_TRY(const double value, largest(name));
    if (value != 0 && !(name == "expert_group_count" && value == 1)) return refuse(name, value);
  }
  for (const std::string_view name : {"logit_scale", "embedding_scale", "residual_scale", "rope.scaling.yarn_ext_factor"}) {
    if (reads(name)) continue;
    NIHAO_TRY(const double value, gguf.get_or<double>(key(name), 1.0));
    if (value != 1) return refuse(name, value);
  }
  for (const auto& [name, usual] : {std::pair("attention.causal", true), std::pair("use_parallel_residual", false)}) {
    NIHAO_TRY(const bool value, gguf.get_or<bool>(key(name), usual));
    if (value != usual) return refuse(name, value ? "true" : "false");
  }

  NIHAO_TRY(const auto layers, gguf.get<std::uint32_t>(key("block_count")));
  NIHAO_TRY(c.d_model, gguf.get<std::uint32_t>(key("embedding_length")));
  NIHAO_TRY(c.d_ff, gguf.get<std::uint32_t>(key("feed_forward_length")));
  NIHAO_TRY(c.heads, gguf.get<std::uint32_t>(key("attention.head_count")));
  NIHAO_TRY(c.kv_heads, gguf.get_or<std::uint32_t>(key("attention.head_count_kv"), c.heads));
  NIHAO_TRY(c.context, gguf.get<std::uint32_t>(key("context_length")));
  NIHAO_TRY(c.norm_eps, gguf.get<float>(key(family->eps)));
  if (c.heads == 0 || layers > 4096) return Error{ErrorCode::malformed, concat(c.heads, " heads in ", layers, " layers")};
  NIHAO_TRY(c.head_dim, gguf.get_or<std::uint32_t>(key("attention.key_length"), c.d_model / c.heads));
  NIHAO_TRY(const auto value_length, gguf.get_or<std::uint32_t>(key("attention.value_length"), c.head_dim));
  if (value_length != c.head_dim && !reads("attention.value_length"))
    return Error{ErrorCode::unsupported, concat("values of ", value_length, " beside keys of ", c.head_dim),
                 key("attention.value_length")};
  c.value_dim = value_length != c.head_dim ? value_length : 0;
  NIHAO_TRY(const auto rotated, gguf.get_or<std::uint32_t>(key("rope.dimension_count"), c.head_dim));
  if (rotated != c.head_dim) c.rotated = rotated;
  if (rotated != c.head_dim && !reads("rope.dimension_count"))
    return Error{ErrorCode::unsupported, concat("only ", rotated, " of ", c.head_dim, " values are rotated"),
                 key("rope.dimension_count")};
  const TensorInfo* embedding = gguf.tensors().find("token_embd.weight");
  if (embedding == nullptr) return Error{ErrorCode::missing, "the file has no such tensor", "tensor token_embd.weight"};
  c.vocab = static_cast<std::uint32_t>(std::min<std::uint64_t>(embedding->rows(), UINT32_MAX));
  if (gguf.has(key("vocab_size"))) {
    NIHAO_TRY(const auto vocab, gguf.get<std::uint32_t>(key("vocab_size")));
    std::uint64_t tokens = c.vocab;
    if (gguf.has("tokenizer.ggml.tokens")) {
      NIHAO_TRY(const auto list, gguf.strings("tokenizer.ggml.tokens"));
      tokens = list.size();
    }
    if (vocab != c.vocab || vocab != tokens)
      return Error{ErrorCode::mismatch,
                   concat("it is ", vocab, "; the file has ", tokens, " tokens, and an embedding of ", c.vocab, " rows"),
                   key("vocab_size")};
  }
  c.attention_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(c.head_dim)));
  c.rope_style = family->rope;
  c.layers.resize(layers);

  // As llama.cpp reads it: files may state a factor alone, and mean linear scaling; older ones call it scale_linear.
  RopeParams rope;
  NIHAO_TRY(rope.base, gguf.get_or<double>(key("rope.freq_base"), 10000.0));
  NIHAO_TRY(const auto scaling, gguf.get_or<std::string_view>(key("rope.scaling.type"), "linear"));
  NIHAO_TRY(const double scale_linear, gguf.get_or<double>(key("rope.scale_linear"), 0.0));
  NIHAO_TRY(rope.factor, gguf.get_or<double>(key("rope.scaling.factor"), scale_linear));
  if (rope.factor == 0) rope.factor = 1;
  if (scaling == "linear") {
    if (rope.factor != 1) rope.scaling = RopeScaling::linear;
  } else if (scaling == "yarn") {
    rope.scaling = RopeScaling::yarn;
    NIHAO_TRY(rope.original_context, gguf.get_or<double>(key("rope.scaling.original_context_length"), c.context));
    // The one multiplies what yarn scales by; the other is Hugging Face's attention_factor, and stands in its place.
    NIHAO_TRY(const double attention_factor, gguf.get_or<double>(key("rope.scaling.attn_factor"), 1.0));
    NIHAO_TRY(const double magnitude, gguf.get_or<double>(key("rope.scaling.yarn_attn_factor"), yarn_magnitude(rope.factor)));
    rope.attention_factor = attention_factor * magnitude;
    if (!(rope.attention_factor > 0))
      return Error{ErrorCode::malformed, concat("an attention factor of ", attention_factor, " times ", magnitude),
                   key("rope.scaling.attn_factor")};
    NIHAO_TRY(rope.beta_fast, gguf.get_or<double>(key("rope.scaling.yarn_beta_fast"), rope.beta_fast));
    NIHAO_TRY(rope.beta_slow, gguf.get_or<double>(key("rope.scaling.yarn_beta_slow"), rope.beta_slow));
  } else if (scaling != "none" && !(scaling == "longrope" && gguf.tensors().find("rope_factors_long.weight") != nullptr)) {
    return Error{ErrorCode::unsupported, concat("unknown rope scaling \"", printable(scaling), "\""), key("rope.scaling.type")};
  }
  if (rope.scaling != RopeScaling::yarn) {
    // llama.cpp scales by it whatever the kind.
    NIHAO_TRY(const double attention_factor, gguf.get_or<double>(key("rope.scaling.attn_factor"), 1.0));
    if (!(attention_factor > 0))
      return Error{ErrorCode::malformed, concat("an attention factor of ", attention_factor), key("rope.scaling.attn_factor")};
    if (attention_factor != 1) rope.attention_factor = attention_factor;
  }
  c.ropes.push_back(rope);
  if (const TensorInfo* factors = gguf.tensors().find("rope_freqs.weight")) {
    NIHAO_TRY(c.ropes[0].factors, detail::rope_factors(*factors, c));
  }
  const TensorInfo *near = gguf.tensors().find("rope_factors_short.weight"),
                   *far = gguf.tensors().find("rope_factors_long.weight");
  if (near != nullptr && far != nullptr) {
    RopeParams& longrope = c.ropes[0];
    longrope.scaling = RopeScaling::longrope;
    if (longrope.attention_factor == 0) longrope.attention_factor = 1;
    NIHAO_TRY(longrope.factors, detail::rope_factors(*near, c));
    NIHAO_TRY(longrope.far_factors, detail::rope_factors(*far, c));
    NIHAO_TRY(longrope.original_context, gguf.get_or<double>(key("rope.scaling.original_context_length"), c.context));
  }

  if (!reads("rope.freq_base_swa")) {
    NIHAO_TRY(const double base, gguf.get_or<double>(key("rope.freq_base_swa"), rope.base));
    if (base != rope.base) return refuse("rope.freq_base_swa", base);
  }
  // No key speaks of biases: the tensors are there or not.
  const auto has_bias = [&](std::string_view tensor) {
    return gguf.tensors().find(concat("blk.0.", tensor, ".bias")) != nullptr;
  };
  c.qkv_bias = has_bias("attn_q") || has_bias("attn_qkv") || has_bias("attn_kv_a_mqa");
  c.o_bias = has_bias("attn_output");
  c.ffn_bias = has_bias("ffn_gate");
  NIHAO_CHECK(family->read(keys, c));
  NIHAO_CHECK(check_config(c));
  return c;
}

}  // namespace nihao
