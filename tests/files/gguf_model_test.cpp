#include "nihao/files/gguf.hpp"
#include "support/data.hpp"

#include <doctest/doctest.h>

using namespace nihao;

TEST_CASE("a GGUF file gives its metadata, typed, and its tensors by name") {
  const auto path = test::data("golden/quant/gguf/Q4_K.gguf");
  if (!path) NIHAO_SKIP("golden/quant/gguf/Q4_K.gguf");
  const auto file = Gguf::open(path->string());
  REQUIRE_MESSAGE(file.has_value(), (file ? "" : file.error().message()));
  CHECK(*file->architecture() == "llama");
  CHECK(file->version() == 3);
  CHECK(file->alignment() == 32);
  CHECK(file->metadata().size() == 23);
  CHECK(*file->get<int>("llama.embedding_length") == 256);
  CHECK(*file->get<std::uint8_t>("llama.block_count") == 1);
  CHECK(*file->get<float>("llama.rope.freq_base") == 10000.0f);
  CHECK(*file->get<bool>("tokenizer.ggml.add_bos_token"));
  CHECK(*file->get_or<int>("llama.no_such_key", 7) == 7);
  CHECK(*file->get_or<std::string_view>("general.architecture", "none") == "llama");

  const auto tokens = file->strings("tokenizer.ggml.tokens");
  REQUIRE(tokens.has_value());
  CHECK(tokens->size() == 272);
  CHECK((*tokens)[1] == "<s>");
  CHECK(file->array<float>("tokenizer.ggml.scores")->size() == 272);
  CHECK(file->array<int>("tokenizer.ggml.token_type")->at(1) == 3);

  const TensorInfo* q = file->tensors().find("blk.0.attn_k.weight");
  REQUIRE(q != nullptr);
  CHECK(q->format == FormatId::Q4_K);
  CHECK(q->rank == 2);
  CHECK(q->rows() == 64);
  CHECK(q->cols() == 256);
  CHECK(q->bytes.size() == 64 * 144);
  CHECK(file->tensors().find("blk.0.no_such") == nullptr);
  CHECK(file->tensors().mapped());
}

TEST_CASE("what a key lacks is an error that names the key") {
  const auto path = test::data("golden/quant/gguf/Q4_K.gguf");
  if (!path) NIHAO_SKIP("golden/quant/gguf/Q4_K.gguf");
  const auto file = Gguf::open(path->string());
  REQUIRE(file.has_value());
  CHECK(file->get<int>("llama.nothing").error().code == ErrorCode::missing);
  CHECK(file->get<int>("llama.nothing").error().message() == "metadata key \"llama.nothing\": the file does not have it");
  CHECK(file->get<int>("general.architecture").error().code == ErrorCode::mismatch);
  CHECK(file->get<std::int8_t>("llama.embedding_length").error().message() ==
        "metadata key \"llama.embedding_length\": wanted an integer, the file has u32 256");
  CHECK(file->get_or<bool>("llama.embedding_length", true).error().code == ErrorCode::mismatch);
  CHECK(file->array<int>("tokenizer.ggml.tokens").error().code == ErrorCode::mismatch);
  CHECK(file->strings("tokenizer.ggml.scores").error().code == ErrorCode::mismatch);
}

TEST_CASE("real models open whole") {
  for (const char* name : {"smollm2-135m-q4_1.gguf", "gemma3-270m-q4_k_m.gguf", "qwen2.5-coder-0.5b-q4_k_m.gguf"}) {
    const auto path = test::model(name);
    if (!path) NIHAO_SKIP(name);
    auto file = Gguf::open(path->string());
    REQUIRE_MESSAGE(file.has_value(), (file ? "" : file.error().message()));
    CHECK(file->strings("tokenizer.ggml.tokens")->size() > 40000);
    const std::string_view kept = *file->architecture();
    const TensorFile tensors = std::move(*file).take_tensors();  // the views outlive the Gguf
    CHECK(kept.size() > 3);
    REQUIRE(tensors.find("token_embd.weight") != nullptr);
    CHECK(tensors.find("token_embd.weight")->rows() > 40000);
  }
}
