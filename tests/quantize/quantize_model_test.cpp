#include "nihao/quantize/quantize_model.hpp"
#include "models/golden_models.hpp"
#include "nihao/models/load.hpp"
#include "nihao/quantize/hf_tensors.hpp"

using namespace nihao;
using namespace nihao::test;

namespace {

std::string tiny_llama() {
  const auto path = data("golden/quant/gguf/F32.gguf");
  return path ? path->string() : "";
}
Expected<std::vector<QuantizedTensor>> quantized(const std::string& from, const std::string& to, const char* mix,
                                                 const QuantizeOptions& options = {}, int threads = 2) {
  NIHAO_TRY(const Gguf file, Gguf::open(from));
  NIHAO_TRY(ModelToWrite model, tensors_of_gguf(file));
  NIHAO_TRY(const Cpu cpu, Cpu::create({.threads = threads}));
  return quantize_model(std::move(model), *recipe_from_name(mix), to, cpu, options);
}
std::vector<float> exact_logits(const AnyModel& model, std::span<const TokenId> ids) {
  const auto context = require(model.context({.positions = ids.size(), .kv = KvType::f32}));
  return logits_of(*context, ids, 64);
}
std::vector<float> exact_logits_of_file(const std::string& path, std::span<const TokenId> ids) {
  return exact_logits(require(load(path, {.cpu = {.threads = 2, .exact = true}})), ids);
}
const std::vector<TokenId> prompt{1, 45, 200, 17, 3, 99, 120, 64, 250, 31, 8, 77};

}  // namespace

TEST_CASE("a model in every target loads, and its logits stay as close as the target's bits allow") {
  const std::string path = tiny_llama();
  if (path.empty()) NIHAO_SKIP("golden/quant/gguf");
  const TempFolder folder;
  const auto reference = exact_logits_of_file(path, prompt);
  // Weights of a tiny model are noise, whose errors nothing averages out. Observed: about two thirds of each.
  const std::pair<const char*, double> most[] = {{"F32", 0.0},     {"F16", 1e-3},    {"BF16", 8e-3},     {"Q8_0", 0.03},
                                                 {"Q6_K", 0.08},   {"Q5_K_M", 0.13}, {"Q4_K_M", 0.23},   {"Q4_0", 0.3},
                                                 {"IQ4_XS", 0.26}, {"MXFP4", 0.22},  {"MXFP4_MOE", 0.03}};
  CHECK(std::size(most) == std::size(recipes));
  for (const auto& [mix, bound] : most) {
    const std::string target(mix);  // a binding cannot be captured
    CAPTURE(target);
    const auto written = require(quantized(path, folder.path("m"), mix));
    const auto logits = exact_logits_of_file(folder.path("m"), prompt);
    CHECK(relative_rms(logits, reference) <= bound);
    const Gguf file = require(Gguf::open(folder.path("m")));
    CHECK(require(file.get<std::uint32_t>("general.file_type")) == recipe_from_name(mix)->file_type);
    CHECK(require(file.get<std::uint32_t>("general.quantization_version")) == 2);
    CHECK(file.find("tokenizer.ggml.tokens")->count == 272);
    for (const QuantizedTensor& t : written) {
      const TensorInfo* const tensor = file.tensors().find(t.name);
      REQUIRE(tensor != nullptr);
      CHECK(tensor->format == t.to);
      CHECK(tensor->bytes.size() == t.bytes);
      if (t.name.find("norm") != std::string::npos) CHECK(t.to == FormatId::F32);
    }
  }
}

TEST_CASE("the same bytes are written by any number of threads, and F32 again is the file's own") {
  const std::string path = tiny_llama();
  if (path.empty()) NIHAO_SKIP("golden/quant/gguf");
  const TempFolder folder;
  require(quantized(path, folder.path("one"), "Q4_K_M", {}, 1));
  require(quantized(path, folder.path("four"), "Q4_K_M", {}, 4));
  CHECK(read_text(folder.path("one")) == read_text(folder.path("four")));
}

TEST_CASE("what has lost bits is quantized again only if that is said") {
  const auto path = data("golden/quant/gguf/Q4_K.gguf");
  if (!path) NIHAO_SKIP("golden/quant/gguf");
  const TempFolder folder;
  const auto refused = quantized(path->string(), folder.path("m"), "Q8_0");
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::invalid_argument);
  CHECK(refused.error().message().find("tensor ") == 0);
  CHECK_FALSE(std::filesystem::exists(folder.path("m")));
  require(quantized(path->string(), folder.path("m"), "F32", {.requantize = true}));
  CHECK(most_apart(exact_logits_of_file(folder.path("m"), prompt), exact_logits_of_file(path->string(), prompt)) == 0);
}

TEST_CASE("an importance matrix changes what is written, and one of another model is refused") {
  const std::string path = tiny_llama();
  if (path.empty()) NIHAO_SKIP("golden/quant/gguf");
  const TempFolder folder;
  const Gguf file = require(Gguf::open(path));
  ImportanceMatrix matrix, other;
  matrix.datasets = {"a text"};
  matrix.chunks = 2;
  for (const TensorInfo& t : file.tensors().tensors()) {
    std::vector<float> sums(static_cast<std::size_t>(t.cols()));
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = static_cast<float>(i % 9);
    if (t.rank == 2) matrix.add({std::string(t.name), sums, {1}});
  }
  require(quantized(path, folder.path("plain"), "Q4_K_M"));
  const auto written =
      require(quantized(path, folder.path("weighted"), "Q4_K_M", {.importance = &matrix, .importance_file = "imatrix.gguf"}));
  CHECK(read_text(folder.path("plain")) != read_text(folder.path("weighted")));
  const Gguf weighted = require(Gguf::open(folder.path("weighted")));
  CHECK(require(weighted.get<std::string_view>("quantize.imatrix.file")) == "imatrix.gguf");
  CHECK(require(weighted.get<std::uint32_t>("quantize.imatrix.chunks_count")) == 2);
  for (const QuantizedTensor& t : written) CHECK(t.weighted == (format_info(t.to).block_size > 1));

  other.add({"blk.99.attn_q.weight", {1, 1}, {1}});
  CHECK(quantized(path, folder.path("m"), "Q4_K_M", {.importance = &other}).error().code == ErrorCode::mismatch);
  other.add({"blk.0.attn_q.weight", {1, 1}, {1}});
  const auto refused = quantized(path, folder.path("m"), "Q4_K_M", {.importance = &other});
  CHECK(refused.error().code == ErrorCode::mismatch);
  CHECK(refused.error().where == "tensor blk.0.attn_q.weight");
  CHECK_FALSE(std::filesystem::exists(folder.path("m")));
}

TEST_CASE("values that are no numbers, a full disk and a stop leave no file") {
  const TempFolder folder;
  const std::uint64_t shape[] = {2, 32};
  std::vector<float> values(64, 0.5f);
  GgufWriter writer;
  writer.add("general.architecture", "llama");
  REQUIRE(writer.add_tensor("blk.0.attn_q.weight", FormatId::F32, shape, std::as_bytes(std::span(values))).has_value());
  const auto attempt = [&](const char* mix, const QuantizeOptions& options = {}) {
    REQUIRE(writer.write(folder.path("in")).has_value());
    return quantized(folder.path("in"), folder.path("out"), mix, options);
  };
  REQUIRE(attempt("Q8_0").has_value());
  std::filesystem::remove(folder.path("out"));
  for (const float wrong : {std::nanf(""), INFINITY, -1e5f}) {
    values[40] = wrong;
    for (const char* mix : {"Q8_0", "Q4_0", "Q4_K_M", "MXFP4", "F16"}) {
      const auto refused = attempt(mix);
      REQUIRE_FALSE(refused.has_value());
      CHECK(refused.error().code == ErrorCode::numeric);
      CHECK(refused.error().message().find("blk.0.attn_q.weight: a value of row 1 ") != std::string::npos);
    }
  }
  values[40] = 0;
  std::stop_source stop;
  stop.request_stop();
  QuantizeOptions stopped;
  stopped.hooks.stop = stop.get_token();
  CHECK(attempt("Q8_0", stopped).error().code == ErrorCode::cancelled);
  CHECK_FALSE(std::filesystem::exists(folder.path("out")));
  if (std::filesystem::exists("/dev/full"))
    CHECK(quantized(folder.path("in"), "/dev/full", "Q8_0").error().code == ErrorCode::io);
}

TEST_CASE("a folder that cannot become GGUF says why") {
  const auto models = data("golden/models");
  if (!models) NIHAO_SKIP("golden/models");
  const Safetensors file = require(Safetensors::open((*models / "llama_gqa").string()));
  Json config = require(parse_json(read_text(*models / "llama_gqa" / "config.json")));
  config["model_type"] = "deepseek_v3_or_so";
  CHECK(tensors_of_folder(file, config, "").error().code == ErrorCode::unsupported);
  config["model_type"] = "llama";
  config["quantization_config"] = Json({{"quant_method", "awq"}});
  CHECK(tensors_of_folder(file, config, "").error().where == "quantization_config");
  config.erase("quantization_config");
  config["num_hidden_layers"] = 2;  // of three
  CHECK(tensors_of_folder(file, config, "").error().code == ErrorCode::unsupported);
}
