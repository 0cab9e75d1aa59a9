// BERT's words and pieces. Expected words are those of Hugging Face's BertNormalizer and BertPreTokenizer 0.23.3.
#include <nihao/files/gguf.hpp>
#include <nihao/text/bert_text.hpp>
#include <nihao/text/byte_trie.hpp>
#include <nihao/text/stream_decoder.hpp>
#include <nihao/text/tokenizer.hpp>

#include <doctest/doctest.h>

#include "support/data.hpp"
#include "text/random.hpp"
#include "text/tiny_vocabulary.hpp"

#include <chrono>
#include <map>
#include <string>
#include <vector>

using namespace nihao;

namespace {

std::string bert_words(std::string_view text, BertWords::Options options = {}) {
  std::string out;
  BertWords(options).cut(text, [&](std::string_view word, std::size_t) { out.append(out.empty() ? "" : "|").append(word); });
  return out;
}

std::string word_pieces(const Tokenizer& tokenizer, std::string_view text) {
  std::string out;
  const std::vector<TokenId> ids = *tokenizer.encode(text, {.add_special = false});
  for (const TokenId id : ids) out.append(out.empty() ? "" : "|").append(tokenizer.piece(id));
  return out;
}

}  // namespace

TEST_CASE("BERT's words: lower case without accents, cut at white space, around punctuation and ideographs") {
  CHECK(bert_words("\u00C9t\u00E9  LOW!") == "ete|low|!");
  CHECK(bert_words("\u00C9t\u00E9 LOW", {.lowercase = false, .strip_accents = false}) == "\u00C9t\u00E9|LOW");
  CHECK(bert_words("\uC548\uB155") == "\u110B\u1161\u11AB\u1102\u1167\u11BC");  // Hangul stays decomposed
  CHECK(bert_words("a\u0323\u0301b") == "ab");
  CHECK(bert_words("\u4F60\u597Dab") == "\u4F60|\u597D|ab");
  CHECK(bert_words("\uF900y") == "\u8C48|y");  // cut as what it was, then decomposed
  CHECK(bert_words("a\u200Bb\x01\uFFFD c") == "ab|c");
  CHECK(bert_words("\u0130I") == "ii");
  CHECK(bert_words("\u0130", {.lowercase = true, .strip_accents = false}) == "i\u0307");
  CHECK(bert_words("a\u302E\U0001D165b") == "a\U0001D165\u302Eb");  // marks that are no accents come in order: 216, 224
  CHECK(bert_words("v\vt") == "vt");
}

TEST_CASE("WordPiece takes the longest piece each time; a word that is not all pieces, or too long, is unknown") {
  const auto made = Tokenizer::from_data(test::tiny_word_piece().data);
  REQUIRE_MESSAGE(made.has_value(), made.error().message());
  CHECK(word_pieces(*made, "Lower lowest!") == " low|er| low|est| !");
  CHECK(word_pieces(*made, "lowz \u4F60") == "[UNK]| \u4F60");
  CHECK(word_pieces(*made, std::string(100, 'a')).starts_with(" a|aa|aa"));
  CHECK(word_pieces(*made, std::string(101, 'a')) == "[UNK]");
  CHECK(*made->encode("low") == std::vector<TokenId>{1, 3, 2});
  CHECK(*made->encode("low[SEP]low", {.parse_special = true}) == std::vector<TokenId>{1, 3, 2, 3, 2});
}

TEST_CASE("a trie finds the longest key that a text begins with") {
  test::Random random(4);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> texts;
    const unsigned letters = 1 + random.below(256);
    for (unsigned n = random.below(200); n > 0; --n) {
      std::string& text = texts.emplace_back();
      for (unsigned k = random.below(6); k > 0; --k) text += static_cast<char>(random.below(letters));
    }
    std::vector<ByteTrie::Key> keys;
    std::map<std::string, TokenId> first;
    for (const std::string& text : texts) {
      first.emplace(text, static_cast<TokenId>(keys.size()));
      keys.push_back({text, static_cast<TokenId>(keys.size())});
    }
    const auto trie = ByteTrie::build(keys);
    REQUIRE(trie.has_value());
    for (int asked = 0; asked < 200; ++asked) {
      std::string text;
      if (!texts.empty() && random.below(2) == 0) text = texts[random.below(static_cast<unsigned>(texts.size()))];
      for (unsigned k = random.below(4); k > 0; --k) text += static_cast<char>(random.below(letters));
      ByteTrie::Match expected;
      for (std::size_t size = 1; size <= text.size(); ++size)
        if (const auto found = first.find(text.substr(0, size)); found != first.end()) expected = {size, found->second};
      const auto match = trie->longest(text);
      CHECK(match.size == expected.size);
      CHECK(match.id == expected.id);
    }
  }
  CHECK(!ByteTrie::build({{"a", ByteTrie::max_id + 1}}).has_value());
}

TEST_CASE("BERT and XLM-RoBERTa: a megabyte of one character, or of marks, takes less than a second") {
  for (const char* name : {"bert-bge", "nomic-bert-moe"}) {
    const auto path = test::data(std::string("text/vocabs/ggml-vocab-") + name + ".gguf");
    if (!path) NIHAO_SKIP("a megabyte through " + std::string(name));
    const auto file = Gguf::open(path->string());
    REQUIRE(file.has_value());
    const auto tokenizer = Tokenizer::from_gguf(*file);
    REQUIRE(tokenizer.has_value());
    for (const std::string_view unit : {"a", " ", "=", "\U0001F600", "\u4F60", "\u0301", "\u302E", "\xFF"}) {
      std::string text;
      while (text.size() < 1000000) text += unit;
      const auto begin = std::chrono::steady_clock::now();
      const auto ids = tokenizer->encode(text);
      CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(1));
      REQUIRE(ids.has_value());
      CHECK(ids->size() <= text.size() + 2);
    }
  }
}
