#include "nihao/quantize/recipe.hpp"

#include <doctest/doctest.h>
#include <vector>

using namespace nihao;

static TensorRole of(const char* name, const char* architecture = "llama") { return role_of_gguf_name(name, architecture); }

TEST_CASE("names say what a tensor is") {
  CHECK(of("blk.12.attn_v.weight").role == Role::v);
  CHECK(of("blk.12.attn_v.weight").layer == 12u);
  CHECK(of("output.weight").role == Role::head);
  CHECK_FALSE(of("output.weight").layer);
  CHECK(of("blk.3.ffn_up.weight").role == Role::up);
  CHECK(of("blk.3.ffn_up.weight", "phi3").role == Role::gate_up);
  CHECK(of("blk.0.ffn_down_exps.weight", "gpt-oss").role == Role::expert_down);
  CHECK(of("blk.0.post_attention_norm.weight", "gpt-oss").role == Role::ffn_norm);
  CHECK_FALSE(of("blk.0.ssm_in.weight", "mamba").role);
  CHECK_FALSE(of("blk.output.weight").role);
  CHECK_FALSE(of("blk.0.output.weight").role);
  CHECK_FALSE(of("").role);
}

TEST_CASE("norms, biases and routers keep their floats") {
  CHECK(may_be_quantized("blk.0.attn_q.weight", 2));
  CHECK(may_be_quantized("blk.0.ffn_down_exps.weight", 3));
  CHECK_FALSE(may_be_quantized("blk.0.attn_norm.weight", 1));
  CHECK_FALSE(may_be_quantized("blk.0.attn_q_norm.weight", 2));
  CHECK_FALSE(may_be_quantized("blk.0.attn_q.bias", 1));
  CHECK_FALSE(may_be_quantized("blk.0.ffn_gate_inp.weight", 2));
  CHECK_FALSE(may_be_quantized("rope_freqs.weight", 1));
}

// The layers that llama-quantize gives Q6_K of a model with 24 layers, read from a file that it wrote (Qwen2.5-Coder-0.5B).
TEST_CASE("Q4_K_M keeps values and down in Q6_K in the layers that llama-quantize chooses") {
  const Recipe& mix = *recipe_from_name("Q4_K_M");
  const RecipeModel model{.layers = 24, .heads = 14, .kv_heads = 2, .tied = true};
  std::vector<std::uint32_t> more;
  for (std::uint32_t i = 0; i < 24; ++i) {
    CHECK(mix.format({Role::v, i}, model) == mix.format({Role::down, i}, model));
    CHECK(mix.format({Role::q, i}, model) == FormatId::Q4_K);
    CHECK(mix.format({Role::up, i}, model) == FormatId::Q4_K);
    if (mix.format({Role::v, i}, model) == FormatId::Q6_K) more.push_back(i);
  }
  CHECK(more == std::vector<std::uint32_t>{0, 1, 2, 5, 8, 11, 14, 17, 20, 21, 22, 23});
  CHECK(mix.format({Role::head, {}}, model) == FormatId::Q6_K);
  CHECK(mix.format({Role::embedding, {}}, model) == FormatId::Q6_K);
  CHECK(mix.format({Role::embedding, {}}, {.layers = 24}) == FormatId::Q4_K);
  CHECK(mix.format({{}, {}}, model) == FormatId::Q4_K);
}

TEST_CASE("what a mix does may depend on the model") {
  const RecipeModel mixtral{.layers = 32, .heads = 32, .kv_heads = 8, .experts = 8};
  CHECK(recipe_from_name("Q4_K_M")->format({Role::k, 7u}, mixtral) == FormatId::Q8_0);
  CHECK(recipe_from_name("Q4_K_M")->format({Role::o, 7u}, mixtral) == FormatId::Q5_K);
  const RecipeModel large{.layers = 80, .heads = 64, .kv_heads = 8};
  CHECK(recipe_from_name("Q4_K_M")->format({Role::v, 10u}, large) == FormatId::Q5_K);
  RecipeModel grouped{.layers = 32, .heads = 32, .kv_heads = 8};
  CHECK(recipe_from_name("IQ4_XS")->format({Role::v, 9u}, grouped) == FormatId::Q5_K);
  CHECK(recipe_from_name("IQ4_XS")->format({Role::down, 0u}, grouped) == FormatId::Q5_K);
  grouped.importance = true;
  CHECK(recipe_from_name("IQ4_XS")->format({Role::down, 0u}, grouped) == FormatId::IQ4_XS);
  CHECK(recipe_from_name("MXFP4")->format({Role::expert_up, 0u}, mixtral) == FormatId::MXFP4);
  CHECK(recipe_from_name("MXFP4")->format({Role::q, 0u}, mixtral) == FormatId::Q8_0);
}

TEST_CASE("every exception of a mix says why, and its formats can be written") {
  for (const Recipe& mix : recipes) {
    CHECK(recipe_from_name(mix.name) == &mix);
    for (const RecipeRule& rule : mix.rules) CHECK_FALSE(rule.why.empty());
  }
  CHECK(recipe_from_name("Q4_K_X") == nullptr);
}

TEST_CASE("rows that are not whole blocks fall back to formats of 32") {
  CHECK(fitting_format(FormatId::Q4_K, 512) == FormatId::Q4_K);
  CHECK(fitting_format(FormatId::Q4_K, 576) == FormatId::Q5_0);
  CHECK(fitting_format(FormatId::Q5_K, 576) == FormatId::Q5_1);
  CHECK(fitting_format(FormatId::Q6_K, 576) == FormatId::Q8_0);
  CHECK(fitting_format(FormatId::IQ4_XS, 576) == FormatId::IQ4_NL);
  CHECK(fitting_format(FormatId::Q4_K, 100) == FormatId::F16);
  CHECK(fitting_format(FormatId::Q8_0, 100) == FormatId::F16);
}
