// What a GGUF file's metadata may not say: a small model's file with one entry changed.
#include "golden_models.hpp"
#include "nihao/files/gguf_writer.hpp"
#include "nihao/models/load.hpp"

#include <cstring>
#include <limits>

using namespace nihao;
using namespace nihao::test;

namespace {

/// The tiny llama's file with `key` set to `value`.
template <class T>
Expected<AnyModel> load_with(std::string_view key, T value) {
  const Gguf file = require(Gguf::open((*data("golden/quant/gguf/F32.gguf")).string()));
  GgufWriter writer;
  for (const GgufEntry& entry : file.metadata())
    if (entry.key != key && entry.key != "general.alignment") writer.add(entry);
  writer.add(key, value);
  for (const TensorInfo& t : file.tensors().tensors())
    REQUIRE(writer.add_tensor(t.name, t.format, std::span(t.shape).first(t.rank), t.bytes).has_value());
  const std::vector<std::byte> bytes = writer.bytes();
  std::vector<std::uint64_t> words(bytes.size() / 8 + 1);  // at an address that from_bytes takes
  std::memcpy(words.data(), bytes.data(), bytes.size());
  auto model = load(std::as_bytes(std::span(words)).first(bytes.size()));
  if (!model) return std::move(model).error();
  REQUIRE(model->context({.positions = 16}).has_value());
  return Error{ErrorCode::cancelled, "it loads"};  // the model would outlive its bytes
}

template <class T>
void refused(std::string_view key, T value, ErrorCode code, std::string_view what) {
  CAPTURE(key);
  CAPTURE(value);
  const auto model = load_with(key, value);
  REQUIRE(!model);
  CAPTURE(model.error().message());
  CHECK(to_string(model.error().code) == to_string(code));
  CHECK(model.error().message().find(what) != std::string::npos);
}

template <class T>
void accepted(std::string_view key, T value) {
  refused(key, value, ErrorCode::cancelled, "it loads");
}

}  // namespace

TEST_CASE("a vocab_size that contradicts the list of tokens is refused") {
  if (!data("golden/quant/gguf/F32.gguf")) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  accepted("llama.vocab_size", std::uint32_t{272});
  for (const std::uint32_t wrong : {0u, 271u, 273u, UINT32_MAX})
    refused("llama.vocab_size", wrong, ErrorCode::mismatch, "llama.vocab_size: it is ");
  refused("llama.vocab_size", std::uint32_t{300}, ErrorCode::mismatch, "the file has 272 tokens, and an embedding of 272 rows");
}

TEST_CASE("special tokens outside the vocabulary are refused, and -1 is none") {
  if (!data("golden/quant/gguf/F32.gguf")) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  for (const std::string name : {"bos", "eos", "eot", "eom", "unknown", "padding"}) {
    const std::string key = "tokenizer.ggml." + name + "_token_id";
    accepted(key, std::uint32_t{271});
    accepted(key, UINT32_MAX);
    accepted(key, std::int32_t{-1});
    refused(key, std::uint32_t{272}, ErrorCode::malformed, key + ": token 272 is not one of the 272 in the list");
    refused(key, std::uint32_t{1u << 31}, ErrorCode::malformed, key);
    refused(key, std::int32_t{-2}, ErrorCode::malformed, key);
  }
}

TEST_CASE("a norm's eps that is no finite number is refused") {
  if (!data("golden/quant/gguf/F32.gguf")) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  using Limits = std::numeric_limits<float>;
  for (const float wrong : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(), -1e-5f})
    refused("llama.attention.layer_norm_rms_epsilon", wrong, ErrorCode::malformed, "eps");
  accepted("llama.attention.layer_norm_rms_epsilon", 1e-6f);
}
