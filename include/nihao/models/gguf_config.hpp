// From a GGUF file's metadata to a Config. Keys are those llama.cpp writes; what would change the result and is not known is an
// error.
#pragma once

#include "../files/gguf.hpp"
#include "check_config.hpp"

#include <cmath>

namespace nihao {

/// Reads the config of any family of models/families.hpp. Errors: missing, mismatch (a key's type), malformed, unsupported.
[[nodiscard]] inline Expected<Config> config_from_gguf(const Gguf& gguf) {
  Config c;
  NIHAO_TRY(const std::string_view architecture, gguf.get<std::string_view>("general.architecture"));
  c.architecture = architecture;
  const auto key = [&](std::string_view name) { return concat(architecture, ".", name); };

  const auto refuse = [&](std::string_view name, auto value) {
    return Error{ErrorCode::unsupported, concat("it is ", value, ", which the ", architecture, " family here does not do"),
                 key(name)};
  };
  for (const std::string_view name :
       {"attn_logit_softcapping", "final_logit_softcapping", "expert_count", "attention.scale", "attention.temperature_scale",
        "attention.clamp_kqv", "attention.max_alibi_bias", "rope.scaling.yarn_log_multiplier"}) {
    NIHAO_TRY(const double value, gguf.get_or<double>(key(name), 0.0));
    if (value != 0) return refuse(name, value);
  }
  for (const std::string_view name : {"logit_scale", "embedding_scale", "residual_scale", "rope.scaling.yarn_ext_factor"}) {
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
  NIHAO_TRY(c.norm_eps, gguf.get<float>(key("attention.layer_norm_rms_epsilon")));
  if (c.heads == 0 || layers > 4096) return Error{ErrorCode::malformed, concat(c.heads, " heads in ", layers, " layers")};
  NIHAO_TRY(c.head_dim, gguf.get_or<std::uint32_t>(key("attention.key_length"), c.d_model / c.heads));
  NIHAO_TRY(const auto value_length, gguf.get_or<std::uint32_t>(key("attention.value_length"), c.head_dim));
  if (value_length != c.head_dim)
    return Error{ErrorCode::unsupported, concat("values of ", value_length, " beside keys of ", c.head_dim),
                 key("attention.value_length")};
  NIHAO_TRY(const auto rotated, gguf.get_or<std::uint32_t>(key("rope.dimension_count"), c.head_dim));
  if (rotated != c.head_dim)
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
  c.rope_style = architecture == "llama" ? RopeStyle::neighbours : RopeStyle::halves;
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
    // Both multiply what yarn itself scales by.
    NIHAO_TRY(const double attention_factor, gguf.get_or<double>(key("rope.scaling.attn_factor"), 1.0));
    NIHAO_TRY(const double yarn_factor, gguf.get_or<double>(key("rope.scaling.yarn_attn_factor"), 1.0));
    rope.attention_factor = attention_factor * yarn_factor * yarn_magnitude(rope.factor);
    if (!(rope.attention_factor > 0))
      return Error{ErrorCode::malformed, concat("an attention factor of ", attention_factor, " times ", yarn_factor),
                   key("rope.scaling.attn_factor")};
    NIHAO_TRY(rope.beta_fast, gguf.get_or<double>(key("rope.scaling.yarn_beta_fast"), rope.beta_fast));
    NIHAO_TRY(rope.beta_slow, gguf.get_or<double>(key("rope.scaling.yarn_beta_slow"), rope.beta_slow));
  } else if (scaling != "none") {
    return Error{ErrorCode::unsupported, concat("unknown rope scaling \"", printable(scaling), "\""), key("rope.scaling.type")};
  }
  c.ropes.push_back(rope);
  if (const TensorInfo* factors = gguf.tensors().find("rope_freqs.weight")) {
    if (factors->elements() != c.head_dim / 2)
      return Error{ErrorCode::mismatch, concat("it has ", factors->elements(), " values for ", c.head_dim / 2, " pairs"),
                   "tensor rope_freqs.weight"};
    c.rope_factors.resize(c.head_dim / 2);
    dequantize_row(factors->format, factors->bytes, c.rope_factors);
    for (const float f : c.rope_factors)
      if (!(f > 0)) return Error{ErrorCode::malformed, "a factor is not positive", "tensor rope_freqs.weight"};
  }

  NIHAO_TRY(const auto window, gguf.get_or<std::uint32_t>(key("attention.sliding_window"), 0u));
  if (architecture == "gemma3") {
    c.embedding_scale = std::sqrt(static_cast<float>(c.d_model));
    // The largest of the family scales by the width per head; its file does not say so, its depth does.
    if (layers == 62) c.attention_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(c.d_model) / c.heads));
    RopeParams local;
    NIHAO_TRY(local.base, gguf.get_or<double>(key("rope.freq_base_swa"), 10000.0));
    c.ropes.push_back(local);
    NIHAO_TRY(const auto pattern, gguf.get_or<std::uint32_t>(key("attention.sliding_window_pattern"), 6u));
    if (pattern == 0) return Error{ErrorCode::malformed, "it is 0", key("attention.sliding_window_pattern")};
    for (std::uint32_t i = 0; i < layers; ++i)
      if ((i + 1) % pattern != 0) c.layers[i] = {window, 1};
  } else {
    for (LayerConfig& layer : c.layers) layer.window = window;
  }
  NIHAO_CHECK(check_config(c));
  return c;
}

}  // namespace nihao
