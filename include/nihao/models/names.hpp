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
  o,
  q_norm,
  k_norm,
  gate,
  up,
  down,  // one a layer
};

enum class NameStyle : std::uint8_t { gguf, hugging_face };

/// The tensor's name without ".weight" or ".bias". `norms_after`: whether the family normalises what its layers return; Hugging
/// Face calls the norm before the feed-forward by another name then.
[[nodiscard]] inline std::string tensor_name(NameStyle style, Role role, std::size_t layer, bool norms_after) {
  struct Names {
    std::string_view gguf, hugging_face;
  };
  const Names names = [&]() -> Names {
    switch (role) {
      case Role::embedding: return {"token_embd", "model.embed_tokens"};
      case Role::final_norm: return {"output_norm", "model.norm"};
      case Role::head: return {"output", "lm_head"};
      case Role::attn_norm: return {"attn_norm", "input_layernorm"};
      case Role::attn_post_norm: return {"post_attention_norm", "post_attention_layernorm"};
      case Role::ffn_norm: return {"ffn_norm", norms_after ? "pre_feedforward_layernorm" : "post_attention_layernorm"};
      case Role::ffn_post_norm: return {"post_ffw_norm", "post_feedforward_layernorm"};
      case Role::q: return {"attn_q", "self_attn.q_proj"};
      case Role::k: return {"attn_k", "self_attn.k_proj"};
      case Role::v: return {"attn_v", "self_attn.v_proj"};
      case Role::o: return {"attn_output", "self_attn.o_proj"};
      case Role::q_norm: return {"attn_q_norm", "self_attn.q_norm"};
      case Role::k_norm: return {"attn_k_norm", "self_attn.k_norm"};
      case Role::gate: return {"ffn_gate", "mlp.gate_proj"};
      case Role::up: return {"ffn_up", "mlp.up_proj"};
      case Role::down: return {"ffn_down", "mlp.down_proj"};
    }
    return {};
  }();
  if (role <= Role::head) return std::string(style == NameStyle::gguf ? names.gguf : names.hugging_face);
  return style == NameStyle::gguf ? concat("blk.", layer, ".", names.gguf)
                                  : concat("model.layers.", layer, ".", names.hugging_face);
}

}  // namespace nihao
