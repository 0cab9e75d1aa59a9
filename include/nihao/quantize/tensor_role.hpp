// From a GGUF tensor's name to what it is in a model, and whether it is one that is quantized at all.
#pragma once

#include "../layers/names.hpp"

#include <charconv>
#include <optional>

namespace nihao {

/// What a name says. Names of architectures that the library does not know may have a layer and no role.
struct TensorRole {
  std::optional<Role> role;
  std::optional<std::uint32_t> layer;
};

/// "blk.12.attn_v.weight" is the value matrix of layer 12. The suffix does not matter.
[[nodiscard]] inline TensorRole role_of_gguf_name(std::string_view name, std::string_view architecture) noexcept {
  TensorRole result;
  if (name.starts_with("blk.")) {
    std::uint32_t layer = 0;
    const auto [end, problem] = std::from_chars(name.data() + 4, name.data() + name.size(), layer);
    if (problem == std::errc{} && end != name.data() + name.size() && *end == '.') {
      result.layer = layer;
      name.remove_prefix(static_cast<std::size_t>(end - name.data()) + 1);
    }
  }
  name = name.substr(0, name.rfind('.'));
  for (const detail::RoleName& known : detail::gguf_names)
    if (known.name == name && detail::role_name(detail::gguf_names, known.role, architecture) == name &&
        (known.role <= Role::head) == !result.layer) {
      result.role = known.role;
      break;
    }
  return result;
}

/// Whether a tensor is a matrix (or a stack of them) that may lose bits. Not: norms, biases and whatever has one axis; routers,
/// whose small errors send tokens to other experts; tables of positions and frequencies; small convolutions.
[[nodiscard]] inline bool may_be_quantized(std::string_view name, std::size_t rank) noexcept {
  if (rank < 2 || !name.ends_with("weight") || name.ends_with("_norm.weight")) return false;
  for (const std::string_view kept : {"ffn_gate_inp", "position_embd", "token_types", "rope_f", "ssm_conv1d", "shortconv.conv",
                                      "time_mix_", "attn_rel_b", "altup", "laurel", "per_layer_model_proj"})
    if (name.find(kept) != std::string_view::npos) return false;
  return true;
}

}  // namespace nihao
