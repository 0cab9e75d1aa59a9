// Strings as Python sees them: rows of code points, with Python's idea of space, letters and case.
#pragma once

#include "../unicode.hpp"
#include "../utf8.hpp"
#include "case_tables.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

namespace nihao::jinja {

/// str.isspace() of one code point.
[[nodiscard]] constexpr bool is_space(char32_t c) noexcept {
  if (c < 0x80) return (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x20);
  return c == 0x85 || (unicode::category(c) >= unicode::Category::Zs && unicode::category(c) <= unicode::Category::Zp);
}

/// str.isprintable() of one code point: what repr() writes as it is.
[[nodiscard]] constexpr bool is_printable(char32_t c) noexcept {
  return c < 0x80 ? c >= 0x20 && c < 0x7f : unicode::category(c) < unicode::Category::Zs;
}

/// The number of code points; a byte that is not UTF-8 counts as one.
[[nodiscard]] inline std::size_t length(std::string_view text) noexcept {
  std::size_t n = 0;
  for (std::size_t at = 0; at < text.size(); ++n) at += decode_utf8(text, at).length;
  return n;
}

/// The byte where code point `index` starts; text.size() from there on.
[[nodiscard]] inline std::size_t byte_of(std::string_view text, std::size_t index) noexcept {
  std::size_t at = 0;
  for (; index > 0 && at < text.size(); --index) at += decode_utf8(text, at).length;
  return at;
}

/// Calls f(code, its bytes) for each code point.
template <class F>
void each_character(std::string_view text, F&& f) {
  for (std::size_t at = 0; at < text.size();) {
    const DecodedChar c = decode_utf8(text, at);
    f(c.code, text.substr(at, c.length));
    at += c.length;
  }
}

namespace detail {
/// The last code point of `text` (not empty): its bytes.
[[nodiscard]] inline std::string_view last_character(std::string_view text) noexcept {
  std::size_t at = text.size() - 1;
  while (at > 0 && text.size() - at < 4 && is_utf8_continuation(text[at])) --at;
  return decode_utf8(text, at).length == text.size() - at ? text.substr(at) : text.substr(text.size() - 1);
}
template <class F>
[[nodiscard]] std::string_view strip_if(std::string_view text, bool left, bool right, F&& drop) {
  while (left && !text.empty()) {
    const DecodedChar c = decode_utf8(text, 0);
    if (!drop(text.substr(0, c.length))) break;
    text.remove_prefix(c.length);
  }
  while (right && !text.empty()) {
    const std::string_view c = last_character(text);
    if (!drop(c)) break;
    text.remove_suffix(c.size());
  }
  return text;
}
inline bool drops_space(std::string_view c) noexcept { return is_space(decode_utf8(c, 0).code); }
}  // namespace detail

/// str.strip() and its halves.
[[nodiscard]] inline std::string_view strip(std::string_view text) noexcept {
  return detail::strip_if(text, true, true, detail::drops_space);
}
[[nodiscard]] inline std::string_view strip_left(std::string_view text) noexcept {
  return detail::strip_if(text, true, false, detail::drops_space);
}
[[nodiscard]] inline std::string_view strip_right(std::string_view text) noexcept {
  return detail::strip_if(text, false, true, detail::drops_space);
}

namespace detail {
/// A code point changed by a table of ranges, or itself.
[[nodiscard]] inline char32_t mapped(std::span<const CaseRange> table, char32_t c) noexcept {
  const auto after = std::upper_bound(table.begin(), table.end(), c, [](char32_t x, const CaseRange& r) { return x < r.first; });
  if (after == table.begin()) return c;
  const CaseRange& r = *std::prev(after);
  return c <= r.last && (c - r.first) % r.stride == 0 ? static_cast<char32_t>(static_cast<std::int32_t>(c) + r.delta) : c;
}
[[nodiscard]] inline std::string_view special(std::span<const CaseSpecial> table, char32_t c) noexcept {
  const auto at = std::lower_bound(table.begin(), table.end(), c, [](const CaseSpecial& s, char32_t x) { return s.code < x; });
  return at != table.end() && at->code == c ? at->text : std::string_view{};
}
}  // namespace detail

/// One code point in another case, appended. Full mappings (ß gives SS), as str.upper() and str.lower() use.
inline void append_upper(std::string& out, char32_t c) {
  if (c < 0x80) out += static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
  else if (const auto text = detail::special(case_tables::upper_specials, c); !text.empty()) out += text;
  else append_utf8(out, detail::mapped(case_tables::to_upper, c));
}
inline void append_lower(std::string& out, char32_t c) {
  if (c < 0x80) out += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  else if (c == 0x130) out += "i\xCC\x87";
  else append_utf8(out, detail::mapped(case_tables::to_lower, c));
}
/// Title case differs from upper case for a few ligatures and digraphs.
inline void append_title(std::string& out, char32_t c) {
  if (const auto text = detail::special(case_tables::title_specials, c); !text.empty()) out += text;
  else append_upper(out, c);
}

namespace detail {
/// Whether a capital sigma at `at` ends a word, and so becomes a final one: letters before it, none after it.
[[nodiscard]] inline bool final_sigma(std::string_view text, std::size_t at) noexcept {
  const auto letter = [](char32_t c) { return unicode::category(c) <= unicode::Category::Lo; };
  const auto skipped = [](char32_t c) {
    const auto k = unicode::category(c);
    return c == '\'' || c == '.' || c == ':' || c == 0xB7 || c == 0x2019 || k == unicode::Category::Mn ||
           k == unicode::Category::Me || k == unicode::Category::Cf || k == unicode::Category::Sk;
  };
  bool before = false;
  for (std::string_view head = text.substr(0, at); !head.empty();) {
    const std::string_view last = last_character(head);
    const char32_t c = decode_utf8(last, 0).code;
    if (!skipped(c)) {
      before = letter(c);
      break;
    }
    head.remove_suffix(last.size());
  }
  for (std::size_t i = at + 2; before && i < text.size();) {
    const DecodedChar c = decode_utf8(text, i);
    if (!skipped(c.code)) return !letter(c.code);
    i += c.length;
  }
  return before;
}
}  // namespace detail

[[nodiscard]] inline std::string to_upper(std::string_view text) {
  std::string out;
  each_character(
      text, [&](char32_t c, std::string_view bytes) { c == replacement_character ? void(out += bytes) : append_upper(out, c); });
  return out;
}
/// The lower case of the code point at `at` of a text, on which a capital sigma depends.
inline void append_lower_in(std::string& out, char32_t c, std::string_view text, std::size_t at) {
  if (c == 0x3A3) out += detail::final_sigma(text, at) ? "\xCF\x82" : "\xCF\x83";
  else append_lower(out, c);
}
[[nodiscard]] inline std::string to_lower(std::string_view text) {
  std::string out;
  each_character(text, [&](char32_t c, std::string_view bytes) {
    if (c == replacement_character) out += bytes;
    else append_lower_in(out, c, text, static_cast<std::size_t>(bytes.data() - text.data()));
  });
  return out;
}

/// Whether a code point has a case, and which: what isupper() and islower() ask.
[[nodiscard]] inline bool is_upper(char32_t c) noexcept {
  if (c < 0x80) return c >= 'A' && c <= 'Z';
  return unicode::category(c) == unicode::Category::Lu || (c >= 0x2160 && c <= 0x216f) || (c >= 0x24b6 && c <= 0x24cf);
}
[[nodiscard]] inline bool is_title(char32_t c) noexcept { return unicode::category(c) == unicode::Category::Lt; }
[[nodiscard]] inline bool is_lower(char32_t c) noexcept {
  if (c < 0x80) return c >= 'a' && c <= 'z';
  return unicode::category(c) == unicode::Category::Ll || c == 0xaa || c == 0xba || (c >= 0x2170 && c <= 0x217f) ||
         (c >= 0x24d0 && c <= 0x24e9);
}

}  // namespace nihao::jinja
