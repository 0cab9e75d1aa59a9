#include "nihao/models/hf_config.hpp"

#include <doctest/doctest.h>
#include <string>

using namespace nihao;

namespace {

Json llama() {
  return *parse_json(R"({"model_type": "llama", "hidden_act": "silu", "hidden_size": 64, "intermediate_size": 128,
    "max_position_embeddings": 512, "num_attention_heads": 4, "num_hidden_layers": 3, "num_key_value_heads": 2,
    "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "vocab_size": 256, "attention_bias": false, "rope_scaling": null})");
}
Json family(const std::string& name) {
  Json json = llama();
  json["model_type"] = name;
  return json;
}
Json dbrx() {
  return *parse_json(R"({"model_type": "dbrx", "d_model": 64, "n_heads": 4, "n_layers": 2, "max_seq_len": 512, "vocab_size": 256,
    "attn_config": {"clip_qkv": 8, "kv_n_heads": 2, "rope_theta": 500000},
    "ffn_config": {"ffn_hidden_size": 24, "moe_num_experts": 8, "moe_top_k": 3}})");
}
Json deepseek(const std::string& name) {
  Json json = family(name);
  json.update(*parse_json(R"({"q_lora_rank": null, "kv_lora_rank": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8,
    "v_head_dim": 16, "n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "n_group": 2, "topk_group": 1,
    "routed_scaling_factor": 2.5})"));
  return json;
}
Json gpt_oss() {
  Json json = family("gpt_oss");
  json.erase("attention_bias");
  json.erase("rope_theta");
  json.update(
      *parse_json(R"({"num_local_experts": 8, "num_experts_per_tok": 2, "rope_scaling": {"rope_type": "yarn", "factor": 32.0,
    "original_max_position_embeddings": 64, "truncate": false}})"));
  return json;
}
Json gemma() { return *parse_json(R"({"model_type": "gemma3_text", "num_hidden_layers": 8})"); }

Json with(Json json, const std::string& key, const std::string& value) {
  json[key] = *parse_json(value);
  return json;
}

Config config(const Json& json) {
  auto result = config_from_hf(json);
  REQUIRE_MESSAGE(result.has_value(), (result ? "" : result.error().message()));
  return result->config;
}

std::vector<std::uint32_t> windows(const Json& json) {
  std::vector<std::uint32_t> result;
  for (const LayerConfig& layer : config(json).layers) result.push_back(layer.window);
  return result;
}

void refused(const Json& json, ErrorCode code, const std::string& where) {
  CAPTURE(json.dump());
  const auto result = config_from_hf(json);
  REQUIRE(!result);
  CHECK(to_string(result.error().code) == to_string(code));
  CHECK(result.error().where == where);
}

using Windows = std::vector<std::uint32_t>;

}  // namespace

TEST_CASE("a config.json says sizes, scales and the rope's base") {
  const Config c = config(llama());
  CHECK(c.architecture == "llama");
  CHECK(c.sizes() == Sizes{64, 3, 4, 2, 16, 128, 256});
  CHECK(c.context == 512);
  CHECK(c.norm_eps == 1e-5f);
  CHECK(c.attention_scale == 0.25f);
  CHECK(c.embedding_scale == 1.0f);
  CHECK(c.rope_style == RopeStyle::halves);
  REQUIRE(c.ropes.size() == 1);
  CHECK(c.ropes[0] == RopeParams{.base = 500000.0});
  CHECK(config(with(llama(), "head_dim", "32")).head_dim == 32);
  CHECK(config(with(llama(), "head_dim", "null")).head_dim == 16);
  CHECK(config(with(llama(), "num_key_value_heads", "null")).kv_heads == 4);
  CHECK_FALSE(config_from_hf(llama())->tied);
  CHECK(config_from_hf(with(llama(), "tie_word_embeddings", "true"))->tied);
  CHECK(config_from_hf(llama())->norm_offset == 0.0f);
}

TEST_CASE("gemma3_text fills in what its files leave out") {
  const auto hf = config_from_hf(gemma());
  REQUIRE(hf.has_value());
  const Config& c = hf->config;
  CHECK(c.sizes() == Sizes{2304, 8, 8, 4, 256, 9216, 262208});
  CHECK(c.attention_scale == 0.0625f);
  CHECK(c.embedding_scale == 48.0f);
  CHECK(c.norm_eps == 1e-6f);
  CHECK(hf->tied);
  CHECK(hf->norm_offset == 1.0f);
  REQUIRE(c.ropes.size() == 2);
  CHECK(c.ropes[0].base == 1e6);
  CHECK(c.ropes[1].base == 1e4);
  CHECK(windows(gemma()) == Windows{4096, 4096, 4096, 4096, 4096, 0, 4096, 4096});
  CHECK(c.layers[0].rope == 1);
  CHECK(c.layers[5].rope == 0);
}

TEST_CASE("each family's rule says which layers slide, and how far") {
  CHECK(windows(llama()) == Windows{0, 0, 0});

  CHECK(windows(with(family("mistral"), "sliding_window", "8")) == Windows{8, 8, 8});
  CHECK(windows(with(family("mistral"), "sliding_window", "null")) == Windows{0, 0, 0});
  CHECK(windows(family("mistral")) == Windows{4096, 4096, 4096});  // not stated: the family's default

  const Json qwen = with(family("qwen2"), "sliding_window", "32");
  CHECK(windows(qwen) == Windows{0, 0, 0});
  CHECK(windows(with(with(qwen, "use_sliding_window", "true"), "max_window_layers", "1")) == Windows{0, 32, 32});
  CHECK(windows(with(with(qwen, "use_sliding_window", "true"), "max_window_layers", "28")) == Windows{0, 0, 0});
  CHECK(windows(with(with(qwen, "use_sliding_window", "true"), "layer_types",
                     R"(["sliding_attention", "full_attention", "sliding_attention"])")) == Windows{32, 0, 32});

  // Of its experts' kind all layers do.
  const Json moe =
      with(with(with(with(family("qwen3_moe"), "num_experts", "4"), "num_experts_per_tok", "2"), "moe_intermediate_size", "24"),
           "max_window_layers", "28");
  CHECK(windows(with(with(moe, "sliding_window", "32"), "use_sliding_window", "true")) == Windows{32, 32, 32});
  CHECK(windows(with(with(moe, "sliding_window", "null"), "use_sliding_window", "true")) == Windows{0, 0, 0});
  CHECK(windows(with(moe, "sliding_window", "32")) == Windows{0, 0, 0});
  const Json smollm = with(with(family("smollm3"), "sliding_window", "8"), "no_rope_layer_interval", "2");
  CHECK(windows(smollm) == Windows{0, 0, 0});
  CHECK(windows(with(smollm, "use_sliding_window", "true")) == Windows{0, 8, 0});  // the layer without rope
  CHECK(config(smollm).layers[1].rope == no_rope);
  CHECK(config(smollm).layers[2].rope == 0);

  CHECK(windows(with(with(gemma(), "sliding_window", "8"), "sliding_window_pattern", "3")) == Windows{8, 8, 0, 8, 8, 0, 8, 8});
  CHECK(windows(with(with(gemma(), "num_hidden_layers", "2"), "layer_types", R"(["full_attention", "sliding_attention"])")) ==
        Windows{0, 4096});
}

TEST_CASE("a file that leaves out how it turns, or its biases, means its family's default") {
  const auto without_theta = [](const std::string& name) {
    Json json = family(name);
    json.erase("rope_theta");
    return config(json);
  };
  CHECK(without_theta("llama").ropes[0].base == 1e4);
  CHECK(without_theta("smollm3").ropes[0].base == 2e6);
  CHECK(without_theta("glm4").rotated == 64);
  CHECK(config(with(family("glm4"), "partial_rotary_factor", "0.25")).rotated == 32);
  CHECK(config(with(family("glm4"), "rope_parameters", R"({"rope_type": "default", "rope_theta": 500000.0,
      "partial_rotary_factor": 0.75})"))
            .rotated == 96);
  Json silent = family("glm4");
  silent.erase("attention_bias");
  CHECK(config(silent).qkv_bias);
  CHECK_FALSE(config(silent).o_bias);
  CHECK_FALSE(config(family("glm4")).qkv_bias);  // which says that it has none
}

TEST_CASE("both forms of rotary scaling are read alike") {
  const std::string llama3 =
      R"("factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192)";
  const RopeParams expected{
      .base = 500000.0, .scaling = RopeScaling::llama3, .factor = 8, .original_context = 8192, .low_freq = 1, .high_freq = 4};
  CHECK(config(with(llama(), "rope_scaling", "{\"rope_type\": \"llama3\", " + llama3 + "}")).ropes[0] == expected);
  Json five = with(llama(), "rope_parameters", "{\"rope_type\": \"llama3\", \"rope_theta\": 500000.0, " + llama3 + "}");
  CHECK(config(five).ropes[0] == expected);
  five.erase("rope_theta");
  CHECK(config(five).ropes[0] == expected);
  CHECK(config(with(llama(), "rope_parameters", R"({"rope_type": "default", "rope_theta": 500000.0})")).ropes[0].base ==
        500000.0);

  CHECK(config(with(llama(), "rope_scaling", R"({"type": "linear", "factor": 4})")).ropes[0] ==
        RopeParams{.base = 500000.0, .scaling = RopeScaling::linear, .factor = 4});

  const auto yarn = [](const std::string& more) {
    return config(with(llama(), "rope_scaling", R"({"type": "yarn")" + more + "}")).ropes[0];
  };
  const RopeParams plain = yarn(R"(, "factor": 4.0, "original_max_position_embeddings": 64)");
  CHECK(plain.scaling == RopeScaling::yarn);
  CHECK(plain.factor == 4);
  CHECK(plain.original_context == 64);
  CHECK(plain.beta_fast == 32);
  CHECK(plain.attention_factor == doctest::Approx(0.1 * std::log(4.0) + 1));
  CHECK(yarn(R"(, "original_max_position_embeddings": 64)").factor == 8);  // 512 / 64
  CHECK(yarn(R"(, "factor": 4.0)").original_context == 512);
  CHECK(yarn(R"(, "factor": 4.0, "attention_factor": 1.5)").attention_factor == 1.5);
  CHECK(yarn(R"(, "factor": 40.0, "mscale": 0.707, "mscale_all_dim": 1.0)").attention_factor ==
        doctest::Approx((0.0707 * std::log(40.0) + 1) / (0.1 * std::log(40.0) + 1)));

  CHECK(yarn(R"(, "factor": 8)").truncate);
  CHECK_FALSE(yarn(R"(, "factor": 8, "truncate": null)").truncate);

  CHECK(config(with(llama(), "rope_scaling", R"({"type": "dynamic", "factor": 2.0})")).ropes[0] ==
        RopeParams{.base = 500000.0, .scaling = RopeScaling::dynamic, .factor = 2, .original_context = 512});
  const std::string factors = R"("short_factor": [1, 1, 1, 1, 1, 1, 1, 1], "long_factor": [1, 2, 3, 4, 5, 6, 7, 8]})";
  const Json longrope = with(family("phi3"), "original_max_position_embeddings", "64");
  CHECK(config(with(longrope, "rope_scaling", R"({"type": "su", )" + factors)).ropes ==
        config(with(longrope, "rope_scaling", R"({"rope_type": "longrope", )" + factors)).ropes);

  // The original context may stand beside the object, and does so with more weight.
  for (const std::string& type : {std::string(R"({"type": "yarn", "factor": 8)"), "{\"rope_type\": \"llama3\", " + llama3}) {
    const Json inside = with(llama(), "rope_scaling", type + "}");
    CHECK(config(with(inside, "original_max_position_embeddings", "64")).ropes[0].original_context == 64);
  }

  // Gemma: the scaling is the global layers' alone, in both forms.
  const Config old_form = config(with(gemma(), "rope_scaling", R"({"rope_type": "linear", "factor": 8.0})"));
  const Config new_form = config(with(gemma(), "rope_parameters", R"({"full_attention": {"rope_type": "linear", "factor": 8.0,
      "rope_theta": 1000000.0}, "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}})"));
  CHECK(old_form.ropes == new_form.ropes);
  CHECK(old_form.ropes[0] == RopeParams{.base = 1e6, .scaling = RopeScaling::linear, .factor = 8});
  CHECK(old_form.ropes[1] == RopeParams{.base = 1e4});
}

TEST_CASE("what would change the result and is not known is refused by its path") {
  using enum ErrorCode;
  refused(family("gpt_neox"), unsupported, "model_type");
  refused(family("gpt_oss"), missing, "num_local_experts");
  refused(with(llama(), "model_type", "7"), mismatch, "model_type");
  refused(Json::object(), missing, "model_type");
  for (const std::string key : {"attn_logit_softcapping", "final_logit_softcapping"})
    refused(with(gemma(), key, "30.0"), unsupported, key);
  for (const std::string key : {"num_experts", "num_local_experts", "n_routed_experts", "sliding_window"})
    refused(with(llama(), key, "8"), unsupported, key);
  refused(with(llama(), "use_bidirectional_attention", "true"), unsupported, "use_bidirectional_attention");
  refused(with(family("qwen2"), "mlp_bias", "true"), unsupported, "mlp_bias");
  refused(with(llama(), "no_rope_layers", "[1, 1, 0]"), unsupported, "no_rope_layers");
  refused(with(family("smollm3"), "no_rope_layers", "[1, 0]"), mismatch, "no_rope_layers");
  const Config biased = config(with(with(llama(), "attention_bias", "true"), "mlp_bias", "true"));
  CHECK(biased.qkv_bias);
  CHECK(biased.o_bias);
  CHECK(biased.ffn_bias);
  refused(with(llama(), "partial_rotary_factor", "0.5"), unsupported, "partial_rotary_factor");
  refused(with(llama(), "logits_scaling", "8"), unsupported, "logits_scaling");
  refused(with(llama(), "hidden_act", "\"gelu\""), unsupported, "hidden_act");
  refused(with(gemma(), "hidden_activation", "\"gelu\""), unsupported, "hidden_activation");
  CHECK(config_from_hf(with(gemma(), "hidden_act", "\"gelu\"")).has_value());          // of Gemma, hidden_activation counts
  CHECK(config_from_hf(with(family("qwen2"), "attention_bias", "true")).has_value());  // this family has them
  CHECK(config_from_hf(with(llama(), "partial_rotary_factor", "1.0")).has_value());

  refused(with(llama(), "rope_scaling", R"({"rope_type": "sub", "factor": 8})"), unsupported, "rope_scaling.rope_type");
  refused(with(llama(), "rope_scaling", R"({"rope_type": "longrope", "factor": 8})"), missing, "rope_scaling.short_factor");
  refused(with(llama(), "rope_scaling", R"({"type": "dynamic", "factor": 0.5})"), malformed, "");
  refused(with(llama(), "is_causal", "false"), unsupported, "is_causal");
  refused(with(llama(), "rope_scaling", R"({"type": "linear", "rope_type": "yarn", "factor": 8})"), mismatch,
          "rope_scaling.type");
  refused(with(llama(), "rope_scaling", R"({"type": "linear"})"), missing, "rope_scaling.factor");
  refused(with(llama(), "rope_scaling", R"({"type": "linear", "factor": "8"})"), mismatch, "rope_scaling.factor");
  refused(with(llama(), "rope_scaling", R"({"type": "linear", "factor": 8, "mrope_section": [1, 2]})"), unsupported,
          "rope_scaling.mrope_section");
  CHECK(!config(with(llama(), "rope_scaling", R"({"type": "yarn", "factor": 8, "truncate": false})")).ropes[0].truncate);
  refused(with(llama(), "rope_scaling", "\"linear\""), mismatch, "rope_scaling");
  refused(with(llama(), "rope_parameters", R"({"rope_type": "default", "rope_theta": 10000.0})"), mismatch, "rope_parameters");
  refused(with(llama(), "rope_parameters", R"({"full_attention": {}})"), unsupported, "rope_parameters.full_attention");
  refused(with(gemma(), "rope_parameters", R"({"rope_type": "default"})"), unsupported, "rope_parameters.rope_type");
  refused(with(gemma(), "rope_parameters", "3"), mismatch, "rope_parameters");
  refused(with(gemma(), "rope_parameters", R"(["full_attention"])"), mismatch, "rope_parameters");
  refused(with(gemma(), "rope_parameters", R"({"full": {"rope_type": "linear", "factor": 8}})"), unsupported,
          "rope_parameters.full");
  CHECK(config_from_hf(with(gemma(), "rope_parameters", "null")).has_value());

  // Not to say how is not to say that nothing is scaled.
  refused(with(llama(), "rope_scaling", R"({"factor": 8})"), missing, "rope_scaling.rope_type");
  refused(with(llama(), "rope_scaling", "{}"), missing, "rope_scaling.rope_type");
  refused(with(gemma(), "rope_scaling", R"({"factor": 8, "type": null})"), missing, "rope_scaling.rope_type");
  refused(with(llama(), "rope_parameters", R"({"rope_theta": 500000.0, "factor": 8})"), missing, "rope_parameters.rope_type");
  CHECK(config(with(llama(), "rope_parameters", R"({"rope_theta": 500000.0})")).ropes[0].base == 500000.0);
}

TEST_CASE("what files leave out is what the family's reference has by default, or is asked for") {
  using enum ErrorCode;
  CHECK(config(family("qwen3")).head_dim == 128);
  CHECK(config(with(family("qwen3"), "head_dim", "null")).head_dim == 16);
  CHECK(config(gpt_oss()).head_dim == 64);
  CHECK(config(gpt_oss()).ropes[0].base == 150000.0);
  CHECK(config(gpt_oss()).qkv_bias);
  CHECK(config(gpt_oss()).o_bias);
  refused(with(gpt_oss(), "rope_scaling", "null"), missing, "rope_scaling");  // by default it is no plain one
  Json mixtral = with(with(family("mixtral"), "num_local_experts", "8"), "num_experts_per_tok", "2");
  mixtral.erase("rope_theta");
  CHECK(config(mixtral).ropes[0].base == 1e6);

  // As published: the base is among the attention's keys, and the chosen experts' weights sum to 1.
  CHECK(config(dbrx()).ropes[0].base == 500000.0);
  CHECK(config(dbrx()).router.normalize);
  Json unnormalised = dbrx();
  unnormalised["ffn_config"]["moe_normalize_expert_weights"] = nullptr;
  CHECK_FALSE(config(unnormalised).router.normalize);
  unnormalised["ffn_config"]["moe_normalize_expert_weights"] = 2;
  refused(unnormalised, unsupported, "ffn_config.moe_normalize_expert_weights");
  refused(with(dbrx(), "rope_theta", "10000"), mismatch, "attn_config.rope_theta");

  CHECK(config(deepseek("deepseek_v3")).router.normalize);
  CHECK_FALSE(config(with(deepseek("deepseek_v3"), "norm_topk_prob", "null")).router.normalize);
  CHECK_FALSE(config(deepseek("deepseek_v2")).router.normalize);
  for (const std::string key : {"routed_scaling_factor", "n_group", "topk_group"}) {
    Json json = deepseek("deepseek_v3");
    json.erase(key);
    refused(json, missing, key);
  }
}

TEST_CASE("what references of one family disagree about, or take as given, is refused") {
  using enum ErrorCode;
  refused(with(deepseek("deepseek_v2"), "norm_topk_prob", "true"), unsupported, "norm_topk_prob");
  refused(with(deepseek("deepseek_v2"), "rope_interleave", "false"), unsupported, "rope_interleave");
  CHECK(config(with(deepseek("deepseek_v3"), "rope_interleave", "false")).rope_style == RopeStyle::halves);
  const Json phimoe = with(family("phimoe"), "num_local_experts", "8");
  CHECK(config(with(phimoe, "num_experts_per_tok", "2")).router.chosen == 2);
  for (const std::string chosen : {"1", "3"})
    refused(with(phimoe, "num_experts_per_tok", chosen), unsupported, "num_experts_per_tok");
  CHECK(config(with(deepseek("deepseek_v3"), "num_nextn_predict_layers", "1")).draft_layers == 1);
  refused(with(deepseek("deepseek_v3"), "num_nextn_predict_layers", "4000000000"), malformed, "");
}

TEST_CASE("sizes and layer lists that make no sense are refused") {
  using enum ErrorCode;
  for (const std::string key : {"hidden_size", "vocab_size", "num_hidden_layers", "rms_norm_eps", "num_attention_heads"}) {
    Json json = llama();
    json.erase(key);
    refused(json, missing, key);
  }
  refused(with(llama(), "hidden_size", "-1"), mismatch, "hidden_size");
  refused(with(llama(), "hidden_size", "63"), malformed, "hidden_size");
  refused(with(llama(), "vocab_size", "0"), malformed, "");
  refused(with(llama(), "num_hidden_layers", "1000000000"), malformed, "num_hidden_layers");
  refused(with(llama(), "num_attention_heads", "0"), malformed, "num_attention_heads");
  refused(with(llama(), "num_key_value_heads", "3"), malformed, "");
  refused(with(llama(), "rope_theta", "0"), malformed, "");
  refused(with(llama(), "rope_scaling", R"({"rope_type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 4,
    "original_max_position_embeddings": 64})"),
          malformed, "");
  refused(with(llama(), "layer_types", R"(["full_attention"])"), mismatch, "layer_types");
  refused(with(llama(), "layer_types", R"(["full_attention", "full_attention", "chunked_attention"])"), unsupported,
          "layer_types.2");
  refused(with(llama(), "layer_types", R"(["full_attention", "full_attention", "sliding_attention"])"), malformed,
          "sliding_window");
  refused(with(with(family("mistral"), "sliding_window", "8"), "layer_types",
               R"(["full_attention", "full_attention", "sliding_attention"])"),
          unsupported, "layer_types");
  refused(with(family("qwen2"), "layer_types", R"(["full_attention", "full_attention", "sliding_attention"])"), malformed,
          "sliding_window");
  refused(with(gemma(), "sliding_window_pattern", "0"), malformed, "sliding_window_pattern");
  refused(with(gemma(), "query_pre_attn_scalar", "0"), malformed, "query_pre_attn_scalar");
  Json no_kv = family("mistral");
  no_kv.erase("num_key_value_heads");
  refused(no_kv, missing, "num_key_value_heads");
}
