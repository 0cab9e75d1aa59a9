// Mixes: which format each tensor of a model gets. A target such as Q4_K_M has a format for most, and rules for what keeps more
// bits and why. The rules are those of llama.cpp's llama-quantize (src/llama-quant.cpp), so that files of one name hold the same.
#pragma once

#include "../format/registry.hpp"
#include "tensor_role.hpp"

#include <array>

namespace nihao {

/// In which layers a rule holds.
enum class RecipeLayers : std::uint8_t {
  all,
  more,   ///< the first and the last eighth, and every third between: errors near the ends are amplified, or meet the head
          ///< unmended
  first,  ///< the first eighth
};

/// Of which models.
enum class RecipeModels : std::uint8_t {
  any,
  tied,           ///< the embedding is the head too
  eight_experts,  ///< attention is so small a part of these that its bits cost nothing
  grouped,  ///< four or more heads share keys and values: those matrices are small, and each of their errors is in all the heads
  eighty_layers,  ///< with shared keys and values: the 70 B models
  important,      ///< an importance matrix is there
  unimportant,    ///< none is
};

/// One exception of a mix.
struct RecipeRule {
  std::array<Role, 4> roles;  ///< repeated where there are fewer
  RecipeLayers layers;
  RecipeModels models;
  FormatId format;
  std::string_view why;
};

/// What rules ask of a model.
struct RecipeModel {
  std::uint32_t layers = 0, heads = 0, kv_heads = 0, experts = 0;
  bool tied = false, importance = false;
};

/// A target of quantization. The first rule that holds decides; `usual` is what no rule speaks of.
struct Recipe {
  std::string_view name;
  FormatId usual;
  std::uint32_t file_type;  ///< general.file_type, llama.cpp's number
  std::span<const RecipeRule> rules;
  std::string_view what;  ///< in a line

  /// The rule for a tensor, or null: the usual format.
  [[nodiscard]] constexpr const RecipeRule* rule(const TensorRole& tensor, const RecipeModel& model) const noexcept {
    for (const RecipeRule& r : rules) {
      if (!tensor.role) return nullptr;
      bool holds = false;
      for (const Role role : r.roles) holds = holds || role == *tensor.role;
      if (holds && in_layers(r.layers, tensor.layer.value_or(0), model.layers) && in_models(r.models, model)) return &r;
    }
    return nullptr;
  }
  [[nodiscard]] constexpr FormatId format(const TensorRole& tensor, const RecipeModel& model) const noexcept {
    const RecipeRule* const r = rule(tensor, model);
    return r != nullptr ? r->format : usual;
  }

 private:
  static constexpr bool in_layers(RecipeLayers which, std::uint32_t layer, std::uint32_t layers) noexcept {
    const std::uint32_t eighth = layers / 8;
    switch (which) {
      case RecipeLayers::all: return true;
      case RecipeLayers::first: return layer < eighth;
      case RecipeLayers::more: return layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
    }
    return false;
  }
  static constexpr bool in_models(RecipeModels which, const RecipeModel& model) noexcept {
    const bool shared = model.kv_heads > 0 && model.heads > model.kv_heads;
    switch (which) {
      case RecipeModels::any: return true;
      case RecipeModels::tied: return model.tied;
      case RecipeModels::eight_experts: return model.experts == 8;
      case RecipeModels::grouped: return shared && model.heads / model.kv_heads >= 4;
      case RecipeModels::eighty_layers: return model.layers == 80 && shared;
      case RecipeModels::important: return model.importance;
      case RecipeModels::unimportant: return !model.importance;
    }
    return false;
  }
};

namespace detail {

inline constexpr std::array<Role, 4> mix_head{Role::head, Role::head, Role::head, Role::head},
    mix_embedding{Role::embedding, Role::embedding, Role::embedding, Role::embedding},
    mix_values{Role::v, Role::qkv, Role::kv_b, Role::v}, mix_keys{Role::k, Role::k, Role::k, Role::k},
    mix_attention_out{Role::o, Role::o, Role::o, Role::o}, mix_down{Role::down, Role::expert_down, Role::shared_down, Role::down};

inline constexpr std::string_view why_head = "its errors go straight into the logits";
inline constexpr std::string_view why_tied = "the embedding multiplies as the head too";
inline constexpr std::string_view why_eight = "of 8 experts, attention is a small part: its bits cost little";
inline constexpr std::string_view why_values =
    "a small matrix whose errors are in every head that shares it, unsoftened by the softmax";
inline constexpr std::string_view why_down =
    "its inputs have the largest outliers of a layer, and its output joins the residual stream";

inline constexpr RecipeRule head_q6_k{mix_head, RecipeLayers::all, RecipeModels::any, FormatId::Q6_K, why_head};
inline constexpr RecipeRule tied_q6_k{mix_embedding, RecipeLayers::all, RecipeModels::tied, FormatId::Q6_K, why_tied};
inline constexpr RecipeRule values_q8_0{mix_values, RecipeLayers::all, RecipeModels::eight_experts, FormatId::Q8_0, why_eight};
inline constexpr RecipeRule keys_q8_0{mix_keys, RecipeLayers::all, RecipeModels::eight_experts, FormatId::Q8_0, why_eight};
inline constexpr RecipeRule out_q5_k{mix_attention_out, RecipeLayers::all, RecipeModels::eight_experts, FormatId::Q5_K,
                                     why_eight};

inline constexpr RecipeRule q4_0_rules[] = {head_q6_k,
                                            tied_q6_k,
                                            values_q8_0,
                                            keys_q8_0,
                                            {mix_down, RecipeLayers::first, RecipeModels::important, FormatId::Q4_1, why_down}};
inline constexpr RecipeRule q4_k_m_rules[] = {
    head_q6_k,
    tied_q6_k,
    values_q8_0,
    keys_q8_0,
    out_q5_k,
    {mix_values, RecipeLayers::more, RecipeModels::any, FormatId::Q6_K, why_values},
    {mix_values, RecipeLayers::all, RecipeModels::eighty_layers, FormatId::Q5_K, why_values},
    {mix_down, RecipeLayers::more, RecipeModels::any, FormatId::Q6_K, why_down}};
inline constexpr RecipeRule q5_k_m_rules[] = {head_q6_k,
                                              tied_q6_k,
                                              values_q8_0,
                                              keys_q8_0,
                                              {mix_values, RecipeLayers::more, RecipeModels::any, FormatId::Q6_K, why_values},
                                              {mix_down, RecipeLayers::more, RecipeModels::any, FormatId::Q6_K, why_down}};
inline constexpr RecipeRule q6_k_rules[] = {values_q8_0, keys_q8_0};
inline constexpr RecipeRule iq4_xs_rules[] = {
    head_q6_k,
    tied_q6_k,
    values_q8_0,
    keys_q8_0,
    out_q5_k,
    {mix_values, RecipeLayers::all, RecipeModels::grouped, FormatId::Q5_K, why_values},
    {mix_down, RecipeLayers::first, RecipeModels::unimportant, FormatId::Q5_K, why_down}};
inline constexpr RecipeRule mxfp4_rules[] = {
    {{Role::expert_gate, Role::expert_up, Role::expert_gate_up, Role::expert_down},
     RecipeLayers::all,
     RecipeModels::any,
     FormatId::MXFP4,
     "nearly all of the weights, and few of them for each token: as gpt-oss was trained"},
    {{Role::gate, Role::up, Role::gate_up, Role::down},
     RecipeLayers::all,
     RecipeModels::any,
     FormatId::MXFP4,
     "in layers without experts, where most of the weights are"}};
inline constexpr RecipeRule mxfp4_moe_rules[] = {mxfp4_rules[0]};

}  // namespace detail

/// All targets.
inline constexpr Recipe recipes[] = {
    {"F32", FormatId::F32, 0, {}, "all in 32-bit floats"},
    {"F16", FormatId::F16, 1, {}, "matrices in 16-bit floats"},
    {"BF16", FormatId::BF16, 32, {}, "matrices in bfloat16"},
    {"Q8_0", FormatId::Q8_0, 7, {}, "matrices in Q8_0"},
    {"Q6_K", FormatId::Q6_K, 18, detail::q6_k_rules, "matrices in Q6_K"},
    {"Q5_K_M", FormatId::Q5_K, 17, detail::q5_k_m_rules,
     "Q5_K, with Q6_K for the head, and for values and down in half of the layers"},
    {"Q4_K_M", FormatId::Q4_K, 15, detail::q4_k_m_rules,
     "Q4_K, with Q6_K for the head, and for values and down in half of the layers"},
    {"Q4_0", FormatId::Q4_0, 2, detail::q4_0_rules, "Q4_0, with Q6_K for the head"},
    {"IQ4_XS", FormatId::IQ4_XS, 30, detail::iq4_xs_rules,
     "IQ4_XS, with Q6_K for the head, Q5_K for values, and down in the first layers"},
    {"MXFP4", FormatId::Q8_0, 38, detail::mxfp4_rules, "the feed-forward's matrices in MXFP4, the rest in Q8_0"},
    {"MXFP4_MOE", FormatId::Q8_0, 38, detail::mxfp4_moe_rules, "experts in MXFP4, the rest in Q8_0"},
};

/// The target of that name, or null.
[[nodiscard]] constexpr const Recipe* recipe_from_name(std::string_view name) noexcept {
  for (const Recipe& mix : recipes)
    if (mix.name == name) return &mix;
  return nullptr;
}

/// The format that a tensor whose rows have `cols` values can have: where they are not whole blocks, the next of blocks of 32
/// with no fewer bits; where they are not that either, F16.
[[nodiscard]] constexpr FormatId fitting_format(FormatId wanted, std::uint64_t cols) noexcept {
  if (cols % format_info(wanted).block_size == 0) return wanted;
  FormatId other = FormatId::F16;
  switch (wanted) {
    case FormatId::Q4_K: other = FormatId::Q5_0; break;
    case FormatId::Q5_K: other = FormatId::Q5_1; break;
    case FormatId::Q6_K: other = FormatId::Q8_0; break;
    case FormatId::IQ4_XS: other = FormatId::IQ4_NL; break;
    default: break;
  }
  return cols % format_info(other).block_size == 0 ? other : FormatId::F16;
}

}  // namespace nihao
