// BERT's words: text is cleaned, decomposed without its accents and put in lower case where the model wants that, and cut at
// white space and around punctuation and CJK ideographs. Source: google-research/bert, tokenization.py, BasicTokenizer; the code
// points are those of Hugging Face's BertNormalizer and BertPreTokenizer.
#pragma once

#include "nfc.hpp"
#include "utf8.hpp"
#include "word_piece_tables.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace nihao {

namespace detail {

constexpr bert_tables::Kind bert_kind_of(char32_t code) noexcept {
  using namespace bert_tables;
  const auto* run = std::lower_bound(std::begin(runs), std::end(runs), code, [](const Run& r, char32_t c) { return r.last < c; });
  return run != std::end(runs) && run->first <= code ? run->kind : Kind::other;
}

inline constexpr std::array<bert_tables::Kind, 128> bert_kind_of_ascii = [] {
  std::array<bert_tables::Kind, 128> kinds{};
  for (char32_t code = 0; code < 128; ++code) kinds[code] = bert_kind_of(code);
  return kinds;
}();

inline char32_t bert_lower(char32_t code) noexcept {
  using namespace bert_tables;
  if (code < 0x80) return code >= 'A' && code <= 'Z' ? code + 32 : code;
  const auto* run =
      std::lower_bound(std::begin(lower), std::end(lower), code, [](const Lower& r, char32_t c) { return r.last < c; });
  if (run == std::end(lower) || code < run->first || (code - run->first) % run->stride != 0) return code;
  return static_cast<char32_t>(static_cast<std::int32_t>(code) + run->delta);
}

}  // namespace detail

/// Cuts text into BERT's words.
class BertWords {
 public:
  struct Options {
    bool lowercase = true;
    bool strip_accents = true;
  };

  explicit BertWords(Options options) noexcept : options_(options) {}

  /// Calls each(word, characters) for every word of `text`, which is whole UTF-8 (surrogates may stand in it, and are removed).
  /// The view lives until `each` returns.
  template <class F>
  void cut(std::string_view text, F&& each) {
    for (std::size_t at = 0; at < text.size();) {
      const auto byte = static_cast<unsigned char>(text[at]);
      if (byte < 0x80) {
        const Kind kind = detail::bert_kind_of_ascii[byte];
        if (!marks_.empty()) flush_marks(each);
        if (kind != Kind::removed) put(byte, kind, each);
        ++at;
        continue;
      }
      const char32_t code = decode_utf8_unchecked(text.data() + at);
      at += utf8_length(text[at]);
      const Kind kind = detail::bert_kind_of(code);
      if (kind == Kind::removed) continue;
      if (kind == Kind::ideograph) {
        flush_marks(each);
        end_word(each);
      }
      if (options_.strip_accents && kind != Kind::late) decomposed(code, each);
      else starter(code, kind, each);
      if (kind == Kind::ideograph) end_word(each);
    }
    flush_marks(each);
    end_word(each);
  }

 private:
  using Kind = bert_tables::Kind;

  // Decomposes one character; accents go, and the other marks wait for their order.
  template <class F>
  void decomposed(char32_t code, F& each) {
    parts_.clear();
    detail::decompose(code, parts_);
    for (detail::Combining part : parts_) {
      const Kind kind = detail::bert_kind_of(part.code);
      if (kind == Kind::accent) continue;
      if (part.combining_class == 0 || kind == Kind::late) {
        starter(part.code, kind, each);
      } else {
        part.place = marks_.size();
        marks_.push_back(part);
      }
    }
  }

  template <class F>
  void starter(char32_t code, Kind kind, F& each) {
    flush_marks(each);
    put(code, kind, each);
  }

  template <class F>
  void flush_marks(F& each) {
    if (marks_.empty()) return;
    std::sort(marks_.begin(), marks_.end(), [](const detail::Combining& a, const detail::Combining& b) {
      return a.combining_class != b.combining_class ? a.combining_class < b.combining_class : a.place < b.place;
    });
    for (const detail::Combining& mark : marks_) put(mark.code, detail::bert_kind_of(mark.code), each);
    marks_.clear();
  }

  template <class F>
  void put(char32_t code, Kind kind, F& each) {
    if (kind == Kind::space) return end_word(each);
    if (kind == Kind::punctuation) end_word(each);
    if (options_.lowercase && code == 0x130) {  // the one that becomes two
      word_ += "i\xCC\x87";
      characters_ += 2;
      return;
    }
    append_utf8(word_, options_.lowercase ? detail::bert_lower(code) : code);
    ++characters_;
    if (kind == Kind::punctuation) end_word(each);
  }

  template <class F>
  void end_word(F& each) {
    if (characters_ != 0) each(std::string_view(word_), characters_);
    word_.clear();
    characters_ = 0;
  }

  Options options_;
  std::string word_;
  std::size_t characters_ = 0;
  std::vector<detail::Combining> parts_, marks_;  // of one character; marks that wait for the next starter
};

}  // namespace nihao
