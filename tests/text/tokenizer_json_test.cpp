// Tokenizers from tokenizer.json: the ids of Hugging Face's own engine on every shared case, and what is refused.
#include <nihao/text/stream_decoder.hpp>
#include <nihao/text/tokenizer_json.hpp>

#include <doctest/doctest.h>

#include "support/data.hpp"
#include "support/temp_folder.hpp"

#include <fstream>

using namespace nihao;

namespace {

// `mended`: so many cases come back whole here where Hugging Face's decoder breaks them: it takes an added token that is a
// letter, such as DeepSeek Coder's "\u00FC", for the spelling of a byte.
void check_hf_cases(const std::string& name, std::size_t cases, std::size_t mended = 0) {
  const auto file = test::data("text/hf/" + name + ".tokenizer.json");
  const auto path = test::data("text/hf/" + name + ".json");
  if (!file || !path) NIHAO_SKIP("text/hf/" + name);
  const auto json = parse_json(test::read_text(*file));
  REQUIRE(json.has_value());
  const auto tokenizer = tokenizer_from_json(*json);
  REQUIRE_MESSAGE(tokenizer.has_value(), tokenizer.error().message());
  const Json data = *parse_json(test::read_text(*path));
  CHECK(data["cases"].size() == cases);
  for (const Json& c : data["cases"]) {
    CAPTURE(c.dump());
    const auto text = c["text"].get<std::string>();
    const auto ids = c["ids"].get<std::vector<TokenId>>();
    CHECK(*tokenizer->encode(text, {.add_special = false, .parse_special = true}) == ids);
    if (c.contains("ids_add_special"))
      CHECK(*tokenizer->encode(text, {.parse_special = true}) == c["ids_add_special"].get<std::vector<TokenId>>());
    auto decoded = c["decoded"].get<std::string>();
    if (mended > 0 && decoded.find("\uFFFD") != std::string::npos && text.find("\uFFFD") == std::string::npos)
      decoded = text, --mended;
    CHECK(tokenizer->decode(ids, {.clean_spaces = false}) == decoded);
    StreamDecoder decoder(*tokenizer, {.skip_special = false});
    std::string streamed;
    for (const TokenId id : ids) streamed += decoder.push(id);
    CHECK(streamed + std::string(decoder.flush()) == decoded);
  }
  CHECK(mended == 0);
}

// A byte-level tokenizer of three letters and their joins, as its file says it.
const char* const small = R"({
  "added_tokens": [
    {"id": 6, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
    {"id": 8, "content": "<tag>", "single_word": false, "lstrip": true, "rstrip": true, "normalized": false, "special": false}],
  "normalizer": null,
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
  "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
    {"Sequence": {"id": "A", "type_id": 0}}], "special_tokens": {"<s>": {"id": "<s>", "ids": [6], "tokens": ["<s>"]}}},
  "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4, "Ġ": 5}, "merges": ["a b", ["ab", "c"]]}})";

Json edited(std::string_view pointer, std::string_view value) {
  Json json = *parse_json(small);
  json[Json::json_pointer(std::string(pointer))] = *parse_json(value);
  return json;
}
std::string refusal(std::string_view pointer, std::string_view value) {
  const auto made = tokenizer_from_json(edited(pointer, value));
  return made ? "accepted" : concat(to_string(made.error().code), ": ", made.error().message());
}

}  // namespace

TEST_CASE("GPT-2's tokenizer.json gives the ids of Hugging Face's engine") { check_hf_cases("gpt2", 306); }
TEST_CASE("DeepSeek Coder's tokenizer.json gives the ids of Hugging Face's engine") {
  check_hf_cases("deepseek-coder-33b-base", 333, 40);
}
TEST_CASE("DeepSeek-V3's tokenizer.json gives the ids of Hugging Face's engine") { check_hf_cases("deepseek-v3", 333); }
TEST_CASE("Llama 2's tokenizer.json, which merges characters, gives the ids of Hugging Face's engine") {
  check_hf_cases("llama2-spm-bpe", 312);
}

TEST_CASE("a tokenizer.json's tokens, merges, added tokens and what stands around a text") {
  const auto t = tokenizer_from_json(*parse_json(small));
  REQUIRE_MESSAGE(t.has_value(), t.error().message());
  CHECK(t->vocabulary_size() == 9);
  CHECK(t->type(7) == TokenType::unused);
  CHECK(*t->encode("abcab<s>") == std::vector<TokenId>{6, 4, 3});  // no token for < s >
  CHECK(*t->encode("abc<s>ab", {.parse_special = true}) == std::vector<TokenId>{6, 4, 6, 3});
  CHECK(*t->encode("c <tag> c", {.add_special = false}) == std::vector<TokenId>{2, 5, 8, 5, 2});
  CHECK(*t->encode("c <tag> c", {.add_special = false, .parse_special = true}) == std::vector<TokenId>{2, 8, 2});
  CHECK(std::vector<TokenId>(t->before().begin(), t->before().end()) == std::vector<TokenId>{6});
  CHECK_FALSE(t->adds_bos());  // no config says that <s> is one
}

TEST_CASE("tokenizer_config.json and generation_config.json name the tokens that begin and end") {
  const Json config = *parse_json(R"({"bos_token": {"content": "<s>"}, "eos_token": "abc", "pad_token": null,
    "clean_up_tokenization_spaces": true, "tokenizer_class": "PreTrainedTokenizerFast"})");
  const auto t = tokenizer_from_json(*parse_json(small), config, *parse_json(R"({"eos_token_id": [3, 4]})"));
  REQUIRE_MESSAGE(t.has_value(), t.error().message());
  CHECK(t->bos() == 6);
  CHECK(t->adds_bos());
  CHECK(t->eos() == 4);
  CHECK_FALSE(t->pad());
  CHECK(std::vector<TokenId>(t->eog().begin(), t->eog().end()) == std::vector<TokenId>{3, 4});
  // Llama's class of transformers makes the post_processor from the flags.
  Json llama = config;
  llama["tokenizer_class"] = "LlamaTokenizerFast", llama["add_bos_token"] = false, llama["add_eos_token"] = true;
  CHECK(*tokenizer_from_json(*parse_json(small), llama)->encode("ab") == std::vector<TokenId>{3, 4});
}

TEST_CASE("a tokenizer.json's tokens are special where it says so, not by their names") {
  Json json = *parse_json(small);
  json["model"]["vocab"]["</s>"] = 9;
  const auto t = tokenizer_from_json(json);
  REQUIRE_MESSAGE(t.has_value(), t.error().message());
  CHECK(t->type(9) == TokenType::normal);
  CHECK(t->eog().empty());
  CHECK(t->encode("</s>", {.add_special = false, .parse_special = true})->empty());  // no rule leads there, and < is no token
  // A rule that makes an added token is left out, as the token comes before all rules.
  json["added_tokens"][0]["id"] = 4, json["added_tokens"][0]["content"] = "abc";
  json["post_processor"] = nullptr;
  const auto added = tokenizer_from_json(json);
  REQUIRE_MESSAGE(added.has_value(), added.error().message());
  CHECK(*added->encode("abcab", {.parse_special = true}) == std::vector<TokenId>{4, 3});
  CHECK(*added->encode("abcab") == std::vector<TokenId>{3, 2, 3});
}

TEST_CASE("what a tokenizer.json says and the library does not know is refused with its path") {
  CHECK(refusal("/model/type", "\"Other\"") == "unsupported: model.type: it is \"Other\", and this is not known");
  CHECK(refusal("/model/dropout", "0.1").find("unsupported: model.dropout") == 0);
  CHECK(refusal("/model/vocab", "[]") == "missing: model.vocab: wanted an object of tokens");
  CHECK(refusal("/model/vocab/a", "-1").find("mismatch: model.vocab") == 0);
  CHECK(refusal("/model/vocab/a", "4000000000").find("limit: model.vocab") == 0);
  CHECK(refusal("/model/merges", "[\"a b c\"]") == "malformed: model.merges.0: \"a b c\" is not two tokens");
  CHECK(refusal("/model/merges", "[\"a q\"]").find("names no token") != std::string::npos);
  CHECK(refusal("/model/merges", "7") == "missing: model.merges: wanted an array of merges");
  CHECK(refusal("/normalizer", R"({"type": "Lowercase"})").find("unsupported: normalizer: it is {\"type\":\"Lowercase\"}") == 0);
  CHECK(refusal("/normalizer", R"({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Nmt"}]})")
            .find("unsupported: normalizer.normalizers.1") == 0);
  CHECK(refusal("/pre_tokenizer", "null").find("unsupported: pre_tokenizer") == 0);
  CHECK(refusal("/pre_tokenizer/add_prefix_space", "true").find("unsupported: pre_tokenizer") == 0);
  CHECK(refusal("/post_processor", R"({"type": "RobertaProcessing"})").find("unsupported: post_processor") == 0);
  CHECK(refusal("/post_processor/special_tokens", "{}") == "missing: post_processor.special_tokens: <s> is not listed");
  CHECK(refusal("/post_processor/special_tokens/<s>/ids", "[99]").find("malformed: token 99") == 0);
  CHECK(refusal("/added_tokens/0/single_word", "true").find("unsupported: added_tokens.0") == 0);
  CHECK(refusal("/added_tokens/0/id", "\"x\"").find("mismatch: added_tokens.0.id") == 0);
  CHECK(refusal("/added_tokens", "7") == "mismatch: added_tokens: wanted an array");
}

TEST_CASE("a folder's tokenizer is read from its files, and an error names the file") {
  const test::TempFolder folder;
  const std::string place = folder.root().string();
  CHECK(tokenizer_from_folder(place).error().code == ErrorCode::io);
  std::ofstream(folder.path("tokenizer.json")) << small;
  std::ofstream(folder.path("tokenizer_config.json")) << R"({"bos_token": "<s>"})";
  const auto t = tokenizer_from_folder(place);
  REQUIRE_MESSAGE(t.has_value(), t.error().message());
  CHECK(t->bos() == 6);
  std::ofstream(folder.path("tokenizer_config.json")) << "{";
  CHECK(tokenizer_from_folder(place).error().message().find("tokenizer_config.json") != std::string::npos);
}
