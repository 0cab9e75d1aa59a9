// A Hugging Face folder as the tensors and the metadata of a GGUF file: names, shapes and keys as llama.cpp's converter writes
// them, so that the file loads there. Apart from model_tensors.hpp because it reads JSON: link nihao::json.
#pragma once

#include "../files/safetensors.hpp"
#include "../models/gguf_families.hpp"
#include "../models/hf_config.hpp"
#include "model_tensors.hpp"

#include <algorithm>
#include <optional>

namespace nihao {

namespace detail {

/// Which layers of a GGUF architecture slide: all but each `pattern`th. Of those that are not here: all, or none.
struct GgufPattern {
  std::string_view architecture;
  std::uint32_t pattern = 0;
  bool stated = false;  ///< GGUF has a key for another pattern
};
inline constexpr GgufPattern gguf_patterns[] = {{"gemma2", 2}, {"gemma3", 6, true}, {"cohere2", 4, true}, {"gpt-oss", 2, true}};

/// Collects the tensors of a folder under GGUF's names.
class FolderTensors {
 public:
  FolderTensors(const Safetensors& file, const HfConfig& hf, const GgufFamily& as)
      : file_(file), hf_(hf), as_(as), used_(file.entries().size(), false) {}

  [[nodiscard]] Expected<std::vector<ModelTensor>> take() {
    const Config& c = hf_.config;
    for (auto role = static_cast<std::uint8_t>(Role::embedding); role <= static_cast<std::uint8_t>(Role::head); ++role)
      NIHAO_CHECK(take_role(static_cast<Role>(role), 0));
    for (std::size_t i = 0; i < c.layers.size(); ++i)
      for (auto role = static_cast<std::uint8_t>(Role::attn_norm); role <= static_cast<std::uint8_t>(Role::shared_down); ++role)
        NIHAO_CHECK(take_role(static_cast<Role>(role), i));
    for (std::size_t i = 0; i < used_.size(); ++i)
      if (!used_[i] && !is_left_alone(file_.entries()[i].name, c.layers.size(), c.draft_layers))
        return Error{ErrorCode::unsupported, concat("the ", c.architecture, " family has no place for it"),
                     concat("tensor ", printable(file_.entries()[i].name))};
    rope_tensors();
    return std::move(tensors_);
  }

 private:
  Expected<void> take_role(Role role, std::size_t layer) {
    const Config& c = hf_.config;
    const std::string from = tensor_name({NameStyle::hugging_face, c.architecture}, role, layer);
    const std::string to = gguf_name(role, layer);
    if (from.empty() || to.empty()) return {};
    if (role == Role::head && hf_.tied) {  // loaders check that it is the embedding
      if (const auto index = index_of("lm_head.weight")) used_[*index] = true;
      return {};
    }
    if (role == Role::kv_b) return take_latent_up(from + ".weight", layer);
    if (role == Role::expert_gate_up) return take_gate_up(from, layer);
    if (role >= Role::expert_gate && role <= Role::expert_down && from.find('#') == std::string::npos)
      return take_stack(role, from, to);
    if (role == Role::sinks) return take_one(role, from, to + ".weight");
    if (role == Role::router_choice_bias) return take_one(role, from, to + ".bias");
    for (const std::string_view suffix : {".weight", ".bias"})
      NIHAO_CHECK(take_one(role, concat(from, suffix), concat(to, suffix)));
    return {};
  }

  // The tensor of that name; null if there is none.
  Expected<const TensorInfo*> taken(const std::string& name) {
    const auto index = index_of(name);
    if (!index) return nullptr;
    used_[*index] = true;
    const TensorInfo* const tensor = file_.tensors().find(name);
    if (tensor == nullptr) return Error{ErrorCode::unsupported, "it is stored as no float", concat("tensor ", name)};
    return tensor;
  }
  // The same, of that shape.
  Expected<const TensorInfo*> taken(const std::string& name, std::initializer_list<std::uint64_t> shape) {
    NIHAO_TRY(const TensorInfo* const tensor, taken(name));
    if (tensor != nullptr && !std::equal(shape.begin(), shape.end(), tensor->shape.begin(), tensor->shape.begin() + tensor->rank))
      return Error{ErrorCode::mismatch, "its shape is not what config.json says", concat("tensor ", name)};
    return tensor;
  }
  [[nodiscard]] std::string gguf_name(Role role, std::size_t layer) const {
    return tensor_name({NameStyle::gguf, as_.architecture}, role, layer);
  }
  void add_made(std::string name, std::vector<std::uint64_t> shape, std::vector<float> values) {
    tensors_.push_back({std::move(name), std::move(shape), {}, 0, 0, std::move(values)});
  }
  void add_cut(std::string name, std::vector<std::uint64_t> shape, const TensorInfo* part, const ModelTensor::Cut& cut) {
    tensors_.push_back({std::move(name), std::move(shape), {part}, 0, 0, {}, cut});
  }

  // Of latent attention: W_uk, transposed, and W_uv of each head. GGUF has them apart.
  Expected<void> take_latent_up(const std::string& from, std::size_t layer) {
    const Config& c = hf_.config;
    const std::uint64_t heads = c.heads, latent = c.mla.kv_rank, k = c.mla.nope, v = c.value_width();
    NIHAO_TRY(const TensorInfo* const both, taken(from, {heads * (k + v), latent}));
    if (both == nullptr) return {};
    add_cut(gguf_name(Role::k_b, layer) + ".weight", {heads, latent, k}, both, {true, k + v});
    add_cut(gguf_name(Role::v_b, layer) + ".weight", {heads, v, latent}, both, {false, k + v, k});
    return {};
  }

  // Gate and up of all experts in one, rows being inputs: first the ones, then the others, or (gpt-oss) by turns.
  Expected<void> take_gate_up(const std::string& from, std::size_t layer) {
    const Config& c = hf_.config;
    const std::uint64_t n = c.router.experts, d = c.d_model, ff = c.expert_ff;
    const std::uint64_t step = c.architecture == "gpt_oss" ? 2 : 1, up = step == 2 ? 1 : ff;
    NIHAO_TRY(const TensorInfo* const both, taken(from, {n, d, 2 * ff}));
    NIHAO_TRY(const TensorInfo* const biases, taken(from + "_bias", {n, 2 * ff}));
    for (const auto& [role, first] : {std::pair(Role::expert_gate, std::uint64_t{0}), std::pair(Role::expert_up, up)}) {
      const std::string to = gguf_name(role, layer);
      if (both != nullptr) add_cut(to + ".weight", {n, ff, d}, both, {true, d, 0, first, step});
      if (biases == nullptr) continue;
      std::vector<float> all(static_cast<std::size_t>(n * 2 * ff)), own;
      dequantize_row(biases->format, biases->bytes, all);
      for (std::uint64_t i = 0; i < n * ff; ++i)
        own.push_back(all[static_cast<std::size_t>(i / ff * 2 * ff + first + i % ff * step)]);
      add_made(to + ".bias", {n, ff}, std::move(own));
    }
    return {};
  }

  // One matrix of all experts: rows are inputs, but for DBRX's gate and up.
  Expected<void> take_stack(Role role, const std::string& from, const std::string& to) {
    const Config& c = hf_.config;
    const std::uint64_t n = c.router.experts, d = c.d_model, ff = c.expert_ff;
    const bool dbrx = c.architecture == "dbrx";
    NIHAO_TRY(const TensorInfo* const all, dbrx ? taken(from, {n * ff, d}) : taken(from, {n, ff, d}));
    if (all == nullptr) return {};
    if (role == Role::expert_down) add_cut(to + ".weight", {n, d, ff}, all, {true, ff});
    else tensors_.push_back({to + ".weight", {n, ff, d}, {all}});
    return take_one(role, from + "_bias", to + ".bias");
  }

  Expected<void> take_one(Role role, const std::string& from, const std::string& to) {
    const Config& c = hf_.config;
    ModelTensor tensor{to, {}, {}};
    const std::size_t experts = from.find('#') != std::string::npos ? c.router.experts : 0;
    for (std::size_t e = 0; e < std::max<std::size_t>(experts, 1); ++e) {
      std::string name = from;
      if (experts > 0) name.replace(name.find('#'), 1, concat(e));
      NIHAO_TRY(const TensorInfo* const part, taken(name));
      if (part == nullptr && e == 0) return {};
      if (part == nullptr) return Error{ErrorCode::missing, "the folder has no such tensor", concat("tensor ", name)};
      if (e > 0 && (part->shape != tensor.parts[0]->shape || part->format != tensor.parts[0]->format))
        return Error{ErrorCode::mismatch, "it differs in shape or type from those of the other experts", concat("tensor ", name)};
      tensor.parts.push_back(part);
    }
    const TensorInfo& first = *tensor.parts[0];
    if (first.rank > 2)
      return Error{ErrorCode::unsupported, concat("it has ", first.rank, " axes"), concat("tensor ", first.name)};
    if (experts > 0) tensor.shape.push_back(experts);
    tensor.shape.insert(tensor.shape.end(), first.shape.begin(), first.shape.begin() + first.rank);
    const bool is_norm = to.ends_with("norm.weight");
    if (is_norm) tensor.add = hf_.norm_offset;
    const bool to_neighbours = as_.rope == RopeStyle::neighbours && c.rope_style == RopeStyle::halves;
    if (to_neighbours && (role == Role::q || role == Role::k)) {
      if (first.shape[0] % c.head_dim != 0)
        return Error{ErrorCode::mismatch, concat(first.shape[0], " rows are no heads of ", c.head_dim),
                     concat("tensor ", first.name)};
      tensor.head_rows = c.head_dim;
      if (first.rank == 1) {  // a bias' values change places as the rows do: each is a row of one value
        tensor.shape = {first.shape[0], 1};
        std::vector<float> turned(static_cast<std::size_t>(first.shape[0]));
        for (std::size_t r = 0; r < turned.size(); ++r) tensor.read_row(r, std::span(&turned[r], 1));
        tensor = {tensor.name, {turned.size()}, {}, 0, 0, std::move(turned)};
      }
    }
    tensors_.push_back(std::move(tensor));
    return {};
  }

  // What GGUF has as tensors of a rotary embedding: factors that frequencies are divided by.
  void rope_tensors() {
    const Config& c = hf_.config;
    const RopeParams& rope = c.ropes[0];
    const auto add = [&](std::string_view name, std::vector<float> values) {
      tensors_.insert(tensors_.begin(), ModelTensor{std::string(name), {values.size()}, {}, 0, 0, std::move(values)});
    };
    if (rope.scaling == RopeScaling::llama3) {
      RopeParams plain = rope;
      plain.scaling = RopeScaling::none;
      const auto scaled = rope_frequencies(rope, c.rotated_width()), unscaled = rope_frequencies(plain, c.rotated_width());
      std::vector<float> factors(scaled.frequency.size());
      for (std::size_t i = 0; i < factors.size(); ++i)
        factors[i] = static_cast<float>(unscaled.frequency[i] / scaled.frequency[i]);
      add("rope_freqs.weight", std::move(factors));
    } else if (rope.scaling == RopeScaling::longrope) {
      add("rope_factors_long.weight", rope.far_factors);
      add("rope_factors_short.weight", rope.factors);
    }
  }

  [[nodiscard]] std::optional<std::size_t> index_of(std::string_view name) const noexcept {
    const SafetensorsEntry* const entry = file_.find(name);
    if (entry == nullptr) return std::nullopt;
    return static_cast<std::size_t>(entry - file_.entries().data());
  }

  const Safetensors& file_;
  const HfConfig& hf_;
  const GgufFamily& as_;
  std::vector<bool> used_;
  std::vector<ModelTensor> tensors_;
};

/// The windows of all layers as GGUF says them: one number, and that all layers slide but each `pattern`th. Error: unsupported.
struct GgufWindows {
  std::uint32_t window = 0, pattern = 0;
  GgufPattern usual;
};
[[nodiscard]] inline Expected<GgufWindows> gguf_windows(const Config& c, const GgufFamily& as) {
  GgufWindows result;
  for (const GgufPattern& known : gguf_patterns)
    if (known.architecture == as.architecture) result.usual = known;
  result.pattern = result.usual.pattern;
  for (const LayerConfig& layer : c.layers) result.window = std::max(result.window, layer.window);
  const auto holds = [&](std::uint32_t pattern) {
    for (std::size_t i = 0; i < c.layers.size(); ++i)
      if (c.layers[i].window != (pattern == 0 || (i + 1) % pattern != 0 ? result.window : 0)) return false;
    return true;
  };
  if (result.window == 0 || holds(result.pattern)) return result;
  if (result.usual.stated)
    for (result.pattern = 2; result.pattern <= c.layers.size(); ++result.pattern)
      if (holds(result.pattern)) return result;
  return Error{ErrorCode::unsupported, concat("GGUF has no key for which layers slide in ", as.architecture), "layer_types"};
}

/// The keys of the rotary embedding.
inline void add_rope_keys(GgufWriter& writer, const std::string& prefix, const Config& c) {
  const RopeParams& rope = c.ropes[0];
  writer.add(prefix + "rope.freq_base", static_cast<float>(rope.base));
  writer.add(prefix + "rope.dimension_count", c.rotated_width());
  if (c.ropes.size() > 1) writer.add(prefix + "rope.freq_base_swa", static_cast<float>(c.ropes[1].base));
  const auto scaling = [&](const char* type) {
    writer.add(prefix + "rope.scaling.type", type);
    writer.add(prefix + "rope.scaling.factor", static_cast<float>(rope.factor));
  };
  const auto original = [&] {
    writer.add(prefix + "rope.scaling.original_context_length", static_cast<std::uint32_t>(rope.original_context));
  };
  if (rope.scaling == RopeScaling::linear) scaling("linear");
  if (rope.scaling == RopeScaling::yarn) {
    scaling("yarn");
    original();
    // Of latent attention the scores' scale may have the magnitude, twice; cos and sin have none then.
    const double twice =
        c.mla.kv_rank > 0 ? static_cast<double>(c.attention_scale) * std::sqrt(static_cast<double>(c.head_dim)) : 1.0;
    const bool in_scores = std::abs(twice - 1) > 1e-6 && rope.factor > 1;
    const double usual = yarn_magnitude(rope.factor), stated = rope.attention_factor > 0 ? rope.attention_factor : usual;
    if (in_scores)
      writer.add(prefix + "rope.scaling.yarn_log_multiplier", static_cast<float>((std::sqrt(twice) - 1) / std::log(rope.factor)));
    else if (stated != usual) writer.add(prefix + "rope.scaling.attn_factor", static_cast<float>(stated / usual));
    if (rope.beta_fast != 32) writer.add(prefix + "rope.scaling.yarn_beta_fast", static_cast<float>(rope.beta_fast));
    if (rope.beta_slow != 1) writer.add(prefix + "rope.scaling.yarn_beta_slow", static_cast<float>(rope.beta_slow));
  }
  if (rope.scaling == RopeScaling::longrope) {
    original();
    writer.add(prefix + "rope.scaling.attn_factor", static_cast<float>(rope.attention_factor));
  }
}

/// The dense layers before the first that has experts.
[[nodiscard]] inline std::uint32_t leading_dense_layers(const Config& c) noexcept {
  std::uint32_t dense = 0;
  while (dense < c.layers.size() && c.layers[dense].kind == 0) ++dense;
  return dense;
}

/// The same of families with experts.
[[nodiscard]] inline Expected<void> check_experts_can_be_said(const Config& c, const GgufFamily& as) {
  const auto refuse = [&](const std::string& what, std::string_view where) {
    return Error{ErrorCode::unsupported, concat(what, ", and GGUF has no key for that in ", as.architecture), std::string(where)};
  };
  const std::uint32_t dense = leading_dense_layers(c);
  if (as.architecture == "deepseek2") {
    for (std::size_t i = dense; i < c.layers.size(); ++i)
      if (c.layers[i].kind == 0) return refuse(concat("layer ", i, " is dense"), "moe_layer_freq");
    if (c.mla.norm_eps != c.norm_eps)
      return refuse(concat("it is ", c.norm_eps, ", of the latents' norms ", c.mla.norm_eps), "rms_norm_eps");
    if (c.rope_style != RopeStyle::neighbours) return refuse("the halves of a head turn together", "rope_interleave");
    const RopeParams& rope = c.ropes[0];
    const bool all = std::abs(c.attention_scale * std::sqrt(static_cast<float>(c.head_dim)) - 1) > 1e-6f;
    if (rope.scaling == RopeScaling::yarn && all && rope.attention_factor != 1)
      return refuse("mscale differs from mscale_all_dim", "rope_scaling.mscale");
  } else if (as.architecture == "llama4") {
    for (std::size_t i = 0; i < c.layers.size(); ++i) {
      const LayerConfig& layer = c.layers[i];
      if (layer.kind != ((i + 1) % (dense + 1) == 0 ? 1u : 0u))
        return refuse("layers with experts come irregularly", "moe_layers");
      const bool turns = (i + 1) % 4 != 0;
      if (layer.chunk != (turns ? 8192u : 0u)) return refuse(concat("chunks are of ", layer.chunk), "attention_chunk_size");
    }
    if (c.temperature_scale != 0.1f || c.temperature_floor != 8192)
      return refuse(concat("temperature is tuned by ", c.temperature_scale, ", ", c.temperature_floor), "attn_scale");
    if (c.qk_norm != (c.router.experts != 128)) return refuse(c.qk_norm ? "it is true" : "it is false", "use_qk_norm");
  } else if (as.architecture == "gpt-oss") {
    if (c.gate_limit != 7) return refuse(concat("it is ", c.gate_limit), "swiglu_limit");
    if (!c.qkv_bias || !c.o_bias) return refuse("it is false", "attention_bias");
  } else if (as.architecture == "phimoe") {
    if (c.router.jitter != 0.01f) return refuse(concat("it is ", c.router.jitter), "router_jitter_noise");
    if (!c.qkv_bias || !c.o_bias) return refuse("it is false", "attention_bias");
  }
  return {};
}

/// What GGUF has no key for, and would be read otherwise. Error: unsupported.
[[nodiscard]] inline Expected<void> check_can_be_said(const Config& c, const GgufFamily& as) {
  const bool largest_gemma =
      (as.architecture == "gemma2" && c.layers.size() == 46) || (as.architecture == "gemma3" && c.layers.size() == 62);
  const double width = largest_gemma ? static_cast<double>(c.d_model) / c.heads : static_cast<double>(c.head_dim);
  const double usual = 1.0 / std::sqrt(width), stated = static_cast<double>(c.attention_scale);
  if (as.architecture != "granite" && as.architecture != "deepseek2" && std::abs(stated - usual) > 1e-6 * usual)
    return Error{ErrorCode::unsupported,
                 concat("scores are scaled by ", stated, ", and GGUF has no key for that in ", as.architecture)};
  const bool normalizes = as.architecture == "llama" || as.architecture == "qwen3moe" || as.architecture == "dbrx";
  if (c.router.experts > 0 && normalizes && !c.router.normalize)
    return Error{ErrorCode::unsupported, concat("GGUF has no key for experts whose weights do not sum to 1 in ", as.architecture),
                 "norm_topk_prob"};
  for (const RopeParams& rope : c.ropes) {
    const bool second = &rope != &c.ropes[0] && rope.scaling != RopeScaling::none;
    const bool ramp = rope.scaling == RopeScaling::yarn && rope.truncate == (as.architecture == "gpt-oss");
    const bool magnitudes = rope.far_attention_factor != 0 && rope.far_attention_factor != rope.attention_factor;
    if (second || ramp || magnitudes || rope.scaling == RopeScaling::dynamic)
      return Error{ErrorCode::unsupported, "GGUF has no key for this rotary embedding", "rope_scaling"};
  }
  if (c.router.experts > 0) { NIHAO_CHECK(check_experts_can_be_said(c, as)); }
  if (as.architecture == "llama4" || as.architecture == "smollm3")
    for (std::size_t i = 0; i < c.layers.size(); ++i)
      if (c.layers[i].rope != ((i + 1) % 4 != 0 ? 0 : no_rope))
        return Error{ErrorCode::unsupported,
                     concat("not each fourth layer is without rope, and GGUF has no key for that in ", as.architecture),
                     "no_rope_layers"};
  return {};
}

}  // namespace detail

/// The tensors of a folder that Safetensors has opened, and what its config.json says. `name` becomes general.name. Errors: those
/// of config_from_hf, and unsupported (an architecture that is not converted, quantized weights, what GGUF cannot say), missing,
/// mismatch.
[[nodiscard]] inline Expected<ModelToWrite> tensors_of_folder(const Safetensors& file, const Json& config_json,
                                                              std::string_view name) {
  if (const Json* q = json_find(config_json, "quantization_config"); q != nullptr && !q->is_null())
    return Error{ErrorCode::unsupported, "the folder's weights are quantized", "quantization_config"};
  NIHAO_TRY(const HfConfig hf, config_from_hf(config_json));
  if (!hf.prefix.empty())
    return Error{ErrorCode::unsupported, "the folder has more than a language model, and only those are converted", "model_type"};
  const Config& c = hf.config;
  const std::string_view gguf = detail::find_hf_family(c.architecture)->gguf;
  const detail::GgufFamily* const as = detail::find_gguf_family(gguf.empty() ? std::string_view(c.architecture) : gguf);
  if (as == nullptr)
    return Error{ErrorCode::unsupported, concat("the ", c.architecture, " family has no GGUF files"), "model_type"};
  NIHAO_CHECK(detail::check_can_be_said(c, *as));
  NIHAO_TRY(const detail::GgufWindows windows, detail::gguf_windows(c, *as));

  ModelToWrite model;
  model.architecture = as->architecture;
  model.shape = {static_cast<std::uint32_t>(c.layers.size()), c.heads, c.mla.kv_rank > 0 ? 1 : c.kv_heads, c.router.experts,
                 hf.tied};
  NIHAO_TRY(model.tensors, detail::FolderTensors(file, hf, *as).take());
  GgufWriter& writer = model.metadata;
  const std::string prefix = concat(as->architecture, ".");
  writer.add("general.architecture", as->architecture);
  writer.add("general.type", "model");
  if (!name.empty()) writer.add("general.name", name);
  const auto size = [&](std::string_view key, std::uint32_t value) { writer.add(concat(prefix, key), value); };
  const auto factor = [&](std::string_view key, float value) { writer.add(concat(prefix, key), value); };
  size("block_count", model.shape.layers);
  size("context_length", c.context);
  size("embedding_length", c.d_model);
  size("feed_forward_length", c.d_ff);
  size("attention.head_count", c.heads);
  const MlaConfig& mla = c.mla;  // of which GGUF says what the cache has: one latent, and what turns
  size("attention.head_count_kv", model.shape.kv_heads);
  size("attention.key_length", mla.kv_rank > 0 ? mla.kv_rank + mla.rope : c.head_dim);
  size("attention.value_length", mla.kv_rank > 0 ? mla.kv_rank : c.value_width());
  if (mla.kv_rank > 0) {
    size("attention.key_length_mla", c.head_dim);
    size("attention.value_length_mla", c.value_width());
    size("attention.kv_lora_rank", mla.kv_rank);
    if (mla.q_rank > 0) size("attention.q_lora_rank", mla.q_rank);
  }
  size("vocab_size", c.vocab);
  factor(as->eps, c.norm_eps);
  detail::add_rope_keys(writer, prefix, c);
  if (windows.window > 0 || windows.usual.pattern > 0) size("attention.sliding_window", windows.window);
  if (windows.pattern != windows.usual.pattern) size("attention.sliding_window_pattern", windows.pattern);
  if (as->architecture == "gemma2") {
    factor("attn_logit_softcapping", c.attention_softcap);
    factor("final_logit_softcapping", c.logit_softcap);
  }
  if (as->architecture == "granite") {
    factor("attention.scale", c.attention_scale);
    factor("embedding_scale", c.embedding_scale);
    factor("residual_scale", c.residual_scale);
    factor("logit_scale", 1.0f / c.logit_scale);
  }
  if (as->architecture == "cohere2") factor("logit_scale", c.logit_scale);
  if (c.router.experts > 0) {
    size("expert_count", c.router.experts);
    size("expert_used_count", c.router.chosen);
    size("expert_feed_forward_length", c.expert_ff);
  }
  if (as->architecture == "deepseek2") {
    size("leading_dense_block_count", detail::leading_dense_layers(c));
    size("expert_shared_count", c.shared_ff / c.expert_ff);
    size("expert_gating_func", c.router.sigmoid ? 2 : 1);
    size("expert_group_count", c.router.groups);
    size("expert_group_used_count", c.router.groups_kept);
    factor("expert_weights_scale", c.router.scale);
    writer.add(prefix + "expert_weights_norm", c.router.normalize);
  }
  if (as->architecture == "llama4") size("interleave_moe_layer_step", detail::leading_dense_layers(c) + 1);
  if (as->architecture == "dbrx") factor("attention.clamp_kqv", c.qkv_clip);
  writer.add("tokenizer.ggml.model", "none");
  return model;
}

}  // namespace nihao
