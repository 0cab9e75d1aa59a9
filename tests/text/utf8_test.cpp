#include <nihao/text/tokenizer_input.hpp>
#include <nihao/text/utf8.hpp>

#include <doctest/doctest.h>

#include "text/random.hpp"

#include <string>

using namespace nihao;

namespace {
std::string repaired(std::string_view bytes) {
  std::string out;
  append_valid_utf8(out, bytes);
  return out;
}
}  // namespace

TEST_CASE("every code point survives encoding and decoding, and is valid unless a surrogate") {
  for (char32_t code = 0; code < 0x110000; ++code) {
    std::string bytes;
    append_utf8(bytes, code);
    const bool surrogate = code >= 0xD800 && code < 0xE000;
    const DecodedChar c = decode_utf8(bytes, 0);
    if (c.valid == surrogate || is_valid_utf8(bytes) == surrogate || decode_utf8_unchecked(bytes.data()) != code ||
        (!surrogate && (c.code != code || c.length != bytes.size()))) {
      FAIL("U+", static_cast<unsigned>(code));
    }
  }
}

TEST_CASE("each maximal subpart of invalid bytes becomes one U+FFFD") {
  const std::string r(replacement_utf8);
  CHECK(repaired("") == "");
  CHECK(repaired("abc") == "abc");
  CHECK(repaired("\xFF") == r);
  CHECK(repaired("\xC0\xAF") == r + r);                  // overlong
  CHECK(repaired("\xE0\x80\xAF") == r + r + r);          // overlong
  CHECK(repaired("\xED\xA0\x80") == r + r + r);          // a surrogate
  CHECK(repaired("\xF4\x90\x80\x80") == r + r + r + r);  // beyond U+10FFFF
  CHECK(repaired("\xE4\xBD") == r);                      // truncated: one subpart
  CHECK(repaired("\xE4\xBD!") == r + "!");
  CHECK(repaired("\xF0\x9F\x98") == r);
  CHECK(repaired("\xF0\x9F\x98\xF0\x9F\x98\x80") == r + "\xF0\x9F\x98\x80");
  // The standard's own example, table 3-8.
  CHECK(repaired("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64") == "a" + r + r + r + "b" + r + "c" + r + r + "d");
}

TEST_CASE("a stream cut anywhere gives the same text as all bytes at once") {
  test::Random random(1);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes;
    const char* pieces[] = {"a",    "\xC3\xA9", "\xE4\xBD\xA0", "\xF0\x9F\x98\x80", "\x80", "\xE4",
                            "\xBD", "\xF0\x9F", "\xC0",         "\xED\xA0",         "\xFF", "\xF4\x90"};
    for (unsigned n = random.below(8); n > 0; --n) bytes += pieces[random.below(static_cast<unsigned>(std::size(pieces)))];
    Utf8Stream stream;
    std::string out;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t size = std::min<std::size_t>(random.below(4), bytes.size() - at);
      stream.push(std::string_view(bytes).substr(at, size), out);
      REQUIRE(is_valid_utf8(out));
      REQUIRE(stream.waiting() <= 3);
      at += size;
    }
    stream.finish(out);
    REQUIRE(out == repaired(bytes));
  }
}

TEST_CASE("a stream holds bytes back only while they can become a character") {
  Utf8Stream stream;
  std::string out;
  stream.push("\xE4\xBD", out);
  CHECK(out.empty());
  CHECK(stream.waiting() == 2);
  stream.push("!", out);
  CHECK(out == std::string(replacement_utf8) + "!");
  CHECK(stream.waiting() == 0);
}

TEST_CASE("input of a byte-level tokenizer becomes text as llama.cpp reads it") {
  const auto input = [](std::string_view bytes) {
    std::string storage;
    return std::string(detail::byte_level_input(bytes, storage));
  };
  const std::string r(replacement_utf8);
  CHECK(input("plain \xE4\xBD\xA0") == "plain \xE4\xBD\xA0");
  CHECK(input("\xE4\xBD ok") == r + r + " ok");       // each byte, not each subpart
  CHECK(input("\xC0\xAF") == "/");                    // overlong: its character
  CHECK(input("\xED\xA0\x80") == "\xED\xA0\x80");     // a surrogate: its bytes
  CHECK(input("\xF4\x90\x80\x80") == r + r + r + r);  // beyond Unicode
  CHECK(input("\xF8\x88\x80\x80\x80") == r + r + r + r + r);
}

TEST_CASE("input of a SentencePiece tokenizer keeps invalid bytes, and a truncated character takes from the next space") {
  const auto input = [](std::string_view bytes, bool prefix = false) {
    std::string storage;
    return std::string(detail::sentencepiece_input(bytes, prefix, storage));
  };
  CHECK(input("a b") == "a b");
  CHECK(input("a b", true) == " a b");
  CHECK(input("a\xE2\x96\x81"
              "b") == "a b");
  CHECK(input("\xFFxyz ok") == "\xFFxyz ok");
  CHECK(input("\xE4\xBD ok") == "\xE4\xBD\xE2\x96\x81ok");  // E4 takes BD and the first byte of the space
  CHECK(input("\xE4 ok") == "\xE4\xE2\x96\x81ok");          // E4 takes two bytes of the space
  CHECK(input("\xF0 ok") == "\xF0\xE2\x96\x81ok");          // F0 takes all of it
  CHECK(input("\xE4") == "\xE4");
}
