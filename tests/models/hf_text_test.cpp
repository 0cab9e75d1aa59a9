// What a Hugging Face folder says of text: its tokenizer and its chat template, wherever it keeps them.
#include "nihao/models/load_hf.hpp"

#include <doctest/doctest.h>

#include "support/temp_folder.hpp"

#include <fstream>

using namespace nihao;

namespace {

void write_file(const test::TempFolder& folder, const char* name, std::string_view text) {
  std::ofstream(folder.path(name), std::ios::binary) << text;
}
std::string rendered(const AnyModel::Text& text) {
  const Message message{"user", "hi"};
  return text.chat_template ? *text.chat_template->render(std::span(&message, 1), false, "", "")
                            : text.chat_template.error().message();
}

constexpr std::string_view tokenizer_json = R"({"added_tokens": [], "normalizer": null, "post_processor": null,
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
  "model": {"type": "BPE", "vocab": {"h": 0, "i": 1, "hi": 2}, "merges": ["h i"]}})";

}  // namespace

TEST_CASE("a folder without a tokenizer or a template says that of each, and is no error") {
  const test::TempFolder folder;
  const auto text = text_from_folder(folder.root().string());
  REQUIRE(text.has_value());
  CHECK(text->tokenizer.error().message().find("tokenizer.json") != std::string::npos);
  CHECK(rendered(*text) == "the model's files have no chat template");
}

TEST_CASE("a folder's tokenizer and its template, from a file of its own or from tokenizer_config.json") {
  const test::TempFolder folder;
  write_file(folder, "tokenizer.json", tokenizer_json);
  write_file(folder, "tokenizer_config.json", R"({"eos_token": "i", "chat_template": "one {{ messages[0].content }}"})");
  const auto one = text_from_folder(folder.root().string());
  REQUIRE_MESSAGE(one.has_value(), one.error().message());
  REQUIRE(one->tokenizer.has_value());
  CHECK(*one->tokenizer->encode("hi") == std::vector<TokenId>{2});
  CHECK(one->tokenizer->eos() == 1);
  CHECK(rendered(*one) == "one hi");
  write_file(folder, "tokenizer_config.json",
             R"({"chat_template": [{"name": "tool_use", "template": "tools"}, {"name": "default", "template": "two"}]})");
  CHECK(rendered(*text_from_folder(folder.root().string())) == "two");
  write_file(folder, "chat_template.jinja", "three");
  CHECK(rendered(*text_from_folder(folder.root().string())) == "three");
  write_file(folder, "chat_template.jinja", "{% if");
  CHECK(rendered(*text_from_folder(folder.root().string())).find("chat template: line 1") != std::string::npos);
}

TEST_CASE("a folder's tokenizer that is not known is told of, and one that is broken is an error") {
  const test::TempFolder folder;
  write_file(folder, "tokenizer.json", R"({"model": {"type": "Other"}})");
  const auto unknown = text_from_folder(folder.root().string());
  REQUIRE(unknown.has_value());
  CHECK(unknown->tokenizer.error().code == ErrorCode::unsupported);
  write_file(folder, "tokenizer.json", "{");
  CHECK(text_from_folder(folder.root().string()).error().message().find("tokenizer.json") != std::string::npos);
  write_file(folder, "tokenizer.json", tokenizer_json);
  write_file(folder, "tokenizer_config.json", "[");
  CHECK(text_from_folder(folder.root().string()).error().message().find("tokenizer_config.json") != std::string::npos);
}
