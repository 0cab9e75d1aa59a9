// Cutting a text into words before byte-pair merging. Each model family defines its words by a regular expression; here each
// is a small automaton written by hand that reads forward, so a run of a million letters costs a million steps and no stack.
//
// A *stage* is a struct with `next(at, end)`: the end of the word that starts at `at` (at < end). A family is a list of
// stages; the words of one are cut further by the next, for which the word's end is the text's end, as when a tokenizer
// applies its expressions one after another. All text here is whole UTF-8 (see tokenizer_input.hpp).
#pragma once

#include "unicode.hpp"
#include "utf8.hpp"

#include "../base/error.hpp"
#include "../base/str.hpp"

#include <string_view>

namespace nihao {

/// Which family's word rules. The comment is the expression that the automaton equals.
enum class Pretokenizer : std::uint8_t {
  gpt2,    ///< 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  smollm,  ///< each \p{N} alone, then gpt2
  llama3,  ///< (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|
           ///< ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
  qwen2,   ///< as llama3, with \p{N} for \p{N}{1,3}
};

namespace detail {

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

/// The words of tiktoken's cl100k, which Llama 3 and Qwen2 took over; numbers are cut after `Digits` digits.
template <int Digits>
struct Cl100kWords {
  static const char* next(const char* at, const char* end) noexcept {
    using namespace unicode;
    if (const char* found = contraction(at, end, true)) return found;
    const CharAt c = char_at(at);
    if (c.properties & letter) return skip(c.end, end, letter);
    if (c.properties & number) {
      const char* p = c.end;
      for (int digits = 1; digits < Digits && p != end; ++digits) {
        const CharAt d = char_at(p);
        if ((d.properties & number) == 0) break;
        p = d.end;
      }
      return p;
    }
    // One character that is no line break may lead a word of letters; a space may lead a run of punctuation.
    if (c.end != end && (c.properties & line_break) == 0 && (char_at(c.end).properties & letter)) return skip(c.end, end, letter);
    const char* run = *at == ' ' && c.end != end ? c.end : at;
    const CharAt r = char_at(run);
    if ((r.properties & (white_space | letter | number)) == 0) {
      return skip(skip_others(r.end, end, white_space | letter | number), end, line_break);
    }
    return line_breaks(at, end);
  }

 private:
  // \s*[\r\n]+|\s+(?!\S)|\s+ : up to the last line break of the run if there is one.
  static const char* line_breaks(const char* at, const char* end) noexcept {
    const char* after_break = nullptr;
    for (const char* p = at; p != end;) {
      const CharAt c = char_at(p);
      if ((c.properties & unicode::white_space) == 0) break;
      p = c.end;
      if (c.properties & unicode::line_break) after_break = p;
    }
    return after_break ? after_break : white_space_run(at, end);
  }
};

/// Each character with one of `Alone` is a word; what lies between is one too.
template <Properties Alone>
struct Isolate {
  static const char* next(const char* at, const char* end) noexcept {
    const CharAt c = char_at(at);
    return c.properties & Alone ? c.end : skip_others(c.end, end, Alone);
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

}  // namespace detail

/// Calls `each(std::string_view word)` for the words of `text`, in order; together they are the text.
template <class F>
void pretokenize(Pretokenizer rules, std::string_view text, F&& each) {
  using namespace detail;
  const char* begin = text.data();
  const char* end = begin + text.size();
  switch (rules) {
    case Pretokenizer::gpt2: return Stages<Gpt2Words>::run(begin, end, each);
    case Pretokenizer::smollm: return Stages<Isolate<unicode::number>, Gpt2Words>::run(begin, end, each);
    case Pretokenizer::llama3: return Stages<Cl100kWords<3>>::run(begin, end, each);
    case Pretokenizer::qwen2: return Stages<Cl100kWords<1>>::run(begin, end, each);
  }
}

}  // namespace nihao
