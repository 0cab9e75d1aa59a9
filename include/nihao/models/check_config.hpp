// What must hold for every Config, whatever file it was read from.
#pragma once

#include "../base/error.hpp"
#include "../base/str.hpp"
#include "../layers/config.hpp"

#include <cmath>

namespace nihao {

namespace detail {
/// That `name`, which the file has at `place`, is the `name_of` none of `families`.
template <class Family, std::size_t N>
[[nodiscard]] Error no_such_family(std::string_view name, const Family (&families)[N], std::string_view Family::* name_of,
                                   std::string_view place) {
  std::string known;
  for (const Family& f : families) known += concat(known.empty() ? "" : ", ", f.*name_of);
  return {ErrorCode::unsupported, concat("\"", printable(name), "\" is none of: ", known), place};
}
}  // namespace detail

/// Checks that sizes make sense together, whatever file they are from: kernels rely on it. Errors: malformed, unsupported.
[[nodiscard]] inline Expected<void> check_config(const Config& c) {
  constexpr std::uint32_t most = 1u << 24;
  const struct {
    std::string_view name;
    std::uint64_t value;
  } sizes[] = {{"the vocabulary", c.vocab},
               {"d_model", c.d_model},
               {"the number of heads", c.heads},
               {"the number of kv heads", c.kv_heads},
               {"head_dim", c.head_dim},
               {"d_ff", c.d_ff},
               {"the number of layers", c.layers.size()}};
  if (c.draft_layers > 64) return Error{ErrorCode::malformed, concat(c.draft_layers, " layers that guess further tokens")};
  if (c.context == 0) return Error{ErrorCode::malformed, "the context length is 0"};
  for (const auto& size : sizes)
    if (size.value == 0 || size.value > most) return Error{ErrorCode::malformed, concat(size.name, " is ", size.value)};
  if (c.heads % c.kv_heads != 0)
    return Error{ErrorCode::malformed, concat(c.heads, " heads are not a multiple of ", c.kv_heads, " kv heads")};
  if (c.head_dim % 2 != 0 || c.head_dim > 1024)
    return Error{ErrorCode::unsupported, concat("head_dim ", c.head_dim, " is not an even number up to 1024")};
  if (std::uint64_t{c.heads} * c.head_dim > most)
    return Error{ErrorCode::malformed, concat(c.heads, " heads of ", c.head_dim, " are too wide")};
  if (!(c.norm_eps >= 0) || !std::isfinite(c.norm_eps) || !std::isfinite(c.attention_scale))
    return Error{ErrorCode::malformed, "the norm's eps or the attention's scale is not a number"};
  if (c.value_width() > 1024 || c.rotated_width() % 2 != 0 || c.rotated_width() > c.head_dim)
    return Error{ErrorCode::malformed, concat("values of ", c.value_width(), " or ", c.rotated_width(), " of ", c.head_dim,
                                              " values that turn make no sense")};
  for (const float f : {c.attention_softcap, c.logit_softcap, c.embedding_scale, c.residual_scale, c.logit_scale, c.qkv_clip,
                        c.temperature_scale, c.gate_limit})
    if (!std::isfinite(f)) return Error{ErrorCode::malformed, "a factor or a limit is not a number"};
  for (std::size_t i = 0; i < c.layers.size(); ++i)
    if (c.layers[i].rope != no_rope && c.layers[i].rope >= c.ropes.size())
      return Error{ErrorCode::malformed, concat("layer ", i, " turns by embedding ", c.layers[i].rope, " of ", c.ropes.size())};
  if (c.router.experts > 0) {
    const RouterShape& r = c.router;
    if (r.experts > most_experts || r.chosen == 0 || r.chosen > r.experts || c.expert_ff == 0 || c.expert_ff > most ||
        c.shared_ff > most)
      return Error{ErrorCode::malformed,
                   concat(r.chosen, " of ", r.experts, " experts of ", c.expert_ff, " (at most ", most_experts, " here)")};
    if (r.groups == 0 || r.experts % r.groups != 0 || r.groups_kept == 0 || r.groups_kept > r.groups ||
        r.experts / r.groups * r.groups_kept < r.chosen)
      return Error{ErrorCode::malformed,
                   concat(r.chosen, " of ", r.experts, " experts in ", r.groups_kept, " of ", r.groups, " groups")};
    if (!std::isfinite(r.scale) || !(r.jitter >= 0)) return Error{ErrorCode::malformed, "the router's scale is not a number"};
  }
  if (c.mla.kv_rank > 0) {
    const MlaConfig& m = c.mla;
    if (m.q_rank > most || m.kv_rank > most || m.nope == 0 || m.rope == 0 || m.nope + m.rope != c.head_dim)
      return Error{ErrorCode::malformed,
                   concat("latents of ", m.q_rank, " and ", m.kv_rank, " with heads of ", m.nope, " + ", m.rope)};
  }
  for (const RopeParams& r : c.ropes) {
    if (!(r.base > 0) || !std::isfinite(r.base) || !(r.factor > 0) || !std::isfinite(r.factor))
      return Error{ErrorCode::malformed, "the rotary embedding's base and factor must be positive numbers"};
    const bool needs_context =
        r.scaling == RopeScaling::yarn || r.scaling == RopeScaling::llama3 || r.scaling == RopeScaling::dynamic;
    if (needs_context && !(r.original_context > 0 && std::isfinite(r.original_context)))
      return Error{ErrorCode::malformed, "the rotary embedding's scaling needs the original context length"};
    if (r.scaling == RopeScaling::dynamic && (r.factor < 1 || c.rotated_width() < 4))
      return Error{ErrorCode::malformed, concat("dynamic scaling by ", r.factor, " of ", c.rotated_width(), " values")};
    if (r.scaling == RopeScaling::llama3 && !(r.low_freq > 0 && r.high_freq > r.low_freq))
      return Error{ErrorCode::malformed, "llama3 scaling needs a low_freq_factor above 0 and a high_freq_factor above that"};
    if (r.scaling == RopeScaling::yarn && !(r.base > 1 && r.beta_slow > 0 && r.beta_fast >= r.beta_slow))
      return Error{ErrorCode::malformed, "yarn needs a base above 1, a beta_slow above 0, and a beta_fast at least that"};
    for (const auto* factors : {&r.factors, &r.far_factors}) {
      if (!factors->empty() && factors->size() != c.rotated_width() / 2)
        return Error{ErrorCode::mismatch,
                     concat(factors->size(), " factors of the rotary embedding for ", c.rotated_width() / 2, " pairs")};
      for (const float f : *factors)
        if (!(f > 0)) return Error{ErrorCode::malformed, "a factor of the rotary embedding is not positive"};
    }
    if (r.scaling == RopeScaling::longrope && !(r.original_context > 1 && r.attention_factor > 0))
      return Error{ErrorCode::malformed, "longrope needs an original context above 1, and a positive attention factor"};
    if (!(r.attention_factor >= 0) || !std::isfinite(r.attention_factor))
      return Error{ErrorCode::malformed, concat("an attention factor of ", r.attention_factor)};
  }
  return {};
}

}  // namespace nihao
