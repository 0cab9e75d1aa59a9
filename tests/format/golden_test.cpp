#include "nihao/files/gguf.hpp"
#include "nihao/files/safetensors.hpp"
#include "nihao/format/registry.hpp"
#include "support/data.hpp"

#include <cstring>
#include <doctest/doctest.h>
#include <string>
#include <vector>

using namespace nihao;

static bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

TEST_CASE("single blocks give ggml's values, bit for bit") {
  const auto path = test::data("golden/quant/blocks/golden.safetensors");
  if (!path) NIHAO_SKIP("golden/quant/blocks");
  const auto golden = Safetensors::open(path->string());
  REQUIRE_MESSAGE(golden.has_value(), (golden ? "" : golden.error().message()));
  int formats = 0;
  for (const FormatId id : all_formats) {
    const std::string name(format_info(id).name);
    const SafetensorsEntry* blocks = golden->find(name + ".blocks");
    if (blocks == nullptr) continue;  // F32 and F16 have none: their definition is IEEE's; Q8_K: tests/format/formula_test.cpp
    const auto expected = *golden->values<float>(name + ".values");
    std::vector<float> values(expected.size());
    REQUIRE(blocks->bytes.size() == row_bytes(id, values.size()));
    dequantize_row(id, blocks->bytes, values);
    CHECK_MESSAGE(same_bits(values, expected), name);
    ++formats;
  }
  CHECK(formats == 26);
}

TEST_CASE("the rows of quantized models give ggml's values, bit for bit") {
  const auto folder = test::data("golden/quant/gguf");
  if (!folder) NIHAO_SKIP("golden/quant/gguf");
  const auto golden = Safetensors::open((*folder / "golden.safetensors").string());
  REQUIRE_MESSAGE(golden.has_value(), (golden ? "" : golden.error().message()));
  for (const FormatId id : all_formats) {
    const std::string name(format_info(id).name);
    if (!std::filesystem::exists(*folder / (name + ".gguf"))) continue;  // Q8_K, Q1_0 and Q2_0 have none
    const auto file = Gguf::open((*folder / (name + ".gguf")).string());
    REQUIRE_MESSAGE(file.has_value(), (file ? "" : file.error().message()));
    for (const char* tensor : {"blk.0.attn_q.weight", "blk.0.ffn_down.weight"}) {
      const TensorInfo* info = file->tensors().find(tensor);
      REQUIRE(info != nullptr);
      CHECK(info->format == id);
      const auto expected = *golden->values<float>(name + "." + tensor + ".rows");
      std::vector<float> values(expected.size());
      REQUIRE(expected.size() == 8 * info->cols());
      dequantize_row(id, info->bytes.first(row_bytes(id, values.size())), values);
      CHECK_MESSAGE(same_bits(values, expected), name << " " << tensor);
    }
  }
}
