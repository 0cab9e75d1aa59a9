#include <nihao/text/pretokenize.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace nihao;
using Words = std::vector<std::string>;

namespace {

constexpr Pretokenizer all_rules[] = {
    Pretokenizer::gpt2,   Pretokenizer::smollm, Pretokenizer::falcon, Pretokenizer::llama3,         Pretokenizer::qwen2,
    Pretokenizer::qwen35, Pretokenizer::gpt4o,  Pretokenizer::tekken, Pretokenizer::deepseek_coder, Pretokenizer::deepseek3};

Words words(Pretokenizer rules, std::string_view text) {
  Words out;
  pretokenize(rules, text, [&](std::string_view word) { out.emplace_back(word); });
  return out;
}

std::string filled(std::string_view unit, std::size_t bytes) {
  std::string out;
  while (out.size() < bytes) out += unit;
  return out;
}

}  // namespace

TEST_CASE("the words of GPT-2 are contractions, letters, numbers and the rest, each with a space before it") {
  const auto gpt2 = [](std::string_view text) { return words(Pretokenizer::gpt2, text); };
  CHECK(gpt2("Hello world") == Words{"Hello", " world"});
  CHECK(gpt2("it's we'll I'VE") == Words{"it", "'s", " we", "'ll", " I", "'", "VE"});
  CHECK(gpt2("x=42 +7") == Words{"x", "=", "42", " +", "7"});
  CHECK(gpt2("a  b") == Words{"a", " ", " b"});
  CHECK(gpt2("a \n b ") == Words{"a", " \n", " b", " "});
  CHECK(gpt2("a\nb") == Words{"a", "\n", "b"});
  CHECK(gpt2("a\u00A0b") == Words{"a", "\u00A0", "b"});  // white space, but not the space that leads a word
  CHECK(gpt2("\u4F60\u597D,llama") == Words{"\u4F60\u597D", ",", "llama"});
  CHECK(gpt2(" 's") == Words{" '", "s"});
  CHECK(gpt2("") == Words{});
}

TEST_CASE("the words of SmolLM have each digit alone") {
  const auto smollm = [](std::string_view text) { return words(Pretokenizer::smollm, text); };
  CHECK(smollm("in 2024") == Words{"in", " ", "2", "0", "2", "4"});
  CHECK(smollm("a  5b") == Words{"a", "  ", "5", "b"});  // before a digit the text ends, so the spaces stay together
  CHECK(smollm("x\u00B2") == Words{"x", "\u00B2"});
}

TEST_CASE("the words of Llama 3 take one leading character, three digits, and line breaks") {
  const auto llama3 = [](std::string_view text) { return words(Pretokenizer::llama3, text); };
  CHECK(llama3("Hello world") == Words{"Hello", " world"});
  CHECK(llama3("12345678") == Words{"123", "456", "78"});
  CHECK(llama3("IT'S we'Ll") == Words{"IT", "'S", " we", "'Ll"});
  CHECK(llama3("it'\u017F") == Words{"it", "'\u017F"});  // (?i:'s): the long s folds to s
  CHECK(llama3("'\u017Fa") == Words{"'\u017F", "a"});
  CHECK(llama3("(foo)") == Words{"(foo", ")"});
  CHECK(llama3("\tfoo") == Words{"\tfoo"});
  CHECK(llama3("a  b") == Words{"a", " ", " b"});
  CHECK(llama3("a \n\n  b") == Words{"a", " \n\n", " ", " b"});
  CHECK(llama3("!\n\nb") == Words{"!\n\n", "b"});
  CHECK(llama3("a\r\n") == Words{"a", "\r\n"});
  CHECK(llama3("  ") == Words{"  "});
  CHECK(llama3(" 5") == Words{" ", "5"});
}

TEST_CASE("the words of Qwen2 are those of Llama 3 with each digit alone") {
  CHECK(words(Pretokenizer::qwen2, "in 2024, (ok)") == Words{"in", " ", "2", "0", "2", "4", ",", " (", "ok", ")"});
}

TEST_CASE("the words of Qwen3.5 hold their marks") {
  CHECK(words(Pretokenizer::qwen35, "cafe\u0301s \u0301\u0301!") == Words{"cafe\u0301s", " \u0301\u0301", "!"});
  CHECK(words(Pretokenizer::qwen2, "cafe\u0301s") == Words{"cafe", "\u0301s"});
}

TEST_CASE("the words of GPT-4o end where a capital follows a small letter, and hold their contraction") {
  const auto gpt4o = [](std::string_view text) { return words(Pretokenizer::gpt4o, text); };
  CHECK(gpt4o("helloWorld HTTPServer") == Words{"hello", "World", " HTTPServer"});
  CHECK(gpt4o("it's THEY'LL x'\u017F") == Words{"it's", " THEY'LL", " x'\u017F"});
  CHECK(gpt4o("\u4F60ABC") == Words{"\u4F60", "ABC"});  // U*W+ first: the ideograph is both, and the capitals are left
  CHECK(gpt4o("ABC\u4F60DE f") == Words{"ABC\u4F60", "DE", " f"});
  CHECK(gpt4o("!\u0301AB") == Words{"!\u0301", "AB"});
  CHECK(gpt4o("\u0301AB") == Words{"\u0301", "AB"});  // a mark alone is U*W+ before it could lead capitals
  CHECK(gpt4o("a//\n/b 12345") == Words{"a", "//\n/", "b", " ", "123", "45"});
  CHECK(words(Pretokenizer::tekken, "it's 12") == Words{"it", "'s", " ", "1", "2"});
}

TEST_CASE("the words of Falcon set punctuation apart and cut numbers into threes") {
  CHECK(words(Pretokenizer::falcon, "a+b = 12345, it's") ==
        Words{"a", "+", "b", " ", "=", " ", "123", "45", ",", " it", "'", "s"});
}

TEST_CASE("the words of DeepSeek set line breaks, scripts and numbers apart") {
  CHECK(words(Pretokenizer::deepseek_coder, "x = 12;\n\u4F60\u597D, ok") ==
        Words{"x", " = ", "1", "2", ";", "\n", "\u4F60\u597D", ",", " ok"});
  CHECK(words(Pretokenizer::deepseek3, "x = 1234;\n\n\u4F60\u597D\u304B, .foo") ==
        Words{"x", " =", " ", "123", "4", ";\n\n", "\u4F60\u597D\u304B", ",", " .", "foo"});
  CHECK(words(Pretokenizer::deepseek3, "\u0001\u0002a!") ==
        Words{"\u0001", "\u0002a", "!"});  // what nothing matches is a word too
}

TEST_CASE("the words of a text are the text, in order, none empty") {
  const char* pieces[] = {"a", " ", "\n", "'", "s", "1", ".", "\u4F60", "\u0301", "\u00A0", "\r", "\xED\xA0\x80"};
  for (const Pretokenizer rules : all_rules) {
    for (std::size_t code = 0; code < 12 * 12 * 12 * 12; ++code) {
      std::string text;
      for (std::size_t rest = code, i = 0; i < 4; ++i, rest /= 12) text += pieces[rest % 12];
      std::string joined;
      bool empty = false;
      pretokenize(rules, text, [&](std::string_view word) {
        joined += word;
        empty = empty || word.empty();
      });
      REQUIRE(joined == text);
      REQUIRE(!empty);
    }
  }
}

// A recursive or backtracking matcher overflows the stack or never comes back from these; see C01 to C06 in tokenizer_test.cpp.
TEST_CASE("a megabyte without a natural break is cut in one pass, whatever repeats in it") {
  const char* units[] = {"a", " ", "\n", "'", "1", ".", "\u4F60", "\U0001F600", "\u0301"};
  for (const Pretokenizer rules : all_rules) {
    for (const char* first : units) {
      for (const char* second : units) {
        const std::string text = filled(std::string(first) + second, 1 << 18);
        std::size_t bytes = 0;
        pretokenize(rules, text, [&](std::string_view word) { bytes += word.size(); });
        REQUIRE(bytes == text.size());
      }
    }
  }
  const std::string letters = filled("A", 1 << 20);
  CHECK(words(Pretokenizer::qwen2, letters) == Words{letters});
}
