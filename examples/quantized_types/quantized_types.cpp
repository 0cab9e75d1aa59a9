// Weight formats as a part of a model's type: Quant<AWQ, F16> compiles the kernels of those two and no others, and refuses a
// checkpoint that has another. Two tiny checkpoints with made-up weights, one quantized by AWQ and one in FP8, are written to a
// folder first.
#include <nihao/files/safetensors_writer.hpp>
#include <nihao/models/context.hpp>
#include <nihao/models/llama.hpp>
#include <nihao/models/load_hf.hpp>

#include <fmt/core.h>

#include <filesystem>
#include <fstream>
#include <random>

namespace fs = std::filesystem;
using nihao::SafetensorsType;

// Embedding, head and norms are halves in both: quantization is of the layers' matrices.
using LlamaAWQ = nihao::Llama<nihao::Sizes{}, nihao::Quant<nihao::AWQ, nihao::F16>>;
using LlamaFP8 = nihao::Llama<nihao::Sizes{}, nihao::Quant<nihao::FP8_E4M3, nihao::F16>>;
// The same role by role: layers in FP8, and only embedding and head (one role each) in halves.
using LlamaMix =
    nihao::Llama<nihao::Sizes{}, nihao::Quant<nihao::Mix<nihao::FP8_E4M3, nihao::For<nihao::Role::embedding, nihao::F16>,
                                                         nihao::For<nihao::Role::head, nihao::F16>>>>;

constexpr std::uint64_t width = 64, hidden = 96, vocab = 128, group = 32;

// Tensors of a checkpoint to be.
class Checkpoint {
 public:
  template <class T, class F>
  void put(std::string name, SafetensorsType type, std::vector<std::uint64_t> shape, F&& value) {
    std::uint64_t count = 1;
    for (const std::uint64_t axis : shape) count *= axis;
    std::vector<std::byte> bytes(static_cast<std::size_t>(count) * sizeof(T));
    for (std::size_t i = 0; i < count; ++i) {
      const T v = value(i);
      std::memcpy(bytes.data() + i * sizeof(T), &v, sizeof(T));
    }
    tensors_.push_back({std::move(name), type, std::move(shape), std::move(bytes)});
  }
  void halves(std::string name, std::vector<std::uint64_t> shape, float first, float step) {
    put<nihao::f16>(std::move(name), SafetensorsType::F16, std::move(shape),
                    [&](std::size_t i) { return nihao::to_f16(first + step * static_cast<float>(i * 7919 % 17)); });
  }
  [[nodiscard]] nihao::Expected<void> write(const fs::path& folder, std::string_view quantization) const {
    fs::create_directories(folder);
    std::ofstream(folder / "config.json") << fmt::format(
        R"({{"model_type": "llama", "vocab_size": {}, "hidden_size": {}, "intermediate_size": {}, "num_hidden_layers": 1,
             "num_attention_heads": 4, "num_key_value_heads": 4, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
             "rope_theta": 10000.0, "tie_word_embeddings": false, "quantization_config": {}}})",
        vocab, width, hidden, quantization);
    std::vector<nihao::SafetensorsTensor> all;
    for (const Owned& t : tensors_) all.push_back({t.name, t.type, t.shape, t.bytes});
    return nihao::write_safetensors((folder / "model.safetensors").string(), all);
  }

 private:
  struct Owned {
    std::string name;
    SafetensorsType type;
    std::vector<std::uint64_t> shape;
    std::vector<std::byte> bytes;
  };
  std::vector<Owned> tensors_;
};

// One layer's matrices by `linear(name, rows, cols)`, and what both checkpoints have besides.
template <class F>
Checkpoint made_up(F&& linear) {
  Checkpoint c;
  c.halves("model.embed_tokens.weight", {vocab, width}, -0.5f, 0.0625f);
  c.halves("lm_head.weight", {vocab, width}, -0.25f, 0.03125f);
  c.halves("model.norm.weight", {width}, 1.0f, 0.0f);
  const std::string layer = "model.layers.0.";
  c.halves(layer + "input_layernorm.weight", {width}, 1.0f, 0.0f);
  c.halves(layer + "post_attention_layernorm.weight", {width}, 1.0f, 0.0f);
  for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"}) linear(c, layer + "self_attn." + name, width, width);
  for (const char* name : {"gate_proj", "up_proj"}) linear(c, layer + "mlp." + name, hidden, width);
  linear(c, layer + "mlp.down_proj", width, hidden);
  return c;
}

// [in, out / 8] words of eight codes, zero points alike, a scale for each group of inputs and output.
void put_awq(Checkpoint& c, const std::string& name, std::uint64_t rows, std::uint64_t cols) {
  const auto word = [](std::size_t i) { return static_cast<std::uint32_t>(i + 1) * 2654435761u; };
  c.put<std::uint32_t>(name + ".qweight", SafetensorsType::I32, {cols, rows / 8}, word);
  c.put<std::uint32_t>(name + ".qzeros", SafetensorsType::I32, {cols / group, rows / 8}, [](std::size_t) { return 0x77887788u; });
  c.halves(name + ".scales", {cols / group, rows}, 0.01f, 0.001f);
}
// Bytes of e4m3, and a scale for all.
void put_fp8(Checkpoint& c, const std::string& name, std::uint64_t rows, std::uint64_t cols) {
  c.put<nihao::e4m3>(name + ".weight", SafetensorsType::F8_E4M3, {rows, cols},
                     [](std::size_t i) { return nihao::to_e4m3(static_cast<float>(i * 31 % 201) - 100.0f); });
  c.put<float>(name + ".weight_scale", SafetensorsType::F32, {}, [](std::size_t) { return 1.0f / 512; });
}

template <class Model>
nihao::Expected<void> run(const fs::path& folder, std::string_view what) {
  NIHAO_TRY(const auto model, nihao::load_hf<Model>(folder.string()));
  NIHAO_TRY(auto context, nihao::Context<Model>::create(model, {.positions = 16}));
  const std::vector<nihao::TokenId> ids{1, 2, 3};
  NIHAO_TRY(const auto logits, context.prefill(0, ids));
  const auto row = logits.row(0);
  const nihao::TensorInfo& q = *model.tensors().find("model.layers.0.self_attn.q_proj.weight");
  fmt::print("{}: weights as {}, the likeliest of {} tokens is {}\n", what, nihao::format_info(q.format).name, row.size(),
             std::max_element(row.begin(), row.end()) - row.begin());
  return {};
}

nihao::Expected<void> all(const fs::path& folder) {
  NIHAO_CHECK(
      made_up(put_awq).write(folder / "awq", R"({"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm"})"));
  NIHAO_CHECK(made_up(put_fp8).write(folder / "fp8", R"({"quant_method": "fp8", "activation_scheme": "dynamic"})"));
  NIHAO_CHECK(run<LlamaAWQ>(folder / "awq", "AWQ"));
  NIHAO_CHECK(run<LlamaFP8>(folder / "fp8", "FP8"));
  NIHAO_CHECK(run<LlamaMix>(folder / "fp8", "FP8 by role"));
  const auto refused = nihao::load_hf<LlamaFP8>((folder / "awq").string());
  fmt::print("FP8 type, AWQ checkpoint: {}\n", refused ? "it was taken, which it should not be" : refused.error().message());
  return {};
}

int main() {
  const fs::path folder = fs::temp_directory_path() / fmt::format("nihao_quantized_types_{}", std::random_device{}());
  const auto done = all(folder);
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  if (!done) fmt::print(stderr, "{}\n", done.error().message());
  return done ? 0 : 1;
}
