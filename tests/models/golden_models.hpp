// What the tests of whole models share: the golden checkpoints, and ways to run a model over a prompt.
#pragma once

#include "nihao/files/ggml_types.hpp"
#include "nihao/files/safetensors.hpp"
#include "nihao/models/any_model.hpp"
#include "support/data.hpp"
#include "support/temp_folder.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace nihao::test {

/// A golden checkpoint.
struct GoldenCase {
  std::string name;
  std::filesystem::path folder;
};

/// Those of the repository, every folder of tests/models/golden, and those of the large test data: the test says so if that is
/// not there.
inline std::vector<GoldenCase> golden_cases() {
  constexpr const char* shared[] = {"llama_gqa",      "llama_rope_llama3",
                                    "llama_tied_mqa", "qwen2",
                                    "qwen2_yarn",     "gemma3_text",
                                    "mistral_swa",    "olmo2",
                                    "qwen3",          "qwen3_moe",
                                    "gemma2",         "phi3",
                                    "phi3_longrope",  "phi3_partial_longrope",
                                    "granite",        "cohere2",
                                    "mixtral",        "phimoe",
                                    "dbrx",           "deepseek_v2_lite",
                                    "deepseek_v2",    "deepseek_v3",
                                    "llama4_text",    "llama4_text_llama3rope",
                                    "gpt_oss"};
  std::vector<GoldenCase> cases;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(source_dir) / "tests/models/golden"))
    cases.push_back({entry.path().filename().string(), entry.path()});
  std::sort(cases.begin(), cases.end(), [](const GoldenCase& a, const GoldenCase& b) { return a.name < b.name; });
  if (const auto models = data("golden/models"))
    for (const char* name : shared) cases.push_back({name, *models / name});
  else std::printf("SKIPPED: golden/models\n");
  return cases;
}

/// The ways that a golden case can be computed.
inline std::vector<MlaMode> mla_modes(const std::string& name) {
  if (name.find("deepseek") == std::string::npos) return {MlaMode::absorbed};
  return {MlaMode::naive, MlaMode::absorbed, MlaMode::merged};
}

/// A copy of a checkpoint's folder (links to its files) whose config.json is `config`.
class CheckpointFolder {
 public:
  CheckpointFolder(const std::filesystem::path& checkpoint, const std::string& config) {
    std::filesystem::create_symlink(std::filesystem::absolute(checkpoint / "model.safetensors"),
                                    temp_.root() / "model.safetensors");
    std::filesystem::create_symlink(std::filesystem::absolute(checkpoint / config), temp_.root() / "config.json");
  }
  [[nodiscard]] std::string path() const { return temp_.root().string(); }

 private:
  TempFolder temp_;
};

/// Checkpoints of golden/quant/hf.
inline constexpr const char* quantized_cases[] = {"awq_gemm_4bit",
                                                  "gptq_4bit_sym",
                                                  "gptq_4bit_asym_actorder",
                                                  "gptq_8bit_asym",
                                                  "gptq_8bit_sym_actorder",
                                                  "gptq_v2_4bit_asym",
                                                  "fp8_per_tensor_static",
                                                  "fp8_per_channel_dynamic",
                                                  "fp8_block128",
                                                  "w8a8_int8_channel",
                                                  "w4a16_pack_quantized",
                                                  "hqq_4bit",
                                                  "bnb_nf4",
                                                  "bnb_nf4_double_quant",
                                                  "mxfp4_gpt_oss",
                                                  "nvfp4_compressed_tensors",
                                                  "nvfp4_modelopt"};

/// Formats whose golden blocks have no golden model: ggml does not compute with the first, and cannot make the others. Formats
/// that no GGUF file has are in quantized_cases.
inline bool has_golden_file(FormatId format) {
  return ggml_type_of(format) != UINT32_MAX && format != FormatId::Q8_K && format != FormatId::Q1_0 && format != FormatId::Q2_0;
}

template <class T>
T require(Expected<T> result) {
  REQUIRE_MESSAGE(result.has_value(), (result ? "" : result.error().message()));
  return *std::move(result);
}

inline std::vector<TokenId> token_ids(const Safetensors& golden, const std::string& name) {
  const auto ids = golden.values<std::int32_t>(name);
  REQUIRE_MESSAGE(ids.has_value(), name);
  return {ids->begin(), ids->end()};
}

/// The largest difference between two equally long lists; infinite if there is a NaN in either.
inline double most_apart(std::span<const float> a, std::span<const float> b) {
  REQUIRE(a.size() == b.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double apart = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    most = std::isnan(apart) ? static_cast<double>(INFINITY) : std::max(most, apart);
  }
  return most;
}

/// Root mean square of the difference, relative to that of `b`.
inline double relative_rms(std::span<const float> a, std::span<const float> b) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double apart = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    difference += apart * apart;
    size += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  return std::sqrt(difference / size);
}

inline std::vector<float> copy(MatrixView<const float> m) {
  std::vector<float> values;
  for (std::size_t r = 0; r < m.rows(); ++r) values.insert(values.end(), m.row(r).begin(), m.row(r).end());
  return values;
}

/// Logits of all positions of `ids`, in steps of `chunk`.
inline std::vector<float> logits_of(ModelContext& context, std::span<const TokenId> ids, std::size_t chunk,
                                    std::size_t sequence = 0) {
  std::vector<float> all;
  for (std::size_t done = 0; done < ids.size(); done += chunk) {
    const SequenceTokens part{sequence, ids.subspan(done, std::min(chunk, ids.size() - done)), Wanted::all};
    const auto logits = context.step(std::span(&part, 1));
    REQUIRE_MESSAGE(logits.has_value(), (logits ? "" : logits.error().message()));
    const auto rows = copy(*logits);
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

inline TokenId most_likely(std::span<const float> logits) {
  return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

/// The prompt continued by the most likely token, `count` times.
inline std::vector<TokenId> continue_greedily(ModelContext& context, std::span<const TokenId> prompt, std::size_t count) {
  std::vector<TokenId> ids;
  auto logits = require(context.prefill(0, prompt));
  while (ids.size() < count) {
    ids.push_back(most_likely(logits.row(0)));
    if (ids.size() == count) break;
    const SequenceTokens next{0, std::span(&ids.back(), 1), Wanted::last};
    logits = require(context.step(std::span(&next, 1)));
  }
  return ids;
}

}  // namespace nihao::test
