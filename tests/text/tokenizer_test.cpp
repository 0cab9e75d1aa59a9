#include <nihao/text/tokenizer.hpp>

#include <doctest/doctest.h>

#include "text/random.hpp"
#include "text/tiny_vocabulary.hpp"

#include <string>
#include <thread>
#include <vector>

using namespace nihao;
using Ids = std::vector<TokenId>;

namespace {

Tokenizer make(const test::TinyVocabulary& v) {
  auto tokenizer = Tokenizer::from_data(v.data);
  REQUIRE_MESSAGE(tokenizer.has_value(), tokenizer.error().message());
  return *std::move(tokenizer);
}

std::string pieces(const Tokenizer& tokenizer, std::string_view text, EncodeOptions options = {.add_special = false}) {
  std::string out;
  const auto ids = tokenizer.encode(text, options);
  REQUIRE(ids.has_value());
  for (const TokenId id : *ids) out.append(out.empty() ? "" : "|").append(tokenizer.piece(id));
  return out;
}

ErrorCode error_of(const test::TinyVocabulary& v) {
  const auto tokenizer = Tokenizer::from_data(v.data);
  REQUIRE(!tokenizer.has_value());
  return tokenizer.error().code;
}

}  // namespace

TEST_CASE("byte-level words are merged by rank, and any bytes that are UTF-8 come back") {
  const Tokenizer tokenizer = make(test::tiny_byte_level());
  CHECK(pieces(tokenizer, "low lower") == "low| low|er");
  CHECK(pieces(tokenizer, "aaaaa") == "aaaa|a");
  CHECK(pieces(tokenizer, "\u4F60") == "\u4F60");
  test::Random random(5);
  for (int round = 0; round < 5000; ++round) {
    std::string text;
    for (unsigned n = random.below(30); n > 0; --n)
      append_utf8(text, random.below(3) == 0 ? random.below(0xD800) : random.below(128));
    CHECK(tokenizer.decode(*tokenizer.encode(text), {.clean_spaces = false}) == text);
  }
}

TEST_CASE("a word that is a token is taken whole only if the rules lead there, unless the vocabulary says whole words first") {
  auto v = test::tiny_byte_level();
  v.add("wer");  // no rule makes it
  CHECK(pieces(make(v), "wer") == "w|er");
  v.data.whole_words_first = true;
  const Tokenizer tokenizer = make(v);
  CHECK(pieces(tokenizer, "wer") == "wer");
  CHECK(pieces(tokenizer, "wers") == "w|er|s");
}

TEST_CASE("encoding does not depend on what was encoded before") {
  const Tokenizer used = make(test::tiny_byte_level());
  for (const char* text : {"low", " low", "aaaa", "er", "low", " low", "aaaa", "er"})
    CHECK(used.encode(text).value() == make(test::tiny_byte_level()).encode(text).value());
}

TEST_CASE("one tokenizer encodes in several threads at once") {
  const Tokenizer tokenizer = make(test::tiny_byte_level());
  const std::string text = "low lower aaaa \u4F60 er er low";
  const Ids expected = *tokenizer.encode(text);
  bool same[4] = {};
  std::vector<std::thread> threads;
  for (bool& ok : same) {
    threads.emplace_back([&] {
      ok = true;
      for (int i = 0; i < 200; ++i) ok = ok && *tokenizer.encode(text) == expected;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const bool ok : same) CHECK(ok);
}

TEST_CASE("special tokens in text are tokens only when asked, user-defined ones always") {
  const Tokenizer tokenizer = make(test::tiny_byte_level());
  const TokenId end = tokenizer.find("<|end|>").value(), tool = tokenizer.find("<tool>").value();
  CHECK(*tokenizer.encode("low<|end|>", {.parse_special = true}) == Ids{tokenizer.find("low").value(), end});
  CHECK(pieces(tokenizer, "<|end|>") == "<|||e|n|d|||>");
  CHECK(*tokenizer.encode("<tool>") == Ids{tool});
  CHECK(tokenizer.type(end) == TokenType::control);
  CHECK(tokenizer.is_special(end));
  CHECK(!tokenizer.is_special(tool));
  CHECK(tokenizer.decode(Ids{end, tool}) == "<|end|><tool>");
  CHECK(tokenizer.decode(Ids{end, tool}, {.skip_special = true}) == "<tool>");
}

TEST_CASE("BOS and EOS are added when the model wants them and the caller does") {
  auto v = test::tiny_byte_level();
  v.data.add_bos = v.data.add_eos = true;
  const Tokenizer tokenizer = make(v);
  const TokenId end = tokenizer.eos().value();
  CHECK(tokenizer.adds_bos());
  CHECK(*tokenizer.encode("") == Ids{end, end});
  CHECK(tokenizer.encode("", {.add_special = false})->empty());
  v.data.bos = no_token;
  CHECK(!make(v).adds_bos());
  v.data.eos = 1 << 20;  // out of range: none
  CHECK(!make(v).eos().has_value());
}

TEST_CASE("numbers out of range are no tokens: they have no text, no type, and are passed over") {
  const Tokenizer tokenizer = make(test::tiny_byte_level());
  for (const TokenId id : {-1, INT32_MIN, INT32_MAX, static_cast<TokenId>(tokenizer.vocabulary_size())}) {
    CHECK(tokenizer.piece(id).empty());
    CHECK(tokenizer.type(id) == TokenType::undefined);
    CHECK(!tokenizer.is_eog(id));
    CHECK(tokenizer.decode(Ids{'a', id, 'b'}) == "ab");
  }
}

TEST_CASE("the end of a generation is what the file names and what families name") {
  auto v = test::tiny_byte_level();
  v.data.eos = v.add("<|endoftext|>", TokenType::control);
  const TokenId turn = v.add("<|im_end|>");  // the file's type is wrong
  const TokenId tag = v.add("</s>");         // ordinary text here
  const TokenId strike = v.add("<eos>", TokenType::user_defined);
  const Tokenizer tokenizer = make(v);
  CHECK(tokenizer.is_eog(v.data.eos));
  CHECK(tokenizer.is_eog(turn));
  CHECK(tokenizer.eot() == turn);
  CHECK(tokenizer.type(turn) == TokenType::control);
  CHECK(!tokenizer.is_eog(tag));
  CHECK(tokenizer.is_eog(strike));
  CHECK(tokenizer.type(strike) == TokenType::user_defined);
  CHECK(*tokenizer.encode("<|im_end|>", {.parse_special = true}) == Ids{turn});
  CHECK(tokenizer.encode("<|im_end|>")->size() > 1);
  CHECK(*tokenizer.encode("</s>", {.parse_special = true}) == Ids{tag});
  CHECK(tokenizer.encode("</s>")->size() > 1);
}

TEST_CASE("in the harmony format <|end|> does not end the generation") {
  auto v = test::tiny_byte_level();
  const TokenId end = v.data.eos;
  v.data.eos = v.add("<|return|>", TokenType::control);
  CHECK(make(v).is_eog(end));
  const TokenId call = v.add("<|call|>", TokenType::control);
  CHECK(!make(v).is_eog(end));
  CHECK(make(v).is_eog(call));
}

TEST_CASE("SentencePiece merges by score, spells out what it lacks in bytes, and strips its own space") {
  const Tokenizer tokenizer = make(test::tiny_sentencepiece());
  CHECK(pieces(tokenizer, "low lower") == " low| low|er");
  CHECK(pieces(tokenizer, "  low") == "  | low");
  CHECK(pieces(tokenizer, "aaaaa") == " |aaaa|a");
  CHECK(pieces(tokenizer, "\u4F60\u597D") == " |\u4F60|\xE5|\xA5|\xBD");
  CHECK(pieces(tokenizer, "") == "");
  CHECK(tokenizer.decode(*tokenizer.encode("low \u597D")) ==
        "<s>"
        " low \u597D");
  CHECK(tokenizer.decode(*tokenizer.encode("low \u597D"), {.skip_special = true}) == "low \u597D");
  CHECK(tokenizer.decode(*tokenizer.encode(" low", {.add_special = false})) == " low");
}

TEST_CASE("to SentencePiece a user-defined token is text, unless special tokens are parsed") {
  auto v = test::tiny_sentencepiece();
  v.data.strip_right.push_back(v.add("<t>", TokenType::user_defined));
  const Tokenizer tokenizer = make(v);
  CHECK(pieces(tokenizer, "<t> low<t>low") == " |<t>| low|<t>|low");
  CHECK(pieces(tokenizer, "<t> low<t>low", {.add_special = false, .parse_special = true}) == "<t>| low|<t>| low");
}

TEST_CASE("without byte tokens SentencePiece gives the unknown token for each byte, or nothing") {
  auto v = test::tiny_sentencepiece(false);
  CHECK(pieces(make(v), "\u00E9") == " |<unk>|<unk>");
  v.data.unknown = no_token;
  CHECK(pieces(make(v), "\u00E9") == " ");
}

TEST_CASE("cutting SentencePiece text into stretches changes nothing, also where tokens have inner spaces") {
  // The definition, over the whole text at once, against the encoder.
  test::Random random(6);
  for (int round = 0; round < 3000; ++round) {
    test::TinyVocabulary v;
    v.data.model = TokenizerData::Model::sentencepiece;
    const char* letters[] = {"a", "b", " ", "\u4F60"};
    for (const char* letter : letters) v.add(letter == std::string(" ") ? "\u2581" : letter, TokenType::normal, -100);
    for (unsigned n = random.below(12); n > 0; --n) {
      std::string piece;
      for (unsigned k = 2 + random.below(3); k > 0; --k) {
        const char* letter = letters[random.below(4)];
        piece += letter == std::string(" ") ? "\u2581" : letter;
      }
      v.add(piece, TokenType::normal, static_cast<float>(random.below(5)));
    }
    const Tokenizer tokenizer = make(v);
    std::string text;
    for (unsigned n = random.below(70); n > 0; --n) text += letters[random.below(4)];
    std::vector<std::string> parts;
    for (std::size_t at = 0; at < text.size(); at += utf8_length(text[at]))
      parts.push_back(text.substr(at, utf8_length(text[at])));
    for (;;) {
      std::size_t best = parts.size();
      float score = 0;
      for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
        const TokenId id = tokenizer.vocabulary().find_normal(parts[i] + parts[i + 1]);
        if (id == no_token) continue;
        const float its = v.data.scores[static_cast<std::size_t>(id)];
        if (best == parts.size() || its > score) best = i, score = its;
      }
      if (best == parts.size()) break;
      parts[best] += parts[best + 1];
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
    Ids expected;
    for (const std::string& part : parts) expected.push_back(tokenizer.vocabulary().find_normal(part));
    REQUIRE(*tokenizer.encode(text) == expected);
    REQUIRE(*tokenizer.encode(text) == expected);  // now with what was remembered
  }
}

TEST_CASE("spaces before punctuation and in contractions are dropped where the vocabulary says so") {
  auto v = test::tiny_byte_level();
  v.data.clean_spaces = true;
  const Tokenizer tokenizer = make(v);
  const auto round_trip = [&](std::string_view text) { return tokenizer.decode(*tokenizer.encode(text)); };
  CHECK(round_trip("a ?  ! b .c ,") == "a? ! b.c,");
  CHECK(round_trip("it 's I 'm we 're you 've") == "it's I'm we're you've");
  CHECK(round_trip("he 'll I 'd 't 'x") == "he 'll I 'd 't 'x");
  CHECK(round_trip("a ' b ' c") == "a'b'c");
  CHECK(round_trip(" ' ' ") == "'' ");
  CHECK(round_trip(" ?") == "?");
  CHECK(round_trip("") == "");
  CHECK(tokenizer.decode(*tokenizer.encode("a != b"), {.clean_spaces = false}) == "a != b");
}

TEST_CASE("find() knows normal tokens by their bytes, special ones by their names, and single bytes") {
  const Tokenizer spm = make(test::tiny_sentencepiece());
  CHECK(spm.piece(spm.find(" low").value()) == " low");
  CHECK(spm.find("<s>") == 1);
  CHECK(spm.find("\xFF") == 3 + 255);
  CHECK(spm.type(spm.find("a").value()) == TokenType::normal);
  CHECK(!spm.find("absent").has_value());
  CHECK(!spm.find("").has_value());
}

TEST_CASE("a vocabulary that contradicts itself is an error that says where") {
  CHECK(error_of(test::TinyVocabulary{}) == ErrorCode::missing);
  auto v = test::tiny_byte_level();
  v.data.types.pop_back();
  CHECK(error_of(v) == ErrorCode::mismatch);
  v = test::tiny_byte_level();
  v.data.merges.push_back({"q", "zz"});
  CHECK(error_of(v) == ErrorCode::malformed);
  CHECK(Tokenizer::from_data(v.data).error().where == "merge 9");
  v = test::tiny_byte_level();
  v.data.merges.push_back({"q", "q"});  // both are tokens, together they are none
  CHECK(error_of(v) == ErrorCode::malformed);
  v = test::tiny_sentencepiece();
  v.data.scores.pop_back();
  CHECK(error_of(v) == ErrorCode::mismatch);
  v = test::tiny_sentencepiece();
  v.add("<0xZZ>", TokenType::byte);
  CHECK(error_of(v) == ErrorCode::malformed);
}

TEST_CASE("scores that are no numbers order the pieces somehow, and encoding ends") {
  auto v = test::tiny_sentencepiece();
  for (std::size_t i = 0; i < v.data.scores.size(); ++i)
    v.data.scores[i] = i % 3 == 0 ? __builtin_nanf("") : i % 3 == 1 ? -__builtin_inff() : -__builtin_nanf("");
  const Tokenizer tokenizer = make(v);
  CHECK(tokenizer.decode(*tokenizer.encode("low lower aaaa", {.add_special = false})) == "low lower aaaa");
}

TEST_CASE("tokens of the same bytes, empty tokens and tokens outside the alphabet do no harm") {
  auto v = test::tiny_byte_level();
  v.add("low");
  v.add("");
  const TokenId foreign = v.add("\u4F60");  // not spelled in the byte alphabet: it decodes as it stands, and no text leads to it
  v.add("[PAD]", TokenType::unused);
  const Tokenizer tokenizer = make(v);
  CHECK(pieces(tokenizer, "low") == "low");
  CHECK(tokenizer.encode("low")->front() < 300);
  CHECK(tokenizer.piece(foreign) == "\u4F60");
  CHECK(tokenizer.encode("\u4F60")->front() < 300);
  CHECK(tokenizer.piece(static_cast<TokenId>(tokenizer.vocabulary_size()) - 1).empty());
}
