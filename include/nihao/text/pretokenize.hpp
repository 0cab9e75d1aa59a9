// Cutting a text into words before byte-pair merging. Each model family defines its words by a regular expression; here each
// is a small automaton written by hand that reads forward, so a run of a million letters costs a million steps and no stack.
//
// A *stage* is a struct with `next(at, end)`: the end of the word that starts at `at` (at < end). A family is a list of
// stages; the words of one are cut further by the next, for which the word's end is the text's end, as when a tokenizer
// applies its expressions one after another. All text here is whole UTF-8 (see tokenizer_input.hpp).
#pragma once

#include "tokenizer_data.hpp"
#include "unicode.hpp"
#include "utf8.hpp"

#include "../base/error.hpp"
#include "../base/str.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace nihao {

namespace word_rules {

using unicode::Properties;

/// The properties of the character at `at`, and where it ends.
struct CharAt {
  Properties properties;
  const char* end;
};
NIHAO_ALWAYS_INLINE CharAt char_at(const char* at) noexcept {
  if (static_cast<unsigned char>(*at) < 0x80) return {unicode::detail::ascii.of[static_cast<unsigned char>(*at)], at + 1};
  return {unicode::detail::compute(decode_utf8_unchecked(at)), at + utf8_length(*at)};
}

/// Moves over characters that have one of `wanted`.
NIHAO_ALWAYS_INLINE const char* skip(const char* at, const char* end, Properties wanted) noexcept {
  while (at != end) {
    const CharAt c = char_at(at);
    if ((c.properties & wanted) == 0) break;
    at = c.end;
  }
  return at;
}

/// Moves over characters that have none of `unwanted`.
NIHAO_ALWAYS_INLINE const char* skip_others(const char* at, const char* end, Properties unwanted) noexcept {
  while (at != end) {
    const CharAt c = char_at(at);
    if ((c.properties & unwanted) != 0) break;
    at = c.end;
  }
  return at;
}

/// 's 't 'm 'd 're 've 'll at `at`: the end of it, or null. With `any_case` as (?i:...), for which U+017F is an s too.
inline const char* contraction(const char* at, const char* end, bool any_case) noexcept {
  if (end - at < 2 || *at != '\'') return nullptr;
  const auto fold = [&](char c) { return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  const char first = fold(at[1]);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
  if (end - at < 3) return nullptr;
  if (any_case && at[1] == '\xC5' && at[2] == '\xBF') return at + 3;
  const char second = fold(at[2]);
  const bool known = (first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l');
  return known ? at + 3 : nullptr;
}

/// \s+(?!\S)|\s+ : a run of white space, without its last character if a word follows it (that one goes to the word).
inline const char* white_space_run(const char* at, const char* end) noexcept {
  const char* last = at;
  const char* p = at;
  while (p != end) {
    const CharAt c = char_at(p);
    if ((c.properties & unicode::white_space) == 0) break;
    last = p;
    p = c.end;
  }
  return p == end || last == at ? p : last;
}

/// The words of GPT-2.
struct Gpt2Words {
  static const char* next(const char* at, const char* end) noexcept {
    using namespace unicode;
    if (const char* found = contraction(at, end, false)) return found;
    const char* word = *at == ' ' && at + 1 != end ? at + 1 : at;
    const CharAt c = char_at(word);
    if (c.properties & letter) return skip(c.end, end, letter);
    if (c.properties & number) return skip(c.end, end, number);
    if ((c.properties & white_space) == 0) return skip_others(c.end, end, letter | number | white_space);
    return white_space_run(at, end);
  }
};

/// \s*[\r\n]+|\s+(?!\S)|\s+ : a run of white space up to its last line break if it has one.
inline const char* line_breaks_or_white_space(const char* at, const char* end) noexcept {
  const char* after_break = nullptr;
  for (const char* p = at; p != end;) {
    const CharAt c = char_at(p);
    if ((c.properties & unicode::white_space) == 0) break;
    p = c.end;
    if (c.properties & unicode::line_break) after_break = p;
  }
  return after_break ? after_break : white_space_run(at, end);
}

/// From `after`, behind a first digit, over at most Digits - 1 more.
template <int Digits>
const char* more_digits(const char* after, const char* end) noexcept {
  for (int digits = 1; digits < Digits && after != end; ++digits) {
    const CharAt d = char_at(after);
    if ((d.properties & unicode::number) == 0) break;
    after = d.end;
  }
  return after;
}

/// The words of tiktoken's cl100k, which Llama 3 and Qwen2 took over. `Letters`: what makes a word.
template <int Digits, Properties Letters = unicode::letter>
struct Cl100kWords {
  static const char* next(const char* at, const char* end) noexcept {
    using namespace unicode;
    if (const char* found = contraction(at, end, true)) return found;
    const CharAt c = char_at(at);
    if (c.properties & Letters) return skip(c.end, end, Letters);
    if (c.properties & number) return more_digits<Digits>(c.end, end);
    // One character that is no line break may lead a word of letters; a space may lead a run of punctuation.
    if (c.end != end && (c.properties & line_break) == 0 && (char_at(c.end).properties & Letters))
      return skip(c.end, end, Letters);
    const char* run = *at == ' ' && c.end != end ? c.end : at;
    const CharAt r = char_at(run);
    constexpr Properties others = white_space | number | Letters;
    if ((r.properties & others) == 0) return skip(skip_others(r.end, end, others), end, line_break);
    return line_breaks_or_white_space(at, end);
  }
};

/// The words of tiktoken's o200k: runs of letters are cut where a capital follows a small letter.
template <int Digits, bool Contractions>
struct O200kWords {
  static const char* next(const char* at, const char* end) noexcept {
    using namespace unicode;
    const CharAt c = char_at(at);
    // In the order of the expression's alternatives: with the leading character, then without (a mark can be both).
    const bool leads = (c.properties & (letter | number | line_break)) == 0 && c.end != end;
    const bool in_word = (c.properties & (letter | mark)) != 0;
    const char* word = leads ? capitals_and_small(c.end, end) : nullptr;
    if (!word && in_word) word = capitals_and_small(at, end);
    if (!word && leads) word = capitals(c.end, end);
    if (!word && in_word) word = capitals(at, end);
    if (word) {
      const char* with = Contractions ? contraction(word, end, true) : nullptr;
      return with ? with : word;
    }
    if (c.properties & number) return more_digits<Digits>(c.end, end);
    const char* run = *at == ' ' && c.end != end ? c.end : at;
    const CharAt r = char_at(run);
    if ((r.properties & (white_space | letter | number)) == 0) {
      const char* p = skip_others(r.end, end, white_space | letter | number);
      while (p != end && (*p == '\r' || *p == '\n' || *p == '/')) ++p;
      return p;
    }
    return line_breaks_or_white_space(at, end);
  }

 private:
  static bool capital(const CharAt& c) noexcept {
    return (c.properties & (unicode::letter | unicode::mark)) != 0 && (c.properties & unicode::lower) == 0;
  }
  static bool small(const CharAt& c) noexcept {
    return (c.properties & (unicode::letter | unicode::mark)) != 0 && (c.properties & unicode::upper) == 0;
  }
  // U*W+ or null. U* takes all it can; if no small letter follows, it gives back up to the last character that is in W too.
  static const char* capitals_and_small(const char* at, const char* end) noexcept {
    const char* after_both = nullptr;
    while (at != end) {
      const CharAt c = char_at(at);
      if (!capital(c)) {
        if (!small(c)) break;
        while (at != end && small(char_at(at))) at = char_at(at).end;
        return at;
      }
      at = c.end;
      if (small(c)) after_both = at;
    }
    return after_both;
  }
  // U+W* or null, where U*W+ has failed: what is left are capitals alone.
  static const char* capitals(const char* at, const char* end) noexcept {
    const char* p = at;
    while (p != end && capital(char_at(p))) p = char_at(p).end;
    return p == at ? nullptr : p;
  }
};

/// The last stage of DeepSeek-V3. Characters that no alternative matches stay together up to the next match.
struct DeepSeek3Words {
  static const char* match(const char* at, const char* end) noexcept {
    using namespace unicode;
    const CharAt c = char_at(at);
    if (c.properties & (letter | mark)) return skip(c.end, end, letter | mark);
    if (static_cast<unsigned char>(*at) < 0x80 && (c.properties & (punctuation | symbol)) && c.end != end &&
        ascii_letter(*c.end)) {
      const char* p = c.end;
      while (p != end && ascii_letter(*p)) ++p;
      return p;
    }
    const bool leads = (c.properties & (line_break | punctuation | symbol)) == 0 && c.end != end;
    if (leads && (char_at(c.end).properties & (letter | mark))) return skip(c.end, end, letter | mark);
    const char* run = *at == ' ' && c.end != end ? c.end : at;
    const CharAt r = char_at(run);
    if (r.properties & (punctuation | symbol)) return skip(skip(r.end, end, punctuation | symbol), end, line_break);
    return c.properties & white_space ? line_breaks_or_white_space(at, end) : nullptr;
  }

 private:
  static bool ascii_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
};

/// \s?X+ for a class X.
template <Properties Wanted>
struct SpacedRun {
  static const char* match(const char* at, const char* end) noexcept {
    const CharAt c = char_at(at);
    if (c.properties & Wanted) return skip(c.end, end, Wanted);
    if ((c.properties & unicode::white_space) == 0 || c.end == end) return nullptr;
    const CharAt d = char_at(c.end);
    return d.properties & Wanted ? skip(d.end, end, Wanted) : nullptr;
  }
};

/// Code points from first to last; a set is a list of such ranges in rising order.
struct CodeRange {
  char32_t first, last;
};
template <std::size_t N>
constexpr bool contains(const CodeRange (&set)[N], char32_t code) noexcept {
  const CodeRange* found =
      std::upper_bound(set, set + N, code, [](char32_t c, const CodeRange& range) { return c < range.first; });
  return found != set && code <= (found - 1)->last;
}

// What DeepSeek LLM's tokenizer.json lists as letters (most of Lu, Ll and Lt of Unicode 6) and as punctuation (ASCII's letters
// are in that range: a word that mixes them with others is cut again).
inline constexpr CodeRange deepseek_letters[] = {
    {0x41, 0x5a},       {0x61, 0x7a},       {0xb5, 0xb5},       {0xc0, 0xd6},       {0xd8, 0xf6},       {0xf8, 0x1ba},
    {0x1bc, 0x1bf},     {0x1c4, 0x293},     {0x295, 0x2af},     {0x370, 0x373},     {0x376, 0x377},     {0x37b, 0x37d},
    {0x37f, 0x37f},     {0x386, 0x386},     {0x388, 0x38a},     {0x38c, 0x38c},     {0x38e, 0x3a1},     {0x3a3, 0x3f5},
    {0x3f7, 0x481},     {0x48a, 0x52f},     {0x531, 0x556},     {0x10a0, 0x10c5},   {0x13a0, 0x13f5},   {0x13f8, 0x13fd},
    {0x1c90, 0x1cba},   {0x1cbd, 0x1cbf},   {0x1d00, 0x1d2b},   {0x1d6b, 0x1d77},   {0x1d79, 0x1d9a},   {0x1e00, 0x1f15},
    {0x1f18, 0x1f1d},   {0x1f20, 0x1f45},   {0x1f48, 0x1f4d},   {0x1f50, 0x1f57},   {0x1f59, 0x1f59},   {0x1f5b, 0x1f5b},
    {0x1f5d, 0x1f5d},   {0x1f5f, 0x1f7d},   {0x1f80, 0x1fb4},   {0x1fb6, 0x1fbc},   {0x1fbe, 0x1fbe},   {0x1fc2, 0x1fc4},
    {0x1fc6, 0x1fcc},   {0x1fd0, 0x1fd3},   {0x1fd6, 0x1fdb},   {0x1fe0, 0x1fec},   {0x1ff2, 0x1ff4},   {0x1ff6, 0x1ffc},
    {0x2102, 0x2102},   {0x2107, 0x2107},   {0x210a, 0x2113},   {0x2115, 0x2115},   {0x2119, 0x211d},   {0x2124, 0x2124},
    {0x2126, 0x2126},   {0x2128, 0x2128},   {0x212a, 0x212d},   {0x212f, 0x2134},   {0x2139, 0x2139},   {0x213c, 0x213f},
    {0x2145, 0x2149},   {0x214e, 0x214e},   {0x2183, 0x2184},   {0x2c00, 0x2c7b},   {0x2c7e, 0x2ce4},   {0x2ceb, 0x2cee},
    {0x2cf2, 0x2cf3},   {0xa640, 0xa66d},   {0xa680, 0xa69b},   {0xa722, 0xa76f},   {0xa771, 0xa787},   {0xa78b, 0xa78e},
    {0xab70, 0xabbf},   {0xfb00, 0xfb06},   {0xfb13, 0xfb17},   {0xff21, 0xff3a},   {0xff41, 0xff5a},   {0x10400, 0x1044f},
    {0x104b0, 0x104d3}, {0x104d8, 0x104fb}, {0x10c80, 0x10cb2}, {0x10cc0, 0x10cf2}, {0x118a0, 0x118df}, {0x1e900, 0x1e943}};
inline constexpr CodeRange deepseek_punctuation[] = {{0x21, 0x2f},     {0x3a, 0x7e},     {0x2018, 0x201f},
                                                     {0x3000, 0x3002}, {0xff01, 0xff0f}, {0xff1a, 0xff5e}};

/// \s?X+ for a set X of code points.
template <const auto& Set>
struct SpacedSetRun {
  static const char* match(const char* at, const char* end) noexcept {
    const auto in_set = [](const char* p) { return contains(Set, decode_utf8_unchecked(p)); };
    const CharAt c = char_at(at);
    const char* p = (c.properties & unicode::white_space) && c.end != end && !in_set(at) ? c.end : at;
    const char* first = p;
    while (p != end && in_set(p)) p += utf8_length(*p);
    return p == first ? nullptr : p;
  }
};

/// \s+$ : the white space that a text ends in.
struct TrailingWhiteSpace {
  static const char* next(const char* at, const char* end) noexcept {
    const char* start = end;
    while (start != at) {
      const char* p = start - 1;
      while (p != at && is_utf8_continuation(*p)) --p;
      if ((char_at(p).properties & unicode::white_space) == 0) break;
      start = p;
    }
    return start == at ? end : start;
  }
};

/// A run of code points in two ranges.
template <char32_t First, char32_t Last, char32_t First2, char32_t Last2>
struct RangeRun {
  static const char* match(const char* at, const char* end) noexcept {
    const char* p = at;
    for (; p != end; p += utf8_length(*p)) {
      const char32_t code = decode_utf8_unchecked(p);
      if (!((code >= First && code <= Last) || (code >= First2 && code <= Last2))) break;
    }
    return p == at ? nullptr : p;
  }
};

/// \p{N}{1,Digits}
template <int Digits>
struct Number {
  static const char* match(const char* at, const char* end) noexcept {
    const CharAt c = char_at(at);
    return c.properties & unicode::number ? more_digits<Digits>(c.end, end) : nullptr;
  }
};

/// [0-9]{3}
struct AsciiDigitTriple {
  static const char* match(const char* at, const char* end) noexcept {
    if (end - at < 3) return nullptr;
    for (int i = 0; i < 3; ++i) {
      if (at[i] < '0' || at[i] > '9') return nullptr;
    }
    return at + 3;
  }
};

/// [\p{P}$+<=>^~|`]+ : punctuation, and the symbols of ASCII.
struct FalconPunctuation {
  static const char* match(const char* at, const char* end) noexcept {
    using namespace unicode;
    const char* p = at;
    while (p != end) {
      const CharAt c = char_at(p);
      const bool ascii_symbol = static_cast<unsigned char>(*p) < 0x80 && (c.properties & symbol);
      if ((c.properties & punctuation) == 0 && !ascii_symbol) break;
      p = c.end;
    }
    return p == at ? nullptr : p;
  }
};

/// One character with one of `Wanted`.
template <Properties Wanted>
struct One {
  static const char* match(const char* at, const char*) noexcept {
    const CharAt c = char_at(at);
    return c.properties & Wanted ? c.end : nullptr;
  }
};

/// Makes a stage of an expression that does not match everywhere: what lies between two matches is a word too.
template <class Expression>
struct Isolate {
  static const char* next(const char* at, const char* end) noexcept {
    if (const char* found = Expression::match(at, end)) return found;
    do at = char_at(at).end;
    while (at != end && !Expression::match(at, end));
    return at;
  }
};

/// Runs the stages one inside another and hands each word of the last to `each(word)`.
template <class Stage, class... Inner>
struct Stages {
  template <class F>
  static void run(const char* at, const char* end, F& each) {
    while (at != end) {
      const char* stop = Stage::next(at, end);
      if constexpr (sizeof...(Inner) == 0) each(std::string_view(at, static_cast<std::size_t>(stop - at)));
      else Stages<Inner...>::run(at, stop, each);
      at = stop;
    }
  }
};

}  // namespace word_rules

/// Calls `each(std::string_view word)` for the words of `text`, in order; together they are the text.
template <class F>
void pretokenize(Pretokenizer rules, std::string_view text, F&& each) {
  using namespace word_rules;
  const char* begin = text.data();
  const char* end = begin + text.size();
  switch (rules) {
    case Pretokenizer::gpt2: return Stages<Gpt2Words>::run(begin, end, each);
    case Pretokenizer::smollm: return Stages<Isolate<Number<1>>, Gpt2Words>::run(begin, end, each);
    case Pretokenizer::falcon:
      return Stages<Isolate<FalconPunctuation>, Gpt2Words, Isolate<AsciiDigitTriple>>::run(begin, end, each);
    case Pretokenizer::llama3: return Stages<Cl100kWords<3>>::run(begin, end, each);
    case Pretokenizer::qwen2: return Stages<Cl100kWords<1>>::run(begin, end, each);
    case Pretokenizer::qwen35: return Stages<Cl100kWords<1, unicode::letter | unicode::mark>>::run(begin, end, each);
    case Pretokenizer::gpt4o: return Stages<O200kWords<3, true>>::run(begin, end, each);
    case Pretokenizer::tekken: return Stages<O200kWords<1, false>>::run(begin, end, each);
    case Pretokenizer::deepseek_llm:
      return Stages<Isolate<One<unicode::line_break>>, Isolate<SpacedSetRun<deepseek_letters>>,
                    Isolate<SpacedSetRun<deepseek_punctuation>>, TrailingWhiteSpace,
                    Isolate<RangeRun<0x0800, 0x9FA5, 0xAC00, 0xD7FF>>, Isolate<Number<1>>>::run(begin, end, each);
    case Pretokenizer::deepseek_coder:
      return Stages<Isolate<One<unicode::line_break>>, Isolate<SpacedRun<unicode::letter>>,
                    Isolate<SpacedRun<unicode::punctuation>>, Isolate<RangeRun<0x0800, 0x9FA5, 0xAC00, 0xD7FF>>,
                    Isolate<Number<1>>>::run(begin, end, each);
    case Pretokenizer::deepseek3:
      return Stages<Isolate<Number<3>>, Isolate<RangeRun<0x4E00, 0x9FA5, 0x3040, 0x30FF>>, Isolate<DeepSeek3Words>>::run(
          begin, end, each);
  }
}

}  // namespace nihao
