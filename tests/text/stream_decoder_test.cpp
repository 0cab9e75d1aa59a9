#include <nihao/text/stream_decoder.hpp>

#include <doctest/doctest.h>

#include "text/random.hpp"
#include "text/tiny_vocabulary.hpp"

#include <string>
#include <vector>

using namespace nihao;

TEST_CASE("any ids in a row, streamed, are what decode() gives, made valid") {
  for (const test::TinyVocabulary& v : {test::tiny_byte_level(), test::tiny_sentencepiece()}) {
    const Tokenizer tokenizer = Tokenizer::from_data(v.data).value();
    test::Random random(7);
    for (int round = 0; round < 3000; ++round) {
      std::vector<TokenId> ids(random.below(20));
      for (TokenId& id : ids) id = static_cast<TokenId>(random.below(static_cast<unsigned>(tokenizer.vocabulary_size()) + 2)) - 1;
      for (const bool skip : {false, true}) {
        StreamDecoder decoder(tokenizer, {.skip_special = skip});
        std::string out, expected;
        for (const TokenId id : ids) {
          const std::string_view piece = decoder.push(id);
          REQUIRE(is_valid_utf8(piece));
          out += piece;
        }
        out += decoder.flush();
        append_valid_utf8(expected, tokenizer.decode(ids, {.skip_special = skip, .clean_spaces = false}));
        REQUIRE(out == expected);
      }
    }
  }
}

TEST_CASE("a character cut by tokens comes out whole with its last byte, and a cut one at the end as U+FFFD") {
  const Tokenizer tokenizer = Tokenizer::from_data(test::tiny_byte_level().data).value();
  StreamDecoder decoder(tokenizer);
  CHECK(decoder.push(0xE4) == "");
  CHECK(decoder.push(0xBD) == "");
  CHECK(decoder.holds_bytes());
  CHECK(decoder.push(0xA0) == "\u4F60");
  CHECK(!decoder.holds_bytes());
  CHECK(decoder.push(0xE4) == "");
  CHECK(decoder.push('!') == "\uFFFD!");
  CHECK(decoder.push(0xF0) == "");
  CHECK(decoder.flush() == "\uFFFD");
  CHECK(decoder.flush() == "");
  CHECK(decoder.push('a') == "a");
}

TEST_CASE("what goes on after a prompt keeps the space of its first word") {
  const Tokenizer tokenizer = Tokenizer::from_data(test::tiny_sentencepiece().data).value();
  const TokenId low = tokenizer.find(" low").value();
  CHECK(StreamDecoder(tokenizer).push(low) == "low");
  CHECK(StreamDecoder(tokenizer, {.at_start = false}).push(low) == " low");
  StreamDecoder after_bos(tokenizer);
  CHECK(after_bos.push(tokenizer.bos().value()) == "");
  CHECK(after_bos.push(low) == "low");
}

TEST_CASE("control tokens are text only when asked for") {
  const Tokenizer tokenizer = Tokenizer::from_data(test::tiny_byte_level().data).value();
  const TokenId end = tokenizer.eos().value();
  CHECK(StreamDecoder(tokenizer).push(end) == "");
  CHECK(StreamDecoder(tokenizer, {.skip_special = false}).push(end) == "<|end|>");
}
