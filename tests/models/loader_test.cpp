// What the loader refuses: every tensor has a place, a shape and a format, and nothing is left over.
#include "golden_models.hpp"
#include "nihao/files/safetensors_writer.hpp"
#include "nihao/models/llama.hpp"
#include "nihao/models/load_hf.hpp"
#include "nihao/models/olmo2.hpp"

#include <map>

using namespace nihao;
using namespace nihao::test;

namespace {

/// A llama of two layers with weights that are all small numbers, to be damaged.
struct Checkpoint {
  std::map<std::string, std::vector<std::uint64_t>> shapes;
  std::string config = R"({"model_type": "llama", "hidden_size": 8, "intermediate_size": 12, "max_position_embeddings": 64,
    "num_attention_heads": 2, "num_hidden_layers": 2, "num_key_value_heads": 1, "rms_norm_eps": 1e-05, "vocab_size": 10,
    "tie_word_embeddings": false})";
  TempFolder folder;

  Checkpoint() {
    shapes = {{"model.embed_tokens.weight", {10, 8}}, {"model.norm.weight", {8}}, {"lm_head.weight", {10, 8}}};
    for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
      shapes[layer + "input_layernorm.weight"] = shapes[layer + "post_attention_layernorm.weight"] = {8};
      shapes[layer + "self_attn.q_proj.weight"] = shapes[layer + "self_attn.o_proj.weight"] = {8, 8};
      shapes[layer + "self_attn.k_proj.weight"] = shapes[layer + "self_attn.v_proj.weight"] = {4, 8};
      shapes[layer + "mlp.gate_proj.weight"] = shapes[layer + "mlp.up_proj.weight"] = {12, 8};
      shapes[layer + "mlp.down_proj.weight"] = {8, 12};
    }
  }

  [[nodiscard]] std::string write() const {
    std::vector<std::vector<float>> values;
    std::vector<SafetensorsTensor> tensors;
    for (const auto& [name, shape] : shapes) {
      std::size_t n = 1;
      for (const std::uint64_t size : shape) n *= static_cast<std::size_t>(size);
      values.emplace_back(n);
      for (std::size_t i = 0; i < n; ++i) values.back()[i] = 0.01f * static_cast<float>((i * 7 + name.size()) % 13);
    }
    std::size_t i = 0;
    for (const auto& [name, shape] : shapes)
      tensors.push_back({name, SafetensorsType::F32, shape, std::as_bytes(std::span(values[i++]))});
    REQUIRE(write_safetensors(folder.path("model.safetensors"), tensors).has_value());
    std::ofstream(folder.path("config.json")) << config;
    return folder.root().string();
  }
};

void refused(const Expected<AnyModel>& result, ErrorCode code, const std::string& where, const std::string& what) {
  REQUIRE(!result);
  CAPTURE(result.error().message());
  CHECK(to_string(result.error().code) == to_string(code));
  CHECK(result.error().where.find(where) != std::string::npos);
  CHECK(result.error().what.find(what) != std::string::npos);
}

}  // namespace

TEST_CASE("a whole checkpoint loads and gives finite logits") {
  const Checkpoint checkpoint;
  const AnyModel model = require(load_hf(checkpoint.write()));
  CHECK(model.config().sizes() == Sizes{8, 2, 2, 1, 4, 12, 10});
  CHECK(model.tokenizer() == nullptr);
  const auto context = require(model.context());
  const TokenId ids[] = {1, 2, 3};
  for (const float v : logits_of(*context, ids, 3)) CHECK(std::isfinite(v));
}

TEST_CASE("a missing tensor is named") {
  for (const std::string name : {"model.layers.1.mlp.up_proj.weight", "model.norm.weight", "model.embed_tokens.weight",
                                 "model.layers.0.input_layernorm.weight"}) {
    Checkpoint checkpoint;
    checkpoint.shapes.erase(name);
    refused(load_hf(checkpoint.write()), ErrorCode::missing, "tensor " + name, "no such tensor");
  }
}

TEST_CASE("a tensor of another shape is named, with both shapes") {
  Checkpoint checkpoint;
  checkpoint.shapes["model.layers.1.self_attn.k_proj.weight"] = {8, 4};
  refused(load_hf(checkpoint.write()), ErrorCode::mismatch, "tensor model.layers.1.self_attn.k_proj.weight",
          "[8, 4], and the model needs [4, 8]");
  Checkpoint vector;
  vector.shapes["model.layers.0.mlp.down_proj.weight"] = {96};
  refused(load_hf(vector.write()), ErrorCode::mismatch, "tensor model.layers.0.mlp.down_proj.weight", "needs [8, 12]");
  Checkpoint norm;
  norm.shapes["model.norm.weight"] = {9};
  refused(load_hf(norm.write()), ErrorCode::mismatch, "tensor model.norm.weight", "9 values, and the model needs 8");
}

TEST_CASE("a tensor too many is named: weights that nobody multiplies make another model") {
  for (const std::string name :
       {"model.layers.0.self_attn.q_proj.bias", "model.layers.2.input_layernorm.weight", "score.weight"}) {
    Checkpoint checkpoint;
    checkpoint.shapes[name] = {8};
    refused(load_hf(checkpoint.write()), ErrorCode::unsupported, "tensor " + name, "no place");
  }
  Checkpoint buffer;  // old checkpoints saved a buffer that is computed
  buffer.shapes["model.layers.0.self_attn.rotary_emb.inv_freq"] = {2};
  CHECK(load_hf(buffer.write()).has_value());
}

TEST_CASE("a family whose tensors the file does not have is refused") {
  Checkpoint qwen;
  qwen.config.replace(qwen.config.find("llama"), 5, "qwen2");
  refused(load_hf(qwen.write()), ErrorCode::missing, "tensor model.layers.0.self_attn.q_proj.bias", "no such tensor");
}

TEST_CASE("a config that is not there, not JSON, or of an unknown architecture is an error that names the file") {
  Checkpoint checkpoint;
  checkpoint.config = "{";
  refused(load_hf(checkpoint.write()), ErrorCode::malformed, "config.json", "JSON");
  checkpoint.config = R"({"model_type": "gpt2"})";
  refused(load_hf(checkpoint.write()), ErrorCode::unsupported, "config.json: model_type", "gpt2");
  std::filesystem::remove(checkpoint.folder.path("config.json"));
  refused(load_hf(checkpoint.folder.root().string()), ErrorCode::io, "config.json", "No such file");
}

TEST_CASE("loading stops when the host asks, and tells it of progress before") {
  struct Progress final : ProgressSink {
    void progress(std::string_view, std::uint64_t done, std::uint64_t total) override {
      CHECK(done <= total);
      last = done;
      if (++calls == 5) stop.request_stop();
    }
    std::stop_source stop;
    std::uint64_t last = 0;
    int calls = 0;
  };
  const Checkpoint checkpoint;
  const auto progress = std::make_shared<Progress>();
  LoadOptions options;
  options.hooks.progress = progress;
  options.hooks.stop = progress->stop.get_token();
  refused(load_hf(checkpoint.write(), options), ErrorCode::cancelled, "", "stopped");
  CHECK(progress->calls == 5);
  CHECK(progress->last > 0);
}

TEST_CASE("loading tells the host's log what was loaded, and on what") {
  struct Log final : Logger {
    void log(LogLevel level, std::string_view line) override {
      lines += concat(level == LogLevel::info ? "info: " : "?: ", line);
    }
    std::string lines;
  };
  const Checkpoint checkpoint;
  const auto log = std::make_shared<Log>();
  LoadOptions options{.cpu = {.threads = 1, .isa = Isa::portable}};
  options.hooks.logger = log;
  const AnyModel model = require(load_hf(checkpoint.write(), options));
  CHECK(log->lines == concat("info: loaded ", model.config().architecture, ": ", model.config().layers.size(),
                             " layers of width ", model.config().d_model, ", ", model.config().vocab,
                             " tokens, on cpu, portable, 1 thread"));
}

TEST_CASE("a static size that the file contradicts is an error that names the first difference") {
  const Checkpoint checkpoint;
  const std::string folder = checkpoint.write();
  const auto error = [&]<class M>(std::type_identity<M>) {
    const auto result = load_hf<M>(folder);
    REQUIRE(!result);
    CHECK(result.error().code == ErrorCode::mismatch);
    return result.error().what;
  };
  CHECK(load_hf<Llama<Sizes{.d_model = 8, .layers = 2, .heads = 2, .kv_heads = 1, .head_dim = 4, .d_ff = 12, .vocab = 10}>>(
      folder));
  CHECK(error(std::type_identity<Llama<Sizes{.d_model = 16, .heads = 3}>>{}) ==
        "d_model is 8 in the file and 16 in the model's type");
  CHECK(error(std::type_identity<Llama<Sizes{.d_model = 8, .heads = 3, .vocab = 11}>>{}) ==
        "heads is 2 in the file and 3 in the model's type");
  CHECK(error(std::type_identity<Llama<Sizes{.vocab = 11}>>{}) == "vocab is 10 in the file and 11 in the model's type");
}

TEST_CASE("a type with weights that files of the architecture have no name for is an error that says so") {
  const auto result = load_hf<Olmo2<Sizes{}, Quant<F32>>>(Checkpoint().write());  // norms after, where Llama has them before
  REQUIRE(!result);
  CHECK(result.error().code == ErrorCode::missing);
  CHECK(result.error().what == "the model's type has a weight that files of llama have no name for (layers/names.hpp)");
}

TEST_CASE("a format that the model's type does not admit is an error that names the tensor") {
  const Checkpoint checkpoint;
  const std::string folder = checkpoint.write();
  CHECK(load_hf<Llama<Sizes{}, Quant<F32>>>(folder));
  const auto result = load_hf<Llama<Sizes{}, Quant<Q4_K>>>(folder);
  REQUIRE(!result);
  CHECK(result.error().code == ErrorCode::mismatch);
  CHECK(result.error().what == "it is stored as F32, which this model type does not admit");
  CHECK(result.error().where == folder + ": tensor model.embed_tokens.weight");
}

TEST_CASE("a step that cannot be is an error, and leaves the cache as it was") {
  const Checkpoint checkpoint;
  const AnyModel model = require(load_hf(checkpoint.write()));
  const auto context = require(model.context({.positions = 6, .sequences = 2, .chunk = 4}));
  const TokenId ids[] = {1, 2, 3, 4, 5};
  const auto step = [&](std::initializer_list<SequenceTokens> batch) {
    return context->step(std::span(batch.begin(), batch.size()));
  };
  const auto error = [&](std::initializer_list<SequenceTokens> batch) {
    const auto result = step(batch);
    REQUIRE(!result);
    return std::pair(to_string(result.error().code), result.error().what);
  };
  using E = std::pair<std::string_view, std::string>;
  REQUIRE(step({{0, std::span(ids).first(3), Wanted::last}, {1, std::span(ids).first(1), Wanted::last}}));
  const std::pair<std::size_t, std::size_t> before{context->cache().length(0), context->cache().length(1)};
  CHECK(before == std::pair<std::size_t, std::size_t>{3, 1});

  CHECK(error({}) == E{"invalid argument", "the batch is empty"});
  CHECK(error({{0, {}, Wanted::last}}) == E{"invalid argument", "sequence 0 has no tokens in this step"});
  CHECK(error({{2, std::span(ids).first(1), Wanted::last}}) == E{"invalid argument", "there is no sequence 2 in a cache of 2"});
  CHECK(error({{1, std::span(ids).first(1), Wanted::last}, {1, std::span(ids).first(1), Wanted::last}}) ==
        E{"invalid argument", "sequence 1 is in the batch twice"});
  CHECK(error({{0, ids, Wanted::last}}) == E{"invalid argument", "a step takes 4 tokens, and the batch has 5"});
  for (const TokenId bad : {-1, 10, INT32_MAX, INT32_MIN}) {
    const TokenId wrong[] = {bad};
    CHECK(error({{0, wrong, Wanted::last}}) ==
          E{"invalid argument", concat("token id ", bad, " is outside the vocabulary of 10")});
  }
  // One sequence fits and the other does not: neither moves.
  REQUIRE(step({{0, std::span(ids).first(3), Wanted::none}}));
  CHECK(error({{1, std::span(ids).first(2), Wanted::last}, {0, std::span(ids).first(1), Wanted::last}}).first == "context full");
  CHECK(context->cache().length(0) == 6);
  CHECK(context->cache().length(1) == 1);
}
