// Normalization form C: what the Qwen2 tokenizers do to a text before anything else. Linear but for sorting within one
// run of combining marks. Source: UAX #15; Hangul by arithmetic, the Unicode Standard section 3.12.
#pragma once

#include "nfc_tables.hpp"
#include "unicode.hpp"
#include "utf8.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace nihao {

namespace detail {

/// A code point, its canonical combining class, and where it stood.
struct Combining {
  char32_t code;
  std::uint8_t combining_class;
  std::size_t place;
};

inline constexpr char32_t hangul_base = 0xAC00, hangul_lead = 0x1100, hangul_vowel = 0x1161, hangul_tail = 0x11A7;
inline constexpr char32_t hangul_leads = 19, hangul_vowels = 21, hangul_tails = 28;

inline std::uint8_t combining_class(char32_t code) noexcept {
  const auto& runs = unicode::tables::combining_runs;
  const auto* run =
      std::lower_bound(std::begin(runs), std::end(runs), code, [](const auto& r, char32_t c) { return r.last < c; });
  return run != std::end(runs) && run->first <= code ? run->combining_class : std::uint8_t{0};
}

/// Appends the full canonical decomposition. Only the first of a pair can decompose further, save U+0344, whose parts do not.
inline void decompose(char32_t code, std::vector<Combining>& out) {
  const auto put = [&](char32_t c) { out.push_back({c, combining_class(c), out.size()}); };
  if (code >= hangul_base && code < hangul_base + hangul_leads * hangul_vowels * hangul_tails) {
    const char32_t index = code - hangul_base;
    put(hangul_lead + index / (hangul_vowels * hangul_tails));
    put(hangul_vowel + index / hangul_tails % hangul_vowels);
    if (index % hangul_tails != 0) put(hangul_tail + index % hangul_tails);
    return;
  }
  char32_t tail[4];  // seconds, innermost last; the longest chain in Unicode is 3
  std::size_t tails = 0;
  for (;;) {
    const auto& all = unicode::tables::decompositions;
    const auto* d = std::lower_bound(std::begin(all), std::end(all), code, [](const auto& x, char32_t c) { return x.code < c; });
    if (d == std::end(all) || d->code != code) break;
    if (d->second != 0 && tails < std::size(tail)) tail[tails++] = d->second;
    code = d->first;
  }
  put(code);
  while (tails != 0) put(tail[--tails]);
}

/// The code point that NFC puts in place of the pair, or 0.
inline char32_t compose(char32_t first, char32_t second) noexcept {
  if (first >= hangul_lead && first < hangul_lead + hangul_leads) {
    if (second < hangul_vowel || second >= hangul_vowel + hangul_vowels) return 0;
    return hangul_base + ((first - hangul_lead) * hangul_vowels + (second - hangul_vowel)) * hangul_tails;
  }
  if (first >= hangul_base && first < hangul_base + hangul_leads * hangul_vowels * hangul_tails) {
    const bool open = (first - hangul_base) % hangul_tails == 0;
    return open && second > hangul_tail && second < hangul_tail + hangul_tails ? first + (second - hangul_tail) : 0;
  }
  const auto& order = unicode::tables::compositions;
  const auto& all = unicode::tables::decompositions;
  const auto before = [&](std::uint16_t i, char32_t) {
    return all[i].first != first ? all[i].first < first : all[i].second < second;
  };
  const auto* at = std::lower_bound(std::begin(order), std::end(order), first, before);
  return at != std::end(order) && all[*at].first == first && all[*at].second == second ? char32_t{all[*at].code} : 0;
}

/// Orders marks and composes, in place. `text` is one stretch: no character outside it takes part.
inline void order_and_compose(std::vector<Combining>& text) {
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i + 1;
    if (text[i].combining_class != 0) {
      while (end < text.size() && text[end].combining_class != 0) ++end;
      std::sort(text.begin() + static_cast<std::ptrdiff_t>(i), text.begin() + static_cast<std::ptrdiff_t>(end),
                [](const Combining& a, const Combining& b) {
                  return a.combining_class != b.combining_class ? a.combining_class < b.combining_class : a.place < b.place;
                });
    }
    i = end;
  }
  // A mark joins the last starter unless a mark of the same or a higher class, or another starter, stands between them.
  constexpr std::size_t none = static_cast<std::size_t>(-1);
  std::size_t starter = none, kept = 0;
  int last_class = -1;  // of what stands directly before and was not joined; -1: nothing stands between
  for (const Combining c : text) {
    if (starter != none && last_class < static_cast<int>(c.combining_class)) {
      if (const char32_t joined = compose(text[starter].code, c.code)) {
        text[starter].code = joined;
        continue;
      }
    }
    if (c.combining_class == 0) starter = kept, last_class = -1;
    else last_class = c.combining_class;
    text[kept++] = c;
  }
  text.resize(kept);
}

}  // namespace detail

/// The number of bytes at the front that NFC surely leaves as they are (valid UTF-8, see valid_utf8_prefix): all of them for
/// nearly every text that people type. Ends before the character that a mark would join.
[[nodiscard]] inline std::size_t nfc_inert_prefix(std::string_view text) noexcept {
  std::size_t at = 0, last = 0;
  while (at < text.size()) {
    if (static_cast<unsigned char>(text[at]) < 0xCC) {  // below U+0300 all is inert
      last = at;
      at += static_cast<unsigned char>(text[at]) < 0x80 ? 1 : 2;
      continue;
    }
    if (!unicode::nfc_inert(decode_utf8_unchecked(text.data() + at))) return last;
    last = at;
    at += utf8_length(text[at]);
  }
  return text.size();
}

/// `text` in normalization form C. `text` is whole UTF-8 (surrogates may stand in it, and stay).
[[nodiscard]] inline std::string to_nfc(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  std::vector<detail::Combining> stretch;
  while (!text.empty()) {
    const std::size_t inert = nfc_inert_prefix(text);
    out.append(text.substr(0, inert));
    text.remove_prefix(inert);
    if (text.empty()) break;
    // One stretch: a character, then all that are not inert.
    stretch.clear();
    std::size_t at = 0;
    do {
      detail::decompose(decode_utf8_unchecked(text.data() + at), stretch);
      at += utf8_length(text[at]);
    } while (at < text.size() && !unicode::nfc_inert(decode_utf8_unchecked(text.data() + at)));
    detail::order_and_compose(stretch);
    for (const detail::Combining& c : stretch) append_utf8(out, c.code);
    text.remove_prefix(at);
  }
  return out;
}

}  // namespace nihao
