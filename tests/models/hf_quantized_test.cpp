// Quantized checkpoints as they are on the hub, tiny ones, against float64 results of the reference implementations.
#include "golden_models.hpp"
#include "nihao/files/safetensors_writer.hpp"
#include "nihao/models/hf_quantization.hpp"
#include "nihao/models/llama.hpp"
#include "nihao/models/load_hf.hpp"

using namespace nihao;
using namespace nihao::test;

namespace {

TensorFile tensors_of(const std::string& folder) {
  const Json config = require(parse_json(read_text(folder + "/config.json")));
  return require(quantized_tensors(config, require(Safetensors::open(folder))));
}

/// Row r of a matrix, or of a stack of them, with its columns where they belong.
std::vector<float> row_of(const TensorInfo& tensor, std::size_t r) {
  const auto cols = static_cast<std::size_t>(tensor.cols());
  std::vector<std::byte> blocks(row_bytes(tensor.format, cols));
  std::vector<std::uint8_t> working(cols);
  tensor.parts->rows(r, 1, blocks.data(), working.data());
  const CpuWeight one{tensor.format,        1, static_cast<std::uint32_t>(cols), nullptr, blocks, tensor.parts->scale(),
                      tensor.parts->order()};
  std::vector<float> values(cols);
  one.read_row(0, values);
  return values;
}

/// A checkpoint of a few tensors, from made-up values or from a golden one.
class MadeCheckpoint {
 public:
  explicit MadeCheckpoint(std::string config) : config_(std::move(config)) {}
  /// A golden one's tensors; its config.json is to be taken too where `config` is empty.
  static MadeCheckpoint of(const std::filesystem::path& folder, std::string config = "") {
    MadeCheckpoint made(config.empty() ? read_text(folder / "config.json") : std::move(config));
    const auto file = require(Safetensors::open(folder.string()));
    for (const SafetensorsEntry& e : file.entries())
      made.tensors_.push_back({e.name, e.type, e.shape, {e.bytes.begin(), e.bytes.end()}});
    return made;
  }
  template <class T>
  MadeCheckpoint& put(std::string name, SafetensorsType type, std::vector<std::uint64_t> shape, const std::vector<T>& values) {
    remove(name);
    const auto bytes = std::as_bytes(std::span(values));
    tensors_.push_back({std::move(name), type, std::move(shape), {bytes.begin(), bytes.end()}});
    return *this;
  }
  MadeCheckpoint& remove(const std::string& name) {
    std::erase_if(tensors_, [&](const Owned& t) { return t.name == name; });
    return *this;
  }
  MadeCheckpoint& rename(const std::string& from, const std::string& to) {
    for (Owned& t : tensors_)
      if (t.name == from) t.name = to;
    return *this;
  }
  MadeCheckpoint& reshape(const std::string& name, std::vector<std::uint64_t> shape) {
    for (Owned& t : tensors_)
      if (t.name == name) t.shape = shape;
    return *this;
  }
  /// The first `from` of the configuration becomes `to`.
  MadeCheckpoint& edit(const std::string& from, const std::string& to) {
    const auto at = config_.find(from);
    REQUIRE_MESSAGE(at != config_.npos, from);
    config_.replace(at, from.size(), to);
    return *this;
  }
  [[nodiscard]] Expected<TensorFile> tensors() const {
    const TempFolder temp;  // what is mapped stays when the file is gone
    write(temp.root());
    return quantized_tensors(require(parse_json(config_)), require(Safetensors::open(temp.root().string())));
  }
  [[nodiscard]] std::size_t size() const { return tensors_.size(); }
  /// Without tensor i; with its axes turned around; as one axis; with elements of another type. False: it has no such change.
  bool damage(std::size_t i, int how) {
    Owned& t = tensors_[i];
    if (how == 0) tensors_.erase(tensors_.begin() + static_cast<std::ptrdiff_t>(i));
    else if (how == 1) std::reverse(t.shape.begin(), t.shape.end());
    else if (how == 2 && t.type == SafetensorsType::I32) t.type = SafetensorsType::F32;
    else if (how == 2 && t.type == SafetensorsType::U8) t.type = SafetensorsType::F8_E5M2;
    else if (how == 3 && t.shape.size() > 1)
      t.shape = {
          t.shape[0], 1,
          std::max<std::uint64_t>(1, t.shape[1]) * (t.shape.size() > 2 ? t.shape[2] : 1) * (t.shape.size() > 3 ? t.shape[3] : 1)};
    else return false;
    return true;
  }
  /// Writes the folder of a checkpoint.
  void write(const std::filesystem::path& folder) const {
    std::vector<SafetensorsTensor> all;
    for (const Owned& t : tensors_) all.push_back({t.name, t.type, t.shape, t.bytes});
    REQUIRE(write_safetensors((folder / "model.safetensors").string(), all).has_value());
    std::ofstream(folder / "config.json") << config_;
  }
  /// "code: message" of the error that it must be.
  [[nodiscard]] std::string error() const {
    const auto result = tensors();
    REQUIRE(!result);
    return concat(to_string(result.error().code), ": ", result.error().message());
  }

 private:
  struct Owned {
    std::string name;
    SafetensorsType type;
    std::vector<std::uint64_t> shape;
    std::vector<std::byte> bytes;
  };
  std::string config_;
  std::vector<Owned> tensors_;
};

using Words = std::vector<std::uint32_t>;
template <class T>
std::vector<T> rounded(std::initializer_list<float> values) {
  std::vector<T> out;
  for (const float v : values) out.push_back(round_to<T>(v));
  return out;
}

}  // namespace

TEST_CASE("every method's checkpoint has its reference's weights, to the bit") {
  const auto folder = data("golden/quant/hf");
  if (!folder) NIHAO_SKIP("golden/quant/hf");
  for (const std::string name : quantized_cases) {
    CAPTURE(name);
    const TensorFile tensors = tensors_of((*folder / name).string());
    const auto golden = require(Safetensors::open((*folder / name / "golden.safetensors").string()));
    int compared = 0;
    for (const SafetensorsEntry& entry : golden.entries()) {
      const auto expected = golden.values<float>(entry.name);
      const std::string rows = "dequantized_rows.", expert = "dequantized_expert0.";
      const bool is_expert = entry.name.find(expert) == 0;
      if (!is_expert && entry.name.find(rows) != 0) continue;
      const TensorInfo* tensor =
          tensors.find(is_expert ? entry.name.substr(expert.size()) + ".weight" : entry.name.substr(rows.size()));
      REQUIRE_MESSAGE(tensor != nullptr, entry.name);
      REQUIRE(tensor->parts != nullptr);
      // An expert's matrix is [columns, rows] there, and its gate and up alternate.
      const auto n = static_cast<std::size_t>(entry.shape[0]), cols = static_cast<std::size_t>(entry.shape[1]);
      const auto count = is_expert ? static_cast<std::size_t>(tensor->shape[1]) : n;
      REQUIRE((is_expert ? n : cols) == tensor->cols());
      for (std::size_t r = 0; r < count; ++r) {
        const auto row = row_of(*tensor, r);
        for (std::size_t c = 0; c < row.size(); ++c) {
          const std::size_t unit = entry.name.find("gate_up") == entry.name.npos ? r
                                   : r < count / 2                               ? 2 * r
                                                                                 : 2 * (r - count / 2) + 1;
          const float wanted = is_expert ? (*expected)[c * cols + unit] : (*expected)[r * cols + c];
          REQUIRE_MESSAGE(row[c] == wanted, entry.name, " ", r, " ", c);
        }
      }
      ++compared;
    }
    CHECK(compared >= 2);
  }
}

TEST_CASE("every method's checkpoint gives its reference's logits: exactly in the exact mode, closely in the fast") {
  const auto folder = data("golden/quant/hf");
  if (!folder) NIHAO_SKIP("golden/quant/hf");
  for (const std::string name : quantized_cases) {
    CAPTURE(name);
    const std::string path = (*folder / name).string();
    const auto golden = require(Safetensors::open(path + "/golden.safetensors"));
    const AnyModel exact = require(load_hf(path, {.cpu = {.threads = 2, .exact = true}}));
    const AnyModel fast = require(load_hf(path, {.cpu = {.threads = 2}}));
    const bool floats = format_info(exact.tensors().tensors()[0].format).as_floats;
    for (const std::string prompt : {"short", "long"}) {
      const auto ids = token_ids(golden, prompt + ".input_ids");
      const auto expected = require(golden.values<float>(prompt + ".logits"));
      const auto in_exact = require(exact.context({.positions = 32, .kv = KvType::f32}));
      const auto in_fast = require(fast.context({.positions = 32, .kv = KvType::f32}));
      const auto exact_logits = logits_of(*in_exact, ids, 32), fast_logits = logits_of(*in_fast, ids, 32);
      CHECK(most_apart(exact_logits, expected) <= 1e-4);
      // Activations in int8. Observed: exact at most 6e-6; fast 0.13, rms 0.9 to 1.3 %; of float codes 6e-6.
      CHECK(most_apart(fast_logits, expected) <= (floats ? 1e-4 : 0.3));
      CHECK(relative_rms(fast_logits, expected) <= (floats ? 1e-5 : 0.025));
      if (golden.find(prompt + ".logits_activation_quantized") == nullptr) continue;
      // The checkpoint's own rounding of activations moves the logits further from float's (rms 1.5 % in int8, 5 % in FP8) than
      // the fast mode's: a scale for 32 columns is finer than one for a token.
      const auto rounded = require(golden.values<float>(prompt + ".logits_activation_quantized"));
      CHECK(relative_rms(fast_logits, expected) < relative_rms(rounded, expected));
    }
  }
}

TEST_CASE("experts, latent attention, fused matrices and any other place for a weight take quantized ones") {
  const auto models = data("golden/models");
  if (!models) NIHAO_SKIP("golden/models");
  // A golden checkpoint's matrices in FP8, with scales of blocks, beside the same checkpoint with the values that those stand
  // for.
  for (const std::string name : {"deepseek_v3", "qwen3_moe", "phi3", "gemma2"}) {
    CAPTURE(name);
    const std::filesystem::path from = *models / name;
    auto plain = MadeCheckpoint::of(from), quantized = MadeCheckpoint::of(from);
    const std::string block = R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}, )";
    quantized.edit("{", block);
    const auto file = require(Safetensors::open(from.string()));
    int matrices = 0;
    for (const SafetensorsEntry& entry : file.entries()) {
      if (entry.shape.size() != 2 || entry.name.find("proj") == entry.name.npos) continue;
      const std::uint64_t rows = entry.shape[0], cols = entry.shape[1], across = ceil_div<std::uint64_t>(cols, 128);
      auto values = require(file.values<float>(entry.name));
      std::vector<float> scales;
      for (std::size_t i = 0; i < ceil_div<std::uint64_t>(rows, 128) * across; ++i)
        scales.push_back(0.002f + 0.0001f * static_cast<float>(i));
      std::vector<e4m3> codes;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const float scale = scales[i / cols / 128 * across + i % cols / 128];
        codes.push_back(to_e4m3(values[i] / scale));
        values[i] = to_float(codes.back()) * scale;
      }
      plain.put(entry.name, SafetensorsType::F32, entry.shape, values);
      quantized.put(entry.name, SafetensorsType::F8_E4M3, entry.shape, codes)
          .put(entry.name + "_scale_inv", SafetensorsType::F32, {ceil_div<std::uint64_t>(rows, 128), across}, scales);
      ++matrices;
    }
    CHECK(matrices >= 8);
    const auto logits = [&](const MadeCheckpoint& made) {
      const TempFolder folder;
      made.write(folder.root());
      const AnyModel model = require(load_hf(folder.root().string(), {.cpu = {.threads = 2, .exact = true}}));
      const auto context = require(model.context({.positions = 32, .kv = KvType::f32}));
      return logits_of(*context, std::vector<TokenId>{5, 17, 3, 101, 42, 8, 90}, 32);
    };
    CHECK(most_apart(logits(quantized), logits(plain)) <= 2e-5);
  }
}

TEST_CASE("bytes of LLM.int8() are the row's largest magnitude for 127, in any number of columns") {
  // No reference file: the method's definition, row by row, from Dettmers et al. 2022 (equation 5's inverse): w = q * absmax /
  // 127.
  for (const std::uint64_t cols : {std::uint64_t{64}, std::uint64_t{7}}) {
    CAPTURE(cols);
    MadeCheckpoint made(R"({"quantization_config": {"quant_method": "bitsandbytes", "load_in_8bit": true}})");
    std::vector<std::int8_t> q(3 * cols);
    for (std::size_t i = 0; i < q.size(); ++i) q[i] = static_cast<std::int8_t>(static_cast<int>(i * 37 % 255) - 127);
    q[1] = -128;
    made.put("a.weight", SafetensorsType::I8, {3, cols}, q)
        .put("a.SCB", SafetensorsType::F32, {3}, std::vector<float>{0.5f, 127.0f, 0.0123f})
        .put("a.weight_format", SafetensorsType::U8, {}, std::vector<std::uint8_t>{0});
    const TensorFile file = require(made.tensors());
    const TensorInfo* a = file.find("a.weight");
    REQUIRE(a != nullptr);
    CHECK(a->format == (cols == 64 ? FormatId::INT8 : FormatId::F32));  // a row must be whole blocks
    const float scb[] = {0.5f, 127.0f, 0.0123f};
    for (std::size_t r = 0; r < 3; ++r) {
      const auto row = row_of(*a, r);
      for (std::size_t c = 0; c < cols; ++c)
        CHECK(row[c] ==
              doctest::Approx(static_cast<double>(q[r * cols + c]) * static_cast<double>(scb[r]) / 127.0).epsilon(2e-7));
      if (r == 1) CHECK(row[2] == static_cast<float>(q[cols + 2]));
    }
    CHECK(made.put("a.weight_format", SafetensorsType::U8, {}, std::vector<std::uint8_t>{2}).error() ==
          "unsupported: tensor a.weight_format: bytes that are not row by row");
  }
}

TEST_CASE("weights of e5m2 are read as those of e4m3") {
  MadeCheckpoint made(R"({"quantization_config": {"quant_method": "fp8", "fmt": "e5m2"}})");
  std::vector<std::uint8_t> codes(2 * 32);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(i * 3 % 0x7c);
  made.put("a.weight", SafetensorsType::F8_E5M2, {2, 32}, codes)
      .put("a.weight_scale", SafetensorsType::F32, {1}, std::vector<float>{0.75f});
  const TensorFile file = require(made.tensors());
  REQUIRE(file.find("a.weight") != nullptr);
  CHECK(file.find("a.weight")->format == FormatId::FP8_E5M2);
  const auto row = row_of(*file.find("a.weight"), 1);
  for (std::size_t c = 0; c < 32; ++c) CHECK(row[c] == to_float(e5m2{codes[32 + c]}) * 0.75f);
}

TEST_CASE("packed rows of compressed-tensors may have zero points, and scales that are no halves") {
  const std::string config = R"({"quantization_config": {"quant_method": "compressed-tensors", "format": "pack-quantized",
      "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32}}}}})";
  // Two rows of 64: codes i % 16; row r's zero points of both groups are nibbles r of the words.
  Words codes;
  for (std::size_t i = 0; i < 16; ++i) codes.push_back(i % 2 == 0 ? 0x76543210u : 0xfedcba98u);
  for (const float tiny : {0.01f, 1e-6f}) {  // as bfloat16 both; a half has no room for the second
    CAPTURE(tiny);
    const auto scales = rounded<bf16>({tiny, 2 * tiny, 3 * tiny, 0.0f});
    MadeCheckpoint made(config);
    made.put("a.weight_packed", SafetensorsType::I32, {2, 8}, codes)
        .put("a.weight_shape", SafetensorsType::I64, {2}, std::vector<std::int64_t>{2, 64})
        .put("a.weight_scale", SafetensorsType::BF16, {2, 2}, scales)
        .put("a.weight_zero_point", SafetensorsType::I32, {1, 2}, Words{0x00000093u, 0x0000005fu});
    const TensorFile file = require(made.tensors());
    const TensorInfo& a = *file.find("a.weight");
    CHECK(a.format == FormatId::INT4);
    const int zeros[2][2] = {{3, 15}, {9, 5}};
    for (std::size_t r = 0; r < 2; ++r) {
      const auto row = row_of(a, r);
      for (std::size_t c = 0; c < 64; ++c)
        CHECK(row[c] == (static_cast<float>(c % 16) - static_cast<float>(zeros[r][c / 32])) * to_float(scales[2 * r + c / 32]));
    }
  }
  // Scales that reach too far for halves: the values as floats.
  MadeCheckpoint far(config);
  far.put("a.weight_packed", SafetensorsType::I32, {2, 8}, codes)
      .put("a.weight_shape", SafetensorsType::I64, {2}, std::vector<std::int64_t>{2, 64})
      .put("a.weight_scale", SafetensorsType::BF16, {2, 2}, rounded<bf16>({1e-30f, 1.0f, 1e30f, 2.0f}));
  const TensorFile file = require(far.tensors());
  CHECK(file.find("a.weight")->format == FormatId::F32);
  CHECK(row_of(*file.find("a.weight"), 1)[1] == -7.0f * to_float(to_bf16(1e30f)));
}

TEST_CASE("groups of columns in any order: gathered where blocks can be made, floats where they cannot") {
  const std::string config =
      R"({"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": true}})";
  const auto make = [&](const std::vector<std::int32_t>& g_idx) {
    MadeCheckpoint made(config);
    Words codes(8 * 8);
    for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint32_t>(i) * 2654435761u;
    made.put("a.qweight", SafetensorsType::I32, {8, 8}, codes)
        .put("a.qzeros", SafetensorsType::I32, {2, 1}, Words{0x76543210u, 0xffffffffu})  // 16 is a zero point too
        .put("a.scales", SafetensorsType::F16, {2, 8}, std::vector<f16>(16, to_f16(0.5f)))
        .put("a.g_idx", SafetensorsType::I32, {64}, g_idx);
    return made.tensors();
  };
  std::vector<std::int32_t> alternating(64), uneven(64);
  for (std::size_t i = 0; i < 64; ++i) alternating[i] = static_cast<std::int32_t>(i % 2), uneven[i] = i % 3 == 0 ? 1 : 0;
  for (const auto& g_idx : {alternating, uneven}) {
    const TensorFile file = require(make(g_idx));
    const TensorInfo& a = *file.find("a.weight");
    CHECK(a.format == (g_idx == alternating ? FormatId::INT4 : FormatId::F32));
    CHECK((a.parts->order() != nullptr) == (g_idx == alternating));
    for (std::size_t r = 0; r < 8; ++r) {
      const auto row = row_of(a, r);
      for (std::size_t c = 0; c < 64; ++c) {
        const auto code = static_cast<std::uint32_t>(c / 8 * 8 + r) * 2654435761u >> 4 * (c % 8) & 15;
        const float zero = g_idx[c] == 0 ? static_cast<float>(r + 1) : 16.0f;
        CHECK(row[c] == (static_cast<float>(code) - zero) * 0.5f);
      }
    }
  }
  uneven[5] = 2;
  const auto bad = make(uneven);
  REQUIRE(!bad);
  CHECK(bad.error().message() == "tensor a.g_idx: column 5 is in group 2 of 2");
}

TEST_CASE("a checkpoint that is not what its method says is refused with the key or the tensor") {
  const auto folder = data("golden/quant/hf");
  if (!folder) NIHAO_SKIP("golden/quant/hf");
  const auto golden = [&](const char* name) { return MadeCheckpoint::of(*folder / name); };
  const std::string k = "model.layers.0.self_attn.k_proj.";
  const std::string place = "tensor " + k;
  CHECK(golden("awq_gemm_4bit").edit("\"awq\"", "\"awk\"").error() ==
        "unsupported: quantization_config.quant_method: \"awk\" is none of: awq, gptq, fp8, fbgemm_fp8, modelopt, "
        "compressed-tensors, "
        "hqq, bitsandbytes, mxfp4");
  CHECK(golden("awq_gemm_4bit").edit("\"bits\": 4", "\"bits\": 3").error() ==
        "unsupported: quantization_config.bits: AWQ has 4 bits, not 3");
  CHECK(golden("awq_gemm_4bit").edit("\"gemm\"", "\"gemv\"").error() ==
        "unsupported: quantization_config.version: codes packed as \"gemv\", and gemm is what is known");
  CHECK(golden("awq_gemm_4bit").edit("\"group_size\": 64", "\"group_size\": 0").error() ==
        "malformed: quantization_config.group_size: it is 0");
  CHECK(golden("awq_gemm_4bit").edit("\"group_size\": 64", "\"group_size\": \"64\"").error() ==
        "mismatch: quantization_config.group_size: wanted an integer that fits, found \"64\"");
  CHECK(golden("awq_gemm_4bit").remove(k + "scales").error() == "missing: " + place + "scales: the file has no such tensor");
  CHECK(golden("awq_gemm_4bit").remove(k + "qzeros").error() == "missing: " + place + "qzeros: the file has no such tensor");
  CHECK(golden("awq_gemm_4bit").reshape(k + "scales", {64, 2}).error() ==
        "mismatch: " + place + "scales: its shape is [64, 2], and the matrix needs [2, 64]");
  CHECK(golden("awq_gemm_4bit").reshape(k + "qweight", {1024}).error() ==
        "mismatch: " + place + "qweight: its shape is [1024], which is no matrix's");
  CHECK(golden("awq_gemm_4bit").put(k + "weight", SafetensorsType::F16, {1}, std::vector<f16>(1)).error() ==
        "unsupported: " + place + "weight: this method of quantization has no such part");
  for (const char* bits : {"2", "3"})
    CHECK(golden("gptq_4bit_sym").edit("\"bits\": 4", concat("\"bits\": ", bits)).error() ==
          concat("unsupported: quantization_config.bits: GPTQ of ", bits, " bits, and 4 and 8 are what is known"));
  CHECK(golden("gptq_4bit_sym").edit("\"checkpoint_format\": \"gptq\"", "\"checkpoint_format\": \"marlin\"").error() ==
        "unsupported: quantization_config.checkpoint_format: codes packed as \"marlin\", and gptq and gptq_v2 are what is known");
  CHECK(golden("gptq_4bit_sym").edit("\"bits\": 4", "\"bits\": 8").error() ==
        "mismatch: tensor model.layers.0.mlp.down_proj.scales: its shape is [4, 128], and the matrix needs [2, 128]");
  CHECK(golden("fp8_per_tensor_static").remove(k + "weight_scale").error() ==
        "missing: " + place + "weight_scale: the file has no such tensor");
  CHECK(
      golden("fp8_per_tensor_static").edit("\"quant_method\": \"fp8\"", "\"quant_method\": \"fp8\", \"fmt\": \"e3m4\"").error() ==
      "unsupported: quantization_config.fmt: \"e3m4\" is neither e4m3 nor e5m2");
  CHECK(golden("fp8_block128").reshape("model.layers.0.mlp.down_proj.weight_scale_inv", {2, 1}).error() ==
        "mismatch: tensor model.layers.0.mlp.down_proj.weight_scale_inv: scales of shape [2, 1] for a matrix of [128, 256]");
  CHECK(golden("fp8_per_channel_dynamic").reshape(k + "weight_scale", {8, 8}).error() ==
        "mismatch: " + place + "weight_scale: scales of shape [8, 8] for a matrix of [64, 128]");
  CHECK(golden("w4a16_pack_quantized").edit("\"num_bits\": 4", "\"num_bits\": 3").error() ==
        "unsupported: tensor model.layers.0.mlp.down_proj.weight_packed: no group of the configuration packs integers of 4 or 8 "
        "bits so");
  CHECK(golden("hqq_4bit").put(k + "axis", SafetensorsType::I32, {}, Words{0}).error() ==
        "unsupported: " + place + "axis: HQQ of groups across rows, and axis 1 is what is known");
  CHECK(golden("hqq_4bit").put(k + "nbits", SafetensorsType::I32, {}, Words{3}).error() ==
        "unsupported: " + place + "nbits: HQQ of 3 bits, and 4 and 8 are what is known");
  CHECK(golden("hqq_4bit").put(k + "shape", SafetensorsType::I64, {2}, std::vector<std::int64_t>{64, 1280}).error() ==
        "mismatch: " + place + "shape: groups of 64 do not make up the matrix");
  CHECK(
      golden("bnb_nf4").rename(k + "weight.quant_state.bitsandbytes__nf4", k + "weight.quant_state.bitsandbytes__fp4").error() ==
      "unsupported: " + place + "weight.quant_state.bitsandbytes__fp4: codes of fp4, and nf4 is what is known");
  CHECK(golden("bnb_nf4").put(k + "weight.quant_map", SafetensorsType::F32, {16}, std::vector<float>(16, 0.5f)).error() ==
        "unsupported: " + place + "weight.quant_map: levels that are not NF4's");
  CHECK(golden("bnb_nf4").remove(k + "weight.absmax").error() ==
        "missing: " + place + "weight.absmax: the file has no such tensor");
  CHECK(golden("mxfp4_gpt_oss").remove("model.layers.0.mlp.experts.down_proj_scales").error() ==
        "missing: tensor model.layers.0.mlp.experts.down_proj_scales: the file has no such tensor");
  CHECK(golden("nvfp4_modelopt").put(k + "weight_scale_2", SafetensorsType::F32, {}, std::vector<float>{0}).error() ==
        "malformed: " + place + "weight_scale_2: it is 0");
  CHECK(golden("nvfp4_modelopt")
            .put(k + "weight_scale", SafetensorsType::F8_E4M3, {64, 8}, std::vector<std::uint8_t>(512, 0x81))
            .error() == "malformed: " + place + "weight_scale: scale 0 is negative or no number");
  CHECK(golden("nvfp4_modelopt").edit("\"NVFP4\"", "\"W4A8_AWQ\"").error() ==
        "unsupported: quantization_config.quant_algo: \"W4A8_AWQ\" is neither FP8 nor NVFP4");
}

TEST_CASE("a checkpoint of which a tensor is missing or of another shape or type is refused, or read within its bytes") {
  const auto folder = data("golden/quant/hf");
  if (!folder) NIHAO_SKIP("golden/quant/hf");
  int refused = 0, taken = 0;
  for (const std::string name : quantized_cases) {
    CAPTURE(name);
    const auto whole = MadeCheckpoint::of(*folder / name);
    for (std::size_t i = 0; i < whole.size(); ++i)
      for (int how = 0; how < 4; ++how) {
        auto made = whole;
        if (!made.damage(i, how)) continue;
        const auto result = made.tensors();
        if (!result) {
          CHECK_FALSE(result.error().where.empty());
          ++refused;
          continue;
        }
        for (const TensorInfo& t : result->tensors())
          if (t.parts != nullptr) row_of(t, static_cast<std::size_t>(t.rows()) - 1);
        ++taken;
      }
  }
  CHECK(refused > 700);
  CHECK(taken > 100);  // norms, biases, a square matrix turned around
}

TEST_CASE("a module that is not quantized is what its file has, and a type that admits one method refuses another's") {
  const auto folder = data("golden/quant/hf");
  if (!folder) NIHAO_SKIP("golden/quant/hf");
  // k_proj in floats: what its codes stand for.
  auto made = MadeCheckpoint::of(*folder / "awq_gemm_4bit");
  const std::string k = "model.layers.0.self_attn.k_proj.";
  const TensorFile quantized = require(made.tensors());
  std::vector<float> values;
  for (std::size_t r = 0; r < 64; ++r) {
    const auto row = row_of(*quantized.find(k + "weight"), r);
    values.insert(values.end(), row.begin(), row.end());
  }
  for (const char* part : {"qweight", "qzeros", "scales"}) made.remove(k + part);
  made.put(k + "weight", SafetensorsType::F32, {64, 128}, values);
  const TensorFile mixed =
      require(made.edit("\"modules_to_not_convert\": null", "\"modules_to_not_convert\": [\"k_proj\"]").tensors());
  CHECK(mixed.find(k + "weight")->format == FormatId::F32);
  CHECK(mixed.find("model.layers.0.self_attn.q_proj.weight")->format == FormatId::INT4);

  using WithoutFloats = Llama<Sizes{}, Quant<FP8_E4M3, BF16>>;
  const auto refused = load_hf<WithoutFloats>((*folder / "awq_gemm_4bit").string());
  REQUIRE(!refused);
  CHECK(refused.error().code == ErrorCode::mismatch);
  CHECK(load_hf<WithoutFloats>((*folder / "fp8_block128").string()).has_value());
}
