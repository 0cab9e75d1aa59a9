// Public reports against other engines, as tests here: the numbers are those of the project's list of cases.
#include <nihao/files/gguf.hpp>
#include <nihao/text/tokenizer.hpp>

#include <doctest/doctest.h>

#include "support/build_kind.hpp"
#include "support/data.hpp"
#include "text/tiny_vocabulary.hpp"

#include <pthread.h>

#include <optional>
#include <string>
#include <vector>

using namespace nihao;
using Ids = std::vector<TokenId>;

namespace {

std::string times(std::string_view unit, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += unit;
  return out;
}

std::optional<Tokenizer> vocabulary(const std::string& name) {
  const auto path = test::data("text/vocabs/ggml-vocab-" + name + ".gguf");
  if (!path) return std::nullopt;
  const auto file = Gguf::open(path->string());
  REQUIRE(file.has_value());
  auto tokenizer = Tokenizer::from_gguf(*file);
  REQUIRE(tokenizer.has_value());
  return *std::move(tokenizer);
}

/// Encodes on a thread with a stack of 128 KiB, which no recursion over the text fits in, and checks that the text comes back. (A
/// sanitizer keeps a frame's variables apart, and so makes it several times as large.)
void check_deep(const Tokenizer& tokenizer, const std::string& text) {
  struct Work {
    const Tokenizer& tokenizer;
    const std::string& text;
    Ids ids;
  } work{tokenizer, text, {}};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, (test::sanitized ? 512 : 128) * 1024);
  pthread_t thread;
  const auto run = [](void* argument) -> void* {
    auto& w = *static_cast<Work*>(argument);
    w.ids = *w.tokenizer.encode(w.text, {.add_special = false});
    return nullptr;
  };
  REQUIRE(pthread_create(&thread, &attributes, run, &work) == 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  CHECK(tokenizer.decode(work.ids, {.skip_special = true, .clean_spaces = false}) == text);
  CHECK(work.ids.size() <= text.size() + 1);  // one more for the space in front
}

const char* const byte_level_names[] = {"gpt-2", "llama-bpe", "qwen2", "falcon", "deepseek-coder"};

/// Families whose vocabularies are not at hand: their word rules with a small vocabulary.
Tokenizer with_words(Pretokenizer words) {
  auto tokenizer = Tokenizer::from_data(test::tiny_byte_level(words).data);
  REQUIRE(tokenizer.has_value());
  return *std::move(tokenizer);
}

}  // namespace

TEST_CASE("C01: 26000 characters of one class without a break are encoded (letters, CJK, dots, spaces)") {
  for (const char* name : byte_level_names) {
    const auto tokenizer = vocabulary(name);
    if (!tokenizer) NIHAO_SKIP(std::string("vocabulary ") + name);
    for (const char* unit : {"a", "\u4F60", ".", " ", "\n", "1", "\u0301", "\U0001F600"})
      check_deep(*tokenizer, times(unit, 26000));
  }
}

TEST_CASE("C02: 43000 times A in Qwen2's vocabulary is one word of As") {
  const auto tokenizer = vocabulary("qwen2");
  if (!tokenizer) NIHAO_SKIP("vocabulary qwen2");
  const Ids ids = tokenizer->encode(times("A", 43000), {.add_special = false}).value();
  for (const TokenId id : ids) CHECK(tokenizer->piece(id) == times("A", tokenizer->piece(id).size()));
  CHECK(tokenizer->decode(ids) == times("A", 43000));
}

TEST_CASE("C03: 131072 times Z inside a tool message") {
  for (const char* name : byte_level_names) {
    const auto tokenizer = vocabulary(name);
    if (!tokenizer) NIHAO_SKIP(std::string("vocabulary ") + name);
    check_deep(*tokenizer, "<|im_start|>tool\n{\"output\": \"" + times("Z", 131072) + "\"}<|im_end|>\n");
  }
  check_deep(with_words(Pretokenizer::deepseek3), times("Z", 131072));
}

TEST_CASE("C04: 'us' thousands of times") {
  for (const char* name : byte_level_names) {
    const auto tokenizer = vocabulary(name);
    if (!tokenizer) NIHAO_SKIP(std::string("vocabulary ") + name);
    check_deep(*tokenizer, times("us", 20000));
  }
  check_deep(with_words(Pretokenizer::tekken), times("us", 20000));
}

TEST_CASE("C06: a long run of A") {
  for (const char* name : byte_level_names) {
    const auto tokenizer = vocabulary(name);
    if (!tokenizer) NIHAO_SKIP(std::string("vocabulary ") + name);
    check_deep(*tokenizer, times("A", 200000));
  }
  check_deep(with_words(Pretokenizer::tekken), times("A", 200000));
}

TEST_CASE("C10: text that starts with a space after a special token keeps its own word: a lone space, then the word with its") {
  const auto tokenizer = vocabulary("llama-spm");
  if (!tokenizer) NIHAO_SKIP("vocabulary llama-spm");
  const TokenId space = tokenizer->find(" ").value();
  const Ids ids = tokenizer->encode("Hello<s> world", {.add_special = false, .parse_special = true}).value();
  CHECK(ids == Ids{tokenizer->find(" Hello").value(), 1, space, tokenizer->find(" world").value()});
}

TEST_CASE("C11: the first two bytes of a three-byte character are no exception") {
  for (const char* name : {"gpt-2", "llama-bpe", "qwen2", "llama-spm"}) {
    const auto tokenizer = vocabulary(name);
    if (!tokenizer) NIHAO_SKIP(std::string("vocabulary ") + name);
    const auto ids = tokenizer->encode("\xE6\xAD", {.add_special = false});
    REQUIRE(ids.has_value());
    const bool byte_tokens = std::string(name) == "llama-spm";
    CHECK(tokenizer->decode(*ids) == (byte_tokens ? "\xE6\xAD" : "\uFFFD\uFFFD"));
  }
}

TEST_CASE("a megabyte of one letter, of spaces, of emoji and of CJK is encoded, on a small stack") {
  std::vector<Tokenizer> tokenizers;
  tokenizers.push_back(*Tokenizer::from_data(test::tiny_byte_level().data));
  tokenizers.push_back(*Tokenizer::from_data(test::tiny_sentencepiece().data));
  for (const char* name : {"gpt-2", "llama-bpe", "qwen2", "llama-spm"}) {
    if (auto tokenizer = vocabulary(name)) tokenizers.push_back(*std::move(tokenizer));
  }
  for (const Tokenizer& tokenizer : tokenizers) {
    for (const char* unit : {"a", " ", "\U0001F600", "\u4F60"})
      check_deep(tokenizer, times(unit, (1u << 20) / std::string_view(unit).size()));
  }
}
