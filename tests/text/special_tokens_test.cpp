#include <nihao/text/special_tokens.hpp>

#include <doctest/doctest.h>

#include "text/random.hpp"

#include <string>
#include <vector>

using namespace nihao;

namespace {
std::string cut(const SpecialTokens& tokens, std::string_view text, bool parse_special = true) {
  std::string out;
  tokens.split(
      text, parse_special, [&](std::string_view part) { out.append("(").append(part) += ')'; },
      [&](TokenId id) { out += concat("[", id, "]"); });
  return out;
}
}  // namespace

TEST_CASE("the longest special token at the leftmost place is taken") {
  SpecialTokens tokens;
  tokens.add({.id = 1, .text = "<a>"});
  tokens.add({.id = 2, .text = "<a><b>"});
  tokens.add({.id = 3, .text = "\n\n"});
  tokens.add({.id = 4, .text = "\n"});
  tokens.add({.id = 5, .text = "a><b>c"});
  CHECK(cut(tokens, "") == "");
  CHECK(cut(tokens, "x<a>y") == "(x)[1](y)");
  CHECK(cut(tokens, "<a><a><b>") == "[1][2]");
  CHECK(cut(tokens, "\n\n\n") == "[3][4]");
  CHECK(cut(tokens, "<a><b>c") == "[2](c)");  // not 5, which begins later
  CHECK(cut(tokens, "<a") == "(<a)");
  CHECK(tokens.find("<a>") == 1);
  CHECK(tokens.find("<a") == no_token);
  CHECK(tokens.find("") == no_token);
}

TEST_CASE("without parse_special only user-defined tokens are found") {
  SpecialTokens tokens;
  tokens.add({.id = 1, .text = "<end>"});
  tokens.add({.id = 2, .text = "<end", .always = true});
  CHECK(cut(tokens, "<end>", true) == "[1]");
  CHECK(cut(tokens, "<end>", false) == "[2](>)");
  SpecialTokens control;
  control.add({.id = 1, .text = "<end>"});
  CHECK(cut(control, "a<end>b", false) == "(a<end>b)");
}

TEST_CASE("a special token can swallow the white space beside it") {
  SpecialTokens tokens;
  tokens.add({.id = 1, .text = "<r>", .strip_right = true});
  tokens.add({.id = 2, .text = "<l>", .strip_left = true});
  CHECK(cut(tokens, "a <r> \n b") == "(a )[1](b)");
  CHECK(cut(tokens, "a <l> b") == "(a)[2]( b)");
  CHECK(cut(tokens, "<r>  <l>") == "[1][2]");
  CHECK(cut(tokens, "  <l>  ") == "[2](  )");
}

TEST_CASE("of equal texts the first token counts, and an empty text is never found") {
  SpecialTokens tokens;
  tokens.add({.id = 7, .text = ""});
  tokens.add({.id = 1, .text = "x"});
  tokens.add({.id = 2, .text = "x"});
  CHECK(cut(tokens, "axb") == "(a)[1](b)");
}

TEST_CASE("cutting finds what a search at every place finds") {
  test::Random random(4);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::string> texts;
    for (unsigned n = 1 + random.below(4); n > 0; --n) {
      std::string text;
      for (unsigned k = 1 + random.below(4); k > 0; --k) text += static_cast<char>('a' + random.below(2));
      if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(text);
    }
    SpecialTokens tokens;
    for (std::size_t i = 0; i < texts.size(); ++i) tokens.add({.id = static_cast<TokenId>(i), .text = texts[i]});
    std::string text, expected, between;
    for (unsigned n = random.below(20); n > 0; --n) text += static_cast<char>('a' + random.below(3));
    const auto flush = [&] {
      if (!between.empty()) expected += "(" + between + ")";
      between.clear();
    };
    for (std::size_t at = 0; at < text.size();) {
      std::size_t best = texts.size();
      for (std::size_t i = 0; i < texts.size(); ++i) {
        if (text.compare(at, texts[i].size(), texts[i]) == 0 && (best == texts.size() || texts[i].size() > texts[best].size()))
          best = i;
      }
      if (best == texts.size()) {
        between += text[at++];
      } else {
        flush();
        expected += concat("[", best, "]");
        at += texts[best].size();
      }
    }
    flush();
    REQUIRE(cut(tokens, text) == expected);
  }
}
