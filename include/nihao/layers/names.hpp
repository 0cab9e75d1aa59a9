// What each weight of a decoder is called, in GGUF files and in Hugging Face checkpoints.
#pragma once

#include "../base/str.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace nihao {

/// The places a weight can have in a decoder.
enum class Role : std::uint8_t {
  embedding,
  final_norm,
  head,  // one each
  attn_norm,
  attn_post_norm,
  ffn_norm,
  ffn_post_norm,
  q,
  k,
  v,
  qkv,  // q, k and v in one matrix
  o,
  q_norm,
  k_norm,
  sinks,
  q_a,  // of multi-head latent attention, up to kv_b
  q_a_norm,
  q_b,
  kv_a,
  kv_a_norm,
  kv_b,
  k_b,  // kv_b in two: W_uk^T and W_uv of each head
  v_b,
  gate,
  up,
  gate_up,  // both in one matrix
  down,
  router,
  router_choice_bias,
  expert_gate,  // of all experts in one tensor, or of one
  expert_up,
  expert_gate_up,
  expert_down,
  shared_gate,
  shared_up,
  shared_gate_up,
  shared_down,  // one a layer
};

enum class NameStyle : std::uint8_t { gguf, hugging_face };

/// Whose names: the file's kind and its architecture.
struct Naming {
  NameStyle style;
  std::string_view architecture;
};

namespace detail {

/// A name that one architecture has, or all others.
struct RoleName {
  Role role;
  std::string_view architecture;  ///< "": of all that no other line speaks of
  std::string_view name;          ///< "": it has no such tensor, and another role has the others' name
};

inline constexpr RoleName gguf_names[] = {
    {Role::ffn_norm, "gpt-oss", "post_attention_norm"},
    {Role::ffn_norm, "dbrx", "attn_output_norm"},
    {Role::gate_up, "phi3", "ffn_up"},
    {Role::gate_up, "glm4", "ffn_up"},
    {Role::embedding, "", "token_embd"},
    {Role::final_norm, "", "output_norm"},
    {Role::head, "", "output"},
    {Role::attn_norm, "", "attn_norm"},
    {Role::attn_post_norm, "", "post_attention_norm"},
    {Role::ffn_norm, "", "ffn_norm"},
    {Role::ffn_post_norm, "", "post_ffw_norm"},
    {Role::q, "", "attn_q"},
    {Role::k, "", "attn_k"},
    {Role::v, "", "attn_v"},
    {Role::qkv, "", "attn_qkv"},
    {Role::o, "", "attn_output"},
    {Role::q_norm, "", "attn_q_norm"},
    {Role::k_norm, "", "attn_k_norm"},
    {Role::sinks, "", "attn_sinks"},
    {Role::q_a, "", "attn_q_a"},
    {Role::q_a_norm, "", "attn_q_a_norm"},
    {Role::q_b, "", "attn_q_b"},
    {Role::kv_a, "", "attn_kv_a_mqa"},
    {Role::kv_a_norm, "", "attn_kv_a_norm"},
    {Role::kv_b, "", "attn_kv_b"},
    {Role::k_b, "", "attn_k_b"},
    {Role::v_b, "", "attn_v_b"},
    {Role::gate, "", "ffn_gate"},
    {Role::up, "", "ffn_up"},
    {Role::down, "", "ffn_down"},
    {Role::router, "", "ffn_gate_inp"},
    {Role::router_choice_bias, "", "exp_probs_b"},
    {Role::expert_gate, "", "ffn_gate_exps"},
    {Role::expert_up, "", "ffn_up_exps"},
    {Role::expert_gate_up, "", "ffn_gate_up_exps"},
    {Role::expert_down, "", "ffn_down_exps"},
    {Role::shared_gate, "", "ffn_gate_shexp"},
    {Role::shared_up, "", "ffn_up_shexp"},
    {Role::shared_down, "", "ffn_down_shexp"},
};

// '#' is an expert's number.
inline constexpr RoleName hugging_face_names[] = {
    {Role::router, "mixtral", "block_sparse_moe.gate"},
    {Role::expert_gate, "mixtral", "block_sparse_moe.experts.#.w1"},
    {Role::expert_up, "mixtral", "block_sparse_moe.experts.#.w3"},
    {Role::expert_down, "mixtral", "block_sparse_moe.experts.#.w2"},
    {Role::router, "phimoe", "block_sparse_moe.gate"},
    {Role::expert_gate, "phimoe", "block_sparse_moe.experts.#.w1"},
    {Role::expert_up, "phimoe", "block_sparse_moe.experts.#.w3"},
    {Role::expert_down, "phimoe", "block_sparse_moe.experts.#.w2"},
    {Role::embedding, "dbrx", "transformer.wte"},
    {Role::final_norm, "dbrx", "transformer.norm_f"},
    {Role::attn_norm, "dbrx", "norm_attn_norm.norm_1"},
    {Role::ffn_norm, "dbrx", "norm_attn_norm.norm_2"},
    {Role::qkv, "dbrx", "norm_attn_norm.attn.Wqkv"},
    {Role::o, "dbrx", "norm_attn_norm.attn.out_proj"},
    {Role::router, "dbrx", "ffn.router.layer"},
    {Role::expert_gate, "dbrx", "ffn.experts.mlp.w1"},
    {Role::expert_up, "dbrx", "ffn.experts.mlp.v1"},
    {Role::expert_down, "dbrx", "ffn.experts.mlp.w2"},
    {Role::gate, "llama4_text", "feed_forward.gate_proj"},
    {Role::up, "llama4_text", "feed_forward.up_proj"},
    {Role::down, "llama4_text", "feed_forward.down_proj"},
    {Role::router, "llama4_text", "feed_forward.router"},
    {Role::expert_gate_up, "llama4_text", "feed_forward.experts.gate_up_proj"},
    {Role::expert_down, "llama4_text", "feed_forward.experts.down_proj"},
    {Role::shared_gate, "llama4_text", "feed_forward.shared_expert.gate_proj"},
    {Role::shared_up, "llama4_text", "feed_forward.shared_expert.up_proj"},
    {Role::shared_down, "llama4_text", "feed_forward.shared_expert.down_proj"},
    {Role::router, "gpt_oss", "mlp.router"},
    {Role::expert_gate_up, "gpt_oss", "mlp.experts.gate_up_proj"},
    {Role::expert_down, "gpt_oss", "mlp.experts.down_proj"},
    // "post_attention_layernorm" stands where the name says in some families, in the others before the feed-forward.
    {Role::attn_post_norm, "gemma2", "post_attention_layernorm"},
    {Role::ffn_norm, "gemma2", "pre_feedforward_layernorm"},
    {Role::attn_post_norm, "gemma3_text", "post_attention_layernorm"},
    {Role::ffn_norm, "gemma3_text", "pre_feedforward_layernorm"},
    {Role::attn_post_norm, "glm4", "post_self_attn_layernorm"},
    {Role::ffn_post_norm, "glm4", "post_mlp_layernorm"},
    {Role::attn_norm, "olmo2", ""},
    {Role::attn_post_norm, "olmo2", "post_attention_layernorm"},
    {Role::ffn_norm, "olmo2", ""},
    {Role::embedding, "", "model.embed_tokens"},
    {Role::final_norm, "", "model.norm"},
    {Role::head, "", "lm_head"},
    {Role::attn_norm, "", "input_layernorm"},
    {Role::ffn_norm, "", "post_attention_layernorm"},
    {Role::ffn_post_norm, "", "post_feedforward_layernorm"},
    {Role::q, "", "self_attn.q_proj"},
    {Role::k, "", "self_attn.k_proj"},
    {Role::v, "", "self_attn.v_proj"},
    {Role::qkv, "", "self_attn.qkv_proj"},
    {Role::o, "", "self_attn.o_proj"},
    {Role::q_norm, "", "self_attn.q_norm"},
    {Role::k_norm, "", "self_attn.k_norm"},
    {Role::sinks, "", "self_attn.sinks"},
    {Role::q_a, "", "self_attn.q_a_proj"},
    {Role::q_a_norm, "", "self_attn.q_a_layernorm"},
    {Role::q_b, "", "self_attn.q_b_proj"},
    {Role::kv_a, "", "self_attn.kv_a_proj_with_mqa"},
    {Role::kv_a_norm, "", "self_attn.kv_a_layernorm"},
    {Role::kv_b, "", "self_attn.kv_b_proj"},
    {Role::gate, "", "mlp.gate_proj"},
    {Role::up, "", "mlp.up_proj"},
    {Role::gate_up, "", "mlp.gate_up_proj"},
    {Role::down, "", "mlp.down_proj"},
    {Role::router, "", "mlp.gate"},
    {Role::router_choice_bias, "", "mlp.gate.e_score_correction_bias"},
    {Role::expert_gate, "", "mlp.experts.#.gate_proj"},
    {Role::expert_up, "", "mlp.experts.#.up_proj"},
    {Role::expert_down, "", "mlp.experts.#.down_proj"},
    {Role::shared_gate, "", "mlp.shared_experts.gate_proj"},
    {Role::shared_up, "", "mlp.shared_experts.up_proj"},
    {Role::shared_down, "", "mlp.shared_experts.down_proj"},
};

template <std::size_t N>
[[nodiscard]] constexpr std::string_view role_name(const RoleName (&names)[N], Role role,
                                                   std::string_view architecture) noexcept {
  for (const RoleName& n : names)
    if (n.role == role && (n.architecture == architecture || n.architecture.empty())) return n.name;
  return {};
}

}  // namespace detail

/// The tensor's name without ".weight" or ".bias"; '#' stands where an expert's number goes. Empty: files of that kind have no
/// such tensor.
[[nodiscard]] inline std::string tensor_name(const Naming& naming, Role role, std::size_t layer) {
  const bool gguf = naming.style == NameStyle::gguf;
  const std::string_view name = gguf ? detail::role_name(detail::gguf_names, role, naming.architecture)
                                     : detail::role_name(detail::hugging_face_names, role, naming.architecture);
  if (name.empty() || role <= Role::head) return std::string(name);
  if (gguf) return concat("blk.", layer, ".", name);
  return concat(naming.architecture == "dbrx" ? "transformer.blocks." : "model.layers.", layer, ".", name);
}

/// Whether a Hugging Face tensor is of no use: frequencies, which are computed, and what belongs to the `drafts` layers after the
/// model's own, which guess the tokens after the next one (multi-token prediction: arXiv:2412.19437, section 2.2).
[[nodiscard]] inline bool is_left_alone(std::string_view tensor, std::size_t layers, std::size_t drafts) {
  for (std::size_t i = 0; i < drafts; ++i)
    if (tensor.starts_with(concat("model.layers.", layers + i, "."))) return true;
  return tensor.find("rotary_emb.inv_freq") != std::string_view::npos;
}

}  // namespace nihao
