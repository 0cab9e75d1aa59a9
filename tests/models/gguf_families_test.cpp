// Every family as a GGUF file: the golden checkpoints, converted, compute what they did. Names, shapes, values and keys of these
// files were compared with those that llama.cpp's converter makes of the same folders.
#include "golden_models.hpp"
#include "kernels/random_weights.hpp"
#include "nihao/files/safetensors_writer.hpp"
#include "nihao/models/gguf_config.hpp"
#include "nihao/models/load.hpp"
#include "nihao/models/load_hf.hpp"
#include "nihao/quantize/hf_tensors.hpp"
#include "nihao/quantize/quantize_model.hpp"

#include <fstream>
#include <functional>
#include <numeric>

using namespace nihao;
using namespace nihao::test;

namespace {

using Shape = std::vector<std::uint64_t>;
using NewTensors = std::vector<std::pair<std::string, Shape>>;

/// A golden folder whose config.json has been changed, and that may have tensors more.
class Changed {
 public:
  template <class F>
  Changed(const std::filesystem::path& checkpoint, const F& change, const NewTensors& more = {}) {
    Json config = require(parse_json(read_text(checkpoint / "config.json")));
    change(config);
    std::ofstream(temp_.path("config.json")) << config.dump();
    if (more.empty())
      std::filesystem::create_symlink(std::filesystem::absolute(checkpoint / "model.safetensors"),
                                      temp_.path("model.safetensors"));
    else write_with(require(Safetensors::open(checkpoint.string())), more);
  }
  [[nodiscard]] std::string path() const { return temp_.root().string(); }

 private:
  void write_with(const Safetensors& file, const NewTensors& more) {
    std::vector<SafetensorsTensor> tensors;
    tensors.reserve(file.tensors().tensors().size() + more.size());
    for (const TensorInfo& t : file.tensors().tensors())
      tensors.push_back({t.name, SafetensorsType::F32, {t.shape.begin(), t.shape.begin() + t.rank}, t.bytes});
    std::vector<std::vector<float>> values(more.size());
    for (std::size_t i = 0; i < more.size(); ++i) {
      const Shape& shape = more[i].second;
      const auto size = std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>());
      values[i] = random_floats(static_cast<std::size_t>(size), static_cast<unsigned>(i));
      tensors.push_back({more[i].first, SafetensorsType::F32, shape, std::as_bytes(std::span(values[i]))});
    }
    REQUIRE(write_safetensors(temp_.path("model.safetensors"), tensors).has_value());
  }
  TempFolder temp_;
};

Expected<ModelToWrite> model_of(const Safetensors& file, const std::string& folder) {
  return tensors_of_folder(file, require(parse_json(read_text(folder + "/config.json"))), "");
}
void write(ModelToWrite model, const std::string& path) {
  const Cpu cpu = require(Cpu::create({.threads = 2}));
  require(quantize_model(std::move(model), *recipe_from_name("F32"), path, cpu));
}

std::vector<float> exact_logits(const AnyModel& model, std::span<const TokenId> ids) {
  return logits_of(*require(model.context({.positions = ids.size() + 12, .kv = KvType::f32})), ids, ids.size());
}
std::vector<float> logits_of_gguf(const std::string& path, std::span<const TokenId> ids, MlaMode mla) {
  return exact_logits(require(load(path, {.cpu = {.threads = 2, .exact = true}, .mla = mla})), ids);
}

/// The file computes what the golden folder says, by every way there is.
void computes_golden(const std::string& path, const std::filesystem::path& folder, const std::string& name) {
  const auto golden = require(Safetensors::open((folder / "golden.safetensors").string()));
  for (const std::string prompt : {"short", "long"})
    for (const MlaMode mla : mla_modes(name)) {
      const auto logits = logits_of_gguf(path, token_ids(golden, prompt + ".input_ids"), mla);
      CHECK_MESSAGE(most_apart(logits, *golden.values<float>(prompt + ".logits")) <= 1e-4, name, " ", prompt);
    }
}

/// Layers slide but each `pattern`th.
void slide_but(Json& config, std::size_t pattern) {
  config.erase("sliding_window_pattern");
  config["layer_types"] = Json::array();
  for (std::size_t i = 1; i <= config["num_hidden_layers"].get<std::size_t>(); ++i)
    config["layer_types"].push_back(i % pattern != 0 ? "sliding_attention" : "full_attention");
}

/// What the files of Llama 4 have in common, and do not say.
void as_llama4(Json& config) {
  config["attention_chunk_size"] = config["floor_scale"] = 8192;
  config["attn_temperature_tuning"] = true;
  config.erase("no_rope_layers");
}

}  // namespace

TEST_CASE("every golden checkpoint as a GGUF file computes its reference's logits, where GGUF has keys for what it says") {
  // What such a file cannot say: the other test has these with what it can.
  const std::pair<std::string, std::string> refused[] = {{"gemma2", "scores are scaled by"},
                                                         {"gemma3_text", "scores are scaled by"},
                                                         {"deepseek_v2", "mscale differs from mscale_all_dim"},
                                                         {"llama4_text", "chunks are of 8"},
                                                         {"llama4_text_llama3rope", "chunks are of 8"},
                                                         {"gpt_oss", "swiglu_limit: it is 1.5"}};
  const TempFolder folder;
  for (const GoldenCase& one : golden_cases()) {
    const std::string& name = one.name;
    CAPTURE(name);
    const Safetensors file = require(Safetensors::open(one.folder.string()));
    auto model = model_of(file, one.folder.string());
    const auto why = std::find_if(std::begin(refused), std::end(refused), [&](const auto& r) { return r.first == name; });
    REQUIRE_MESSAGE(model.has_value() == (why == std::end(refused)), (model ? "" : model.error().message()));
    if (!model) {
      CHECK(model.error().code == ErrorCode::unsupported);
      CHECK_MESSAGE(model.error().message().find(why->second) != std::string::npos, model.error().message());
      continue;
    }
    write(*std::move(model), folder.path("m"));
    computes_golden(folder.path("m"), one.folder, name);
  }
}

TEST_CASE("the others do so with what GGUF can say, as their folder does") {
  const auto models = data("golden/models");
  if (!models) NIHAO_SKIP("golden/models");
  const std::pair<std::string, void (*)(Json&)> cases[] = {
      {"gemma2", [](Json& c) { c["query_pre_attn_scalar"] = c["head_dim"], slide_but(c, 2); }},
      {"gemma3_text", [](Json& c) { c["query_pre_attn_scalar"] = c["head_dim"], slide_but(c, 6); }},
      {"cohere2", [](Json& c) { slide_but(c, 4); }},
      {"deepseek_v2", [](Json& c) { c["rope_scaling"]["mscale"] = c["rope_scaling"]["mscale_all_dim"]; }},
      {"llama4_text", as_llama4},
      {"llama4_text_llama3rope", as_llama4},
      {"gpt_oss", [](Json& c) { c["swiglu_limit"] = 7; }}};
  const TempFolder folder;
  for (const auto& one : cases) {
    const std::string& name = one.first;
    CAPTURE(name);
    const Changed changed(*models / name, one.second);
    const Safetensors file = require(Safetensors::open(changed.path()));
    write(require(model_of(file, changed.path())), folder.path("m"));
    const auto golden = require(Safetensors::open((*models / name / "golden.safetensors").string()));
    const AnyModel source = require(load_hf(changed.path(), {.cpu = {.threads = 2, .exact = true}}));
    for (const std::string prompt : {"short", "long"}) {
      const auto ids = token_ids(golden, prompt + ".input_ids");
      for (const MlaMode mla : mla_modes(name))
        CHECK(most_apart(logits_of_gguf(folder.path("m"), ids, mla), exact_logits(source, ids)) <= 2e-5);
    }
  }
}

TEST_CASE("biases that a config asks for are in the GGUF file of any family, and added") {
  const auto models = data("golden/models");
  if (!models) NIHAO_SKIP("golden/models");
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"qwen3", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"}},
      {"olmo2", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"}},
      {"cohere2", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"}},
      {"granite",
       {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj",
        "mlp.down_proj"}},
      {"deepseek_v3", {"self_attn.q_a_proj", "self_attn.kv_a_proj_with_mqa", "self_attn.o_proj"}},
      {"deepseek_v2_lite", {"self_attn.kv_a_proj_with_mqa", "self_attn.o_proj"}}};
  const TempFolder folder;
  for (const auto& one : cases) {
    const std::string& name = one.first;
    const std::vector<std::string>& biased = one.second;
    CAPTURE(name);
    const auto plain = require(Safetensors::open((*models / name).string()));
    const bool ffn = biased.back() == "mlp.down_proj";
    NewTensors biases;
    for (const TensorInfo& t : plain.tensors().tensors())
      for (const std::string& linear : biased)
        if (t.name.ends_with(linear + ".weight"))
          biases.push_back({std::string(t.name.substr(0, t.name.size() - 6)) + "bias", {t.shape[0]}});
    const auto change = [ffn](Json& c) {
      c["attention_bias"] = true;
      if (ffn) c["mlp_bias"] = true;
      if (c["model_type"] == "cohere2") slide_but(c, 4);
    };
    const Changed extended(*models / name, change, biases);
    const Safetensors file = require(Safetensors::open(extended.path()));
    write(require(model_of(file, extended.path())), folder.path("m"));
    const auto golden = require(Safetensors::open((*models / name / "golden.safetensors").string()));
    const auto ids = token_ids(golden, "short.input_ids");
    const auto expected = exact_logits(require(load_hf(extended.path(), {.cpu = {.threads = 2, .exact = true}})), ids);
    CHECK(most_apart(expected, *golden.values<float>("short.logits")) > 0.1);
    for (const MlaMode mla : mla_modes(name)) CHECK(most_apart(logits_of_gguf(folder.path("m"), ids, mla), expected) <= 5e-5);
  }
}

TEST_CASE("layers that guess further tokens are left alone, as many as config.json says") {
  const auto models = data("golden/models");
  if (!models) NIHAO_SKIP("golden/models");
  const NewTensors guesses = {{"model.layers.2.eh_proj.weight", {64, 128}}, {"model.layers.2.self_attn.o_proj.weight", {64, 64}}};
  const Changed with_one(*models / "deepseek_v3", [](Json& c) { c["num_nextn_predict_layers"] = 1; }, guesses);
  const auto golden = require(Safetensors::open((*models / "deepseek_v3" / "golden.safetensors").string()));
  const auto ids = token_ids(golden, "short.input_ids");
  const AnyModel model = require(load_hf(with_one.path(), {.cpu = {.threads = 2, .exact = true}}));
  CHECK(most_apart(exact_logits(model, ids), *golden.values<float>("short.logits")) <= 1e-4);
  const TempFolder folder;
  const Safetensors file = require(Safetensors::open(with_one.path()));
  write(require(model_of(file, with_one.path())), folder.path("m"));
  computes_golden(folder.path("m"), *models / "deepseek_v3", "deepseek_v3");

  const Changed with_none(*models / "deepseek_v3", [](Json& c) { c["num_nextn_predict_layers"] = 0; }, guesses);
  const auto refused = load_hf(with_none.path());
  REQUIRE(!refused);
  CHECK(refused.error().code == ErrorCode::unsupported);
  CHECK(refused.error().where.find("tensor model.layers.2.") != std::string::npos);
}

TEST_CASE("DeepSeek's older GGUF files, which have W_uk and W_uv in one and the heads' own widths, compute the same") {
  const auto models = data("golden/models");
  if (!models) NIHAO_SKIP("golden/models");
  for (const std::string name : {"deepseek_v2_lite", "deepseek_v3"}) {
    CAPTURE(name);
    const TempFolder folder;
    const Safetensors file = require(Safetensors::open((*models / name).string()));
    ModelToWrite model = require(model_of(file, (*models / name).string()));
    for (ModelTensor& t : model.tensors) {
      if (t.name.find("attn_k_b") == std::string::npos) continue;
      t.name.replace(t.name.find("attn_k_b"), 8, "attn_kv_b");
      t.shape.assign(t.parts[0]->shape.begin(), t.parts[0]->shape.begin() + 2);
      t.cut.reset();
    }
    std::erase_if(model.tensors, [](const ModelTensor& t) { return t.name.find("attn_v_b") != std::string::npos; });
    write(std::move(model), folder.path("new"));
    const Gguf split = require(Gguf::open(folder.path("new")));
    GgufWriter whole;
    for (const GgufEntry& entry : split.metadata()) {
      if (entry.key.find("_length") == std::string::npos || entry.key.find("attention.") == std::string::npos) whole.add(entry);
    }
    const auto length = [&](const char* key) {
      whole.add(concat("deepseek2.attention.", key),
                require(split.get<std::uint32_t>(concat("deepseek2.attention.", key, "_mla"))));
    };
    length("key_length");
    length("value_length");
    for (const TensorInfo& t : split.tensors().tensors())
      REQUIRE(whole.add_tensor(t.name, t.format, std::span(t.shape).first(t.rank), t.bytes).has_value());
    REQUIRE(whole.write(folder.path("old")).has_value());
    computes_golden(folder.path("old"), *models / name, name);
  }
}

TEST_CASE("what a file says of its experts and its chunks is done, or refused") {
  const auto models = data("golden/models");
  if (!models) NIHAO_SKIP("golden/models");
  const TempFolder folder;
  const auto config_with = [&](const std::string& name, std::string_view key, auto value) {
    const Changed changed(*models / name, name == "llama4_text" ? as_llama4 : +[](Json&) {});
    const Safetensors file = require(Safetensors::open(changed.path()));
    write(require(model_of(file, changed.path())), folder.path("m"));
    const Gguf written = require(Gguf::open(folder.path("m")));
    const std::string whole_key = concat(require(written.architecture()), ".", key);
    GgufWriter writer;
    for (const GgufEntry& entry : written.metadata())
      if (entry.key != whole_key) writer.add(entry);
    writer.add(whole_key, value);
    for (const TensorInfo& t : written.tensors().tensors())
      REQUIRE(writer.add_tensor(t.name, t.format, std::span(t.shape).first(t.rank), t.bytes).has_value());
    REQUIRE(writer.write(folder.path("changed")).has_value());
    return config_from_gguf(require(Gguf::open(folder.path("changed"))));
  };
  const auto refused = [&](const std::string& name, std::string_view key, auto value) {
    const auto config = config_with(name, key, value);
    CAPTURE(name);
    REQUIRE(!config);
    CHECK(config.error().code == ErrorCode::unsupported);
    CHECK(config.error().where.find(key) != std::string::npos);
  };
  using U = std::uint32_t;
  CHECK(require(config_with("mixtral", "expert_weights_scale", 2.5f)).router.scale == 2.5f);
  CHECK(require(config_with("mixtral", "expert_weights_scale", 0.0f)).router.scale == 1);
  CHECK_FALSE(require(config_with("mixtral", "expert_weights_norm", false)).router.normalize);
  CHECK(config_with("mixtral", "expert_gating_func", U{1}).has_value());
  refused("mixtral", "expert_gating_func", U{2});
  refused("mixtral", "expert_group_count", U{2});
  CHECK_FALSE(require(config_with("deepseek_v3", "expert_gating_func", U{1})).router.sigmoid);
  refused("deepseek_v3", "expert_gating_func", U{4});
  CHECK(require(config_with("deepseek_v3", "leading_dense_block_count", U{0})).layers[0].kind == 1);
  CHECK(require(config_with("llama4_text", "interleave_moe_layer_step", U{1})).layers[0].kind == 1);
  CHECK(require(config_with("llama4_text", "attention.sliding_window", U{16})).layers[0].chunk == 16);
  CHECK(require(config_with("llama4_text", "attention.temperature_length", U{4})).temperature_floor == 4);
  refused("llama4_text", "attention.sliding_window", U{0});
  refused("llama4_text", "interleave_moe_layer_step", U{0});
}

TEST_CASE("an eps of DeepSeek's norms that is not that of its latents' norms cannot be said in GGUF") {
  const auto models = data("golden/models");
  if (!models) NIHAO_SKIP("golden/models");
  const Changed changed(*models / "deepseek_v3", [](Json& c) { c["rms_norm_eps"] = 1e-5; });
  const Safetensors file = require(Safetensors::open(changed.path()));
  const auto model = model_of(file, changed.path());
  REQUIRE(!model);
  CHECK(model.error().code == ErrorCode::unsupported);
  CHECK(model.error().where == "rms_norm_eps");
}

TEST_CASE("a folder whose tensors are not what its config.json says is refused by their names") {
  const auto models = data("golden/models");
  if (!models) NIHAO_SKIP("golden/models");
  const auto refused = [&](const std::string& name, void (*change)(Json&), const char* where) {
    const Changed changed(*models / name, change);
    const Safetensors file = require(Safetensors::open(changed.path()));
    const auto model = model_of(file, changed.path());
    REQUIRE(!model);
    CHECK(model.error().code == ErrorCode::mismatch);
    CHECK(model.error().where == where);
  };
  refused("dbrx", [](Json& c) { c["ffn_config"]["moe_num_experts"] = 7; }, "tensor transformer.blocks.0.ffn.experts.mlp.w1");
  refused("deepseek_v3", [](Json& c) { c["v_head_dim"] = 8; }, "tensor model.layers.0.self_attn.kv_b_proj.weight");
  refused(
      "llama4_text", [](Json& c) { as_llama4(c), c["num_local_experts"] = 5; },
      "tensor model.layers.1.feed_forward.experts.gate_up_proj");
}
