// Well-known shapes: what their papers and model cards say of them comes out of the numbers.
#include "nihao/models/presets.hpp"
#include "golden_models.hpp"
#include "nihao/models/load_hf.hpp"

using namespace nihao;
using namespace nihao::test;

TEST_CASE("parameters of the presets are those that are published") {
  const struct {
    std::string_view name;
    double total, active;  // billions
  } published[] = {
      {"llama-3-8b", 8.03, 8.03}, {"llama-3-70b", 70.6, 70.6},   {"llama-3.1-405b", 405.9, 405.9}, {"mixtral-8x7b", 46.7, 12.9},
      {"dbrx", 132, 36},          {"phi-3.5-moe", 41.9, 6.6},    {"deepseek-v2", 236, 21},         {"deepseek-v3", 671, 37},
      {"llama-4-scout", 109, 17}, {"llama-4-maverick", 400, 17}, {"qwen3-30b-a3b", 30.5, 3.3},     {"qwen3-235b-a22b", 235, 22},
      {"gpt-oss-20b", 20.9, 3.6}, {"gpt-oss-120b", 116.8, 5.1}};
  for (const auto& p : published) {
    CAPTURE(p.name);
    const auto preset = find_preset(p.name);
    REQUIRE(preset.has_value());
    const ParameterCount n = count_parameters(preset->config, false);
    CHECK(static_cast<double>(n.total) / 1e9 == doctest::Approx(p.total).epsilon(0.02));
    // Some count the embedding among the active ones, some do not.
    const double embedding = static_cast<double>(preset->config.vocab) * preset->config.d_model / 1e9;
    const double active = static_cast<double>(n.active) / 1e9;
    CHECK(active >= p.active * 0.97 - embedding);
    CHECK(active - embedding <= p.active * 1.03);
  }
  CHECK(find_preset("llama-4-behemoth")->announced);
  CHECK(!find_preset("gpt-5").has_value());
}

TEST_CASE("latents keep 70,272 bytes of a token of DeepSeek-V3 in bf16, not the 4,997,120 of expanded keys and values") {
  Config c = find_preset("deepseek-v3")->config;
  CHECK(cache_bytes_per_token(c, KvType::bf16) == 70272);
  c.mla.mode = MlaMode::merged;
  CHECK(cache_bytes_per_token(c, KvType::bf16) == 70272);
  c.mla.mode = MlaMode::naive;
  CHECK(cache_bytes_per_token(c, KvType::bf16) == 4997120);
  CHECK(cache_bytes_per_token(find_preset("llama-3-8b")->config, KvType::f16) == 131072);
}

TEST_CASE("what a shape says is what a loaded model has: parameters, and the bytes of its cache") {
  for (const GoldenCase& one : golden_cases()) {
    const std::string& name = one.name;
    CAPTURE(name);
    for (const MlaMode mla : mla_modes(name)) {
      const AnyModel model = require(load_hf(one.folder.string(), {.mla = mla}));
      const Config& c = model.config();
      const auto context = require(model.context({.positions = 64}));
      std::uint64_t bytes = 0;
      for (std::size_t layer = 0; layer < c.layers.size(); ++layer) bytes += context->cache().layout(layer).block_bytes();
      CHECK(cache_bytes_per_token(c, KvType::f16) == bytes / kv_block);
      std::uint64_t weights = 0;
      bool tied = true;
      for (const TensorInfo& t : model.tensors().tensors()) {
        weights += t.elements();
        tied = tied && t.name != "lm_head.weight";
      }
      // Norms of heads and latents, sinks and choice biases are not counted: a few in ten thousand of real models.
      CHECK(static_cast<double>(count_parameters(c, tied).total) == doctest::Approx(static_cast<double>(weights)).epsilon(0.02));
    }
  }
}
