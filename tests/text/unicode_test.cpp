#include <nihao/text/nfc.hpp>
#include <nihao/text/unicode.hpp>

#include <doctest/doctest.h>

#include "text/random.hpp"

#include <string>

using namespace nihao;
using unicode::Category;

TEST_CASE("categories agree with the Unicode Character Database") {
  CHECK(unicode::version == "16.0.0");
  CHECK(unicode::category(U'A') == Category::Lu);
  CHECK(unicode::category(U'a') == Category::Ll);
  CHECK(unicode::category(0x01C5) == Category::Lt);
  CHECK(unicode::category(0x02B0) == Category::Lm);
  CHECK(unicode::category(0x4F60) == Category::Lo);
  CHECK(unicode::category(0x0301) == Category::Mn);
  CHECK(unicode::category(0x0663) == Category::Nd);
  CHECK(unicode::category(0x2167) == Category::Nl);
  CHECK(unicode::category(0x00B2) == Category::No);
  CHECK(unicode::category(U'_') == Category::Pc);
  CHECK(unicode::category(0xFF0C) == Category::Po);
  CHECK(unicode::category(U'+') == Category::Sm);
  CHECK(unicode::category(0x20AC) == Category::Sc);
  CHECK(unicode::category(0x1F600) == Category::So);
  CHECK(unicode::category(0x3000) == Category::Zs);
  CHECK(unicode::category(0x2028) == Category::Zl);
  CHECK(unicode::category(0x0085) == Category::Cc);
  CHECK(unicode::category(0x200B) == Category::Cf);
  CHECK(unicode::category(0xD800) == Category::Cs);
  CHECK(unicode::category(0xE000) == Category::Co);
  CHECK(unicode::category(0x0378) == Category::Cn);
  CHECK(unicode::category(0x110000) == Category::Cn);
  // How many of each, by Python's unicodedata2 16.0.0 (surrogates are Cs): the whole table at once.
  std::size_t letters = 0, numbers = 0, marks = 0, punctuation = 0, symbols = 0, spaces = 0;
  for (char32_t code = 0; code < 0x110000; ++code) {
    const unicode::Properties p = unicode::properties(code);
    letters += (p & unicode::letter) != 0;
    numbers += (p & unicode::number) != 0;
    marks += (p & unicode::mark) != 0;
    punctuation += (p & unicode::punctuation) != 0;
    symbols += (p & unicode::symbol) != 0;
    spaces += (p & unicode::white_space) != 0;
  }
  CHECK(letters == 141028);
  CHECK(numbers == 1911);
  CHECK(marks == 2501);
  CHECK(punctuation == 855);
  CHECK(symbols == 8514);
  CHECK(spaces == 25);
}

TEST_CASE("NFC puts characters together as the standard says") {
  const auto nfc = [](std::u32string_view codes) {
    std::string text, out;
    for (const char32_t code : codes) append_utf8(text, code);
    return to_nfc(text);
  };
  const auto utf8 = [](std::u32string_view codes) {
    std::string text;
    for (const char32_t code : codes) append_utf8(text, code);
    return text;
  };
  CHECK(nfc(U"e\u0301") == utf8(U"\u00E9"));
  CHECK(nfc(U"e\u0301 e") == utf8(U"\u00E9 e"));
  CHECK(nfc(U"\u212B") == utf8(U"\u00C5"));         // a singleton
  CHECK(nfc(U"\u0344") == utf8(U"\u0308\u0301"));   // excluded from composition
  CHECK(nfc(U"s\u0307\u0323") == utf8(U"\u1E69"));  // marks are put in order first
  CHECK(nfc(U"\u1E9B\u0323") == utf8(U"\u1E9B\u0323"));
  CHECK(nfc(U"a\u0302\u0303\u0304") == utf8(U"\u1EAB\u0304"));
  CHECK(nfc(U"\u1112\u1161\u11AB") == utf8(U"\uD55C"));  // Hangul
  CHECK(nfc(U"\uD558\u11AB") == utf8(U"\uD55C"));
  CHECK(nfc(U"\uD55C\u11AB") == utf8(U"\uD55C\u11AB"));
  CHECK(nfc(U"\u304B\u3099") == utf8(U"\u304C"));
  CHECK(nfc(U"\u0958") == utf8(U"\u0915\u093C"));  // composition exclusion
  CHECK(nfc(U"\u0301e") == utf8(U"\u0301e"));
  CHECK(nfc(U"a\u0345\u0301") == utf8(U"\u00E1\u0345"));
  CHECK(nfc(U"") == "");
}

TEST_CASE("NFC agrees with Python's unicodedata over every code point, alone and before or after marks") {
  // The FNV-1a hash of the results in a row, computed with unicodedata2 16.0.0 by
  //   for code in all but surrogates: for text in (c, c + U+0301, c + U+0323 U+0302, U+1100 + c, U+0915 + c): update(NFC(text) +
  //   "\n")
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (char32_t code = 1; code < 0x110000; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    std::string c;
    append_utf8(c, code);
    for (const std::string& text : {c, c + "\u0301", c + "\u0323\u0302", "\u1100" + c, "\u0915" + c}) {
      for (const char byte : to_nfc(text) + "\n") hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001B3u;
    }
  }
  CHECK(hash == 0x8C84756F317B82AFu);
}

TEST_CASE("NFC done twice is NFC, and does not depend on where inert text is cut") {
  test::Random random(2);
  const char32_t codes[] = {U'a',   U'e',  U' ',  0x301,  0x323,  0x302, 0x1100,  0x1161, 0x11A8,
                            0xAC00, 0x915, 0x93C, 0x4F60, 0x212B, 0x344, 0x1D15E, 0x345};
  for (int round = 0; round < 5000; ++round) {
    std::string text;
    for (unsigned n = random.below(12); n > 0; --n)
      append_utf8(text, codes[random.below(static_cast<unsigned>(std::size(codes)))]);
    const std::string once = to_nfc(text);
    REQUIRE(to_nfc(once) == once);
    REQUIRE(to_nfc("1" + text + "y") == "1" + once + "y");
  }
}

TEST_CASE("a million combining marks on one letter are put in order in one go") {
  std::string text = "a";
  for (int i = 0; i < 500000; ++i) text += i % 2 == 0 ? "\u0301" : "\u0323";
  const std::string out = to_nfc(text);
  // a + dot below compose, all other dots come next, the acutes last.
  CHECK(out.size() == text.size());  // 3 bytes became 3
  CHECK(out.substr(0, 5) == "\u1EA1\u0323");
  CHECK(out.substr(out.size() - 4) == "\u0301\u0301");
}
