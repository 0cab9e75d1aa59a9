#include "inspect_presets.hpp"

#include <nihao/models/presets.hpp>

#include <fmt/core.h>

namespace nihao::program {

namespace {

// How a family chooses experts, in words.
std::string router_of(const Config& c) {
  if (c.router.experts == 0) return "";
  std::string words;
  if (c.architecture == "llama4") words = "sigmoid of the best, on its input";
  else if (c.architecture == "gpt_oss") words = "best, then softmax";
  else if (c.architecture == "phimoe") words = "sparse mixer";
  else words = c.router.sigmoid ? "sigmoid + bias, then best" : "softmax, then best";
  if (c.router.groups_kept < c.router.groups) words += fmt::format(", {} of {} groups", c.router.groups_kept, c.router.groups);
  if (c.router.normalize) words += ", normalised";
  if (c.router.scale != 1) words += fmt::format(", x {:g}", c.router.scale);
  return words;
}
std::string attention_of(const Config& c) {
  if (c.mla.kv_rank > 0) return fmt::format("MLA, latent {} + {}", c.mla.kv_rank, c.mla.rope);
  return fmt::format("GQA, {} / {} heads of {}", c.heads, c.kv_heads, c.head_dim);
}
std::size_t expert_layers(const Config& c) {
  std::size_t n = 0;
  for (const LayerConfig& layer : c.layers) n += has_experts(c, layer) ? 1 : 0;
  return n;
}
// "671.0 B"
std::string in_billions(std::uint64_t n) { return fmt::format("{:.1f} B", static_cast<double>(n) / 1e9); }

bool is_of(const Preset& p, std::string_view kind) {
  const Config& c = p.config;
  return kind == "all" || (kind == "moe" && (c.router.experts > 0 || p.announced)) ||
         (kind == "dense" && c.router.experts == 0 && !p.announced) || (kind == "mla" && c.mla.kv_rank > 0);
}

Json to_json(const Preset& p, KvType kv) {
  if (p.announced) return {{"name", p.name}, {"announced", true}, {"note", p.note}, {"source", p.source}};
  const Config& c = p.config;
  const ParameterCount n = count_parameters(c, false);
  Json json = {{"name", p.name},
               {"architecture", c.architecture},
               {"announced", false},
               {"layers", c.layers.size()},
               {"d_model", c.d_model},
               {"heads", c.heads},
               {"kv_heads", c.kv_heads},
               {"head_dim", c.head_dim},
               {"d_ff", c.d_ff},
               {"vocab", c.vocab},
               {"context", c.context},
               {"attention", attention_of(c)},
               {"parameters", n.total},
               {"active_parameters", n.active},
               {"kv_bytes_per_token", cache_bytes_per_token(c, kv)},
               {"source", p.source}};
  if (c.router.experts > 0)
    json["moe"] = {{"experts", c.router.experts}, {"chosen", c.router.chosen},  {"expert_ff", c.expert_ff},
                   {"shared_ff", c.shared_ff},    {"layers", expert_layers(c)}, {"router", router_of(c)}};
  if (c.mla.kv_rank > 0) {
    Config naive = c;
    naive.mla.mode = MlaMode::naive;
    json["mla"] = {{"q_rank", c.mla.q_rank},
                   {"kv_rank", c.mla.kv_rank},
                   {"rope", c.mla.rope},
                   {"kv_bytes_per_token_naive", cache_bytes_per_token(naive, kv)}};
  }
  return json;
}

}  // namespace

std::vector<std::string> family_kinds() { return {"moe", "dense", "mla", "all"}; }

int inspect_preset(std::string_view name, KvType kv, bool json) {
  const auto preset = find_preset(name);
  if (!preset) {
    std::string names;
    for (const Preset& p : presets()) names += concat(names.empty() ? "" : ", ", p.name);
    throw UsageError(concat("--preset ", printable(name), ": there are ", names));
  }
  const Json shape = to_json(*preset, kv);
  if (json) return print_json(shape), 0;
  fmt::print("{} ({})\n", preset->name, preset->source);
  if (preset->announced) return fmt::print("  announced, not released: {}\n", preset->note), 0;
  const Config& c = preset->config;
  const ParameterCount n = count_parameters(c, false);
  fmt::print("  {} layers of width {}, {} tokens, context {}\n  attention: {}\n", c.layers.size(), c.d_model, c.vocab, c.context,
             attention_of(c));
  if (c.router.experts == 0) fmt::print("  feed-forward: {}\n", c.d_ff);
  else
    fmt::print("  experts: {} of {} of width {} in {} of {} layers{}; {}\n", c.router.chosen, c.router.experts, c.expert_ff,
               expert_layers(c), c.layers.size(), c.shared_ff > 0 ? fmt::format(", and a shared one of {}", c.shared_ff) : "",
               router_of(c));
  fmt::print("  parameters: {}, of which {} work on a token\n  keys and values in {}: {} bytes a token\n", in_billions(n.total),
             in_billions(n.active), to_string(kv), cache_bytes_per_token(c, kv));
  if (shape.contains("mla"))
    fmt::print("  (expanded to all heads it would be {})\n", shape["mla"]["kv_bytes_per_token_naive"].get<std::uint64_t>());
  return 0;
}

int inspect_families(std::string_view kind, KvType kv, bool json) {
  if (json) {
    Json list(Json::value_t::array);
    for (const Preset& p : presets())
      if (is_of(p, kind)) list.push_back(to_json(p, kv));
    print_json(list);
    return 0;
  }
  fmt::print("{:<18} {:>7} {:>6} {:>6} {:>9} {:>9} {:>9}  {:<28} {}\n", "", "experts", "top-k", "shared", "total", "active",
             "KV bytes", "attention", "router");
  for (const Preset& p : presets()) {
    if (!is_of(p, kind)) continue;
    if (p.announced) {
      fmt::print("{:<18} announced, not released: {}\n", p.name, p.note);
      continue;
    }
    const Config& c = p.config;
    const ParameterCount n = count_parameters(c, false);
    const auto or_none = [](std::uint32_t value) { return value > 0 ? fmt::format("{}", value) : std::string("-"); };
    fmt::print("{:<18} {:>7} {:>6} {:>6} {:>9} {:>9} {:>9}  {:<28} {}\n", p.name, or_none(c.router.experts),
               or_none(c.router.chosen), or_none(c.shared_ff), in_billions(n.total), in_billions(n.active),
               cache_bytes_per_token(c, kv), attention_of(c), router_of(c));
  }
  fmt::print(
      "shared: width of the shared expert. active: what works on a token, the embedding's whole matrix included. KV bytes: of "
      "one token, in {}, with latents as they are.\n",
      to_string(kv));
  return 0;
}

}  // namespace nihao::program
