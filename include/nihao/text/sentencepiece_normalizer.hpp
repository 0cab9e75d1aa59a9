// What SentencePiece does to a text before anything else: characters are replaced (mostly as in NFKC), a space is put in front,
// and of other spaces one is kept between words and none at the ends. Source: google/sentencepiece, normalizer.cc.
#pragma once

#include "charsmap.hpp"
#include "utf8.hpp"

#include <string>
#include <string_view>
#include <utility>

namespace nihao {

/// Normalizes text. In the result a plain space stands for U+2581, where SentencePiece has the latter for both.
class SentencePieceNormalizer {
 public:
  struct Options {
    bool space_in_front = true;       ///< `add_dummy_prefix`
    bool remove_extra_spaces = true;  ///< `remove_extra_whitespaces`
  };

  SentencePieceNormalizer() = default;
  SentencePieceNormalizer(Charsmap map, Options options) : map_(std::move(map)), options_(options) {}

  /// The result lies in `out`. A byte that is not UTF-8 becomes U+FFFD.
  std::string_view normalize(std::string_view text, std::string& out) const {
    out.clear();
    bool after_space = options_.remove_extra_spaces;
    bool first = true;
    while (!text.empty()) {
      auto [size, by] = next(text);
      text.remove_prefix(size);
      if (first && options_.remove_extra_spaces && by == " ") continue;
      if (first && options_.space_in_front) out += ' ';
      first = false;
      while (after_space && by.starts_with(' ')) by.remove_prefix(1);
      if (by.empty()) continue;
      after_space = options_.remove_extra_spaces && by.back() == ' ';
      append_with_spaces(out, by);
    }
    if (options_.remove_extra_spaces) out.resize(out.find_last_not_of(' ') + 1);
    return out;
  }

 private:
  static constexpr std::string_view space = "\xE2\x96\x81";

  /// What the next bytes become, and how many they are.
  [[nodiscard]] Charsmap::Match next(std::string_view text) const noexcept {
    if (const Charsmap::Match match = map_.match(text); match.size != 0) return match;
    const DecodedChar c = decode_utf8(text, 0);
    if (!c.valid) return {1, replacement_utf8};
    return {c.length, text.substr(0, c.length)};
  }

  static void append_with_spaces(std::string& out, std::string_view text) {
    for (std::size_t found; (found = text.find(space)) != std::string_view::npos; text.remove_prefix(found + space.size()))
      (out += text.substr(0, found)) += ' ';
    out += text;
  }

  Charsmap map_;
  Options options_;
};

}  // namespace nihao
