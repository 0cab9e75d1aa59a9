// Well-known models by their shape, without weights: what their config files say, as numbers.
#pragma once

#include "shape.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nihao {

/// A model that people speak of by name. None has its embedding as its head.
struct Preset {
  std::string_view name;
  Config config;
  bool announced = false;  ///< what was said of it before it came: its config is not known, and `config` is empty
  std::string_view source;
  std::string_view note = {};  ///< of what is announced
};

namespace detail {

struct PresetSizes {
  std::uint32_t layers, d_model, heads, kv_heads, head_dim, d_ff, vocab, context;
};
inline Config preset(std::string_view architecture, const PresetSizes& s) {
  Config c;
  c.architecture = architecture;
  c.layers.resize(s.layers);
  c.d_model = s.d_model, c.heads = s.heads, c.kv_heads = s.kv_heads, c.head_dim = s.head_dim;
  c.d_ff = s.d_ff, c.vocab = s.vocab, c.context = s.context;
  c.ropes.emplace_back();
  c.attention_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(s.head_dim)));
  return c;
}
struct PresetExperts {
  std::uint32_t experts, chosen, width, shared = 0;
};
/// Layers from `first` on, each `every`th of them, have experts; in families of one kind of layer `first` is 0 and `every` 1.
inline Config preset(std::string_view architecture, const PresetSizes& s, const PresetExperts& e, std::uint32_t first = 0,
                     std::uint32_t every = 1) {
  Config c = preset(architecture, s);
  c.router.experts = e.experts, c.router.chosen = e.chosen;
  c.expert_ff = e.width, c.shared_ff = e.shared;
  if (first > 0 || every > 1)
    for (std::uint32_t i = first; i < s.layers; ++i) c.layers[i].kind = (i + 1) % every == 0 ? 1 : 0;
  return c;
}
inline Config with_latents(Config c, std::uint32_t q_rank, std::uint32_t kv_rank, std::uint32_t nope, std::uint32_t rope,
                           std::uint32_t v) {
  c.mla.q_rank = q_rank, c.mla.kv_rank = kv_rank, c.mla.nope = nope, c.mla.rope = rope;
  c.head_dim = nope + rope, c.value_dim = v, c.rotated = rope;
  return c;
}
inline Config with_biases(Config c) {
  c.qkv_bias = c.o_bias = c.ffn_bias = c.router_bias = true;
  return c;
}
inline Config with_router(Config c, std::uint32_t groups, std::uint32_t kept, float scale, bool normalize, bool sigmoid) {
  c.router.groups = groups, c.router.groups_kept = kept, c.router.scale = scale;
  c.router.normalize = normalize, c.router.sigmoid = sigmoid;
  return c;
}

}  // namespace detail

/// All presets, families side by side.
[[nodiscard]] inline std::vector<Preset> presets() {
  using detail::preset;
  std::vector<Preset> all;
  const auto add = [&](std::string_view name, Config config, std::string_view source) {
    all.push_back({name, std::move(config), false, source});
  };
  constexpr std::string_view llama3 = "arXiv:2407.21783", deepseek2 = "arXiv:2405.04434", deepseek3 = "arXiv:2412.19437",
                             qwen3 = "arXiv:2505.09388", oss = "arXiv:2508.10925", llama4 = "Meta, April 2025";
  add("llama-3-8b", preset("llama", {32, 4096, 32, 8, 128, 14336, 128256, 8192}), llama3);
  add("llama-3-70b", preset("llama", {80, 8192, 64, 8, 128, 28672, 128256, 8192}), llama3);
  add("llama-3.1-405b", preset("llama", {126, 16384, 128, 8, 128, 53248, 128256, 131072}), llama3);
  Config mixtral = preset("mixtral", {32, 4096, 32, 8, 128, 14336, 32000, 32768}, {8, 2, 14336});
  mixtral.router.normalize = true;
  add("mixtral-8x7b", mixtral, "arXiv:2401.04088");
  Config dbrx = preset("dbrx", {40, 6144, 48, 8, 128, 10752, 100352, 32768}, {16, 4, 10752});
  dbrx.router.normalize = true;
  add("dbrx", dbrx, "Databricks, March 2024");
  Config phimoe = preset("phimoe", {32, 4096, 32, 8, 128, 6400, 32064, 131072}, {16, 2, 6400});
  phimoe.qkv_bias = phimoe.o_bias = phimoe.norm_bias = phimoe.head_bias = true;
  add("phi-3.5-moe", phimoe, "arXiv:2404.14219");
  add("deepseek-v2",
      detail::with_router(detail::with_latents(preset("deepseek_v2", {60, 5120, 128, 128, 192, 12288, 102400, 163840},
                                                      {160, 6, 1536, 2 * 1536}, 1),
                                               1536, 512, 128, 64, 128),
                          8, 3, 16.0f, false, false),
      deepseek2);
  add("deepseek-v3",
      detail::with_router(
          detail::with_latents(preset("deepseek_v3", {61, 7168, 128, 128, 192, 18432, 129280, 163840}, {256, 8, 2048, 2048}, 3),
                               1536, 512, 128, 64, 128),
          8, 4, 2.5f, true, true),
      deepseek3);
  add("llama-4-scout", preset("llama4", {48, 5120, 40, 8, 128, 16384, 202048, 10485760}, {16, 1, 8192, 8192}), llama4);
  add("llama-4-maverick", preset("llama4", {48, 5120, 40, 8, 128, 16384, 202048, 1048576}, {128, 1, 8192, 8192}, 0, 2), llama4);
  all.push_back({"llama-4-behemoth", {}, true, llama4, "288 billion active parameters, 16 experts, nearly two trillion in all"});
  Config small = preset("qwen3_moe", {48, 2048, 32, 4, 128, 6144, 151936, 40960}, {128, 8, 768});
  Config large = preset("qwen3_moe", {94, 4096, 64, 4, 128, 12288, 151936, 40960}, {128, 8, 1536});
  for (Config* qwen : {&small, &large}) {
    qwen->router.normalize = true;
    for (LayerConfig& layer : qwen->layers) layer.kind = 1;
  }
  add("qwen3-30b-a3b", small, qwen3);
  add("qwen3-235b-a22b", large, qwen3);
  add("gpt-oss-20b", detail::with_biases(preset("gpt_oss", {24, 2880, 64, 8, 64, 2880, 201088, 131072}, {32, 4, 2880})), oss);
  add("gpt-oss-120b", detail::with_biases(preset("gpt_oss", {36, 2880, 64, 8, 64, 2880, 201088, 131072}, {128, 4, 2880})), oss);
  return all;
}

/// The preset of that name, or nothing.
[[nodiscard]] inline std::optional<Preset> find_preset(std::string_view name) {
  for (Preset& p : presets())
    if (p.name == name) return std::move(p);
  return std::nullopt;
}

}  // namespace nihao
