// What a pre-tokenizer asks about a code point: its general category, and whether it is white space.
#pragma once

#include "unicode_tables.hpp"

#include <cstdint>
#include <string_view>

namespace nihao::unicode {

/// The general categories of the Unicode Character Database (UAX #44, table 12).
enum class Category : std::uint8_t {
  Lu,
  Ll,
  Lt,
  Lm,
  Lo,  // letters: upper, lower, title case, modifier, other
  Mn,
  Mc,
  Me,  // marks: non-spacing, spacing, enclosing
  Nd,
  Nl,
  No,  // numbers: decimal digits, letters, other
  Pc,
  Pd,
  Ps,
  Pe,
  Pi,
  Pf,
  Po,  // punctuation
  Sm,
  Sc,
  Sk,
  So,  // symbols: maths, currency, modifier, other
  Zs,
  Zl,
  Zp,  // separators: space, line, paragraph
  Cc,
  Cf,  // control, format
  Cs = 28,
  Co,
  Cn,  // surrogate, private use, not assigned
};

/// The version of the tables: "16.0.0".
inline constexpr std::string_view version = tables::version;

namespace detail {
constexpr unsigned table_letter(char32_t code) noexcept {
  if (code >= 0x110000) return 'A' + static_cast<unsigned>(Category::Cn);
  const unsigned block = tables::block_of[tables::group_of[code >> 10]][code >> 5 & 31];
  return static_cast<unsigned char>(tables::category_letters[block << 5 | (code & 31)]);
}
}  // namespace detail

/// The general category; Cn for what is beyond U+10FFFF.
[[nodiscard]] constexpr Category category(char32_t code) noexcept {
  return static_cast<Category>((detail::table_letter(code) - 'A') & 31);
}

/// False if NFC may change this code point, move it, or join it to the one before.
[[nodiscard]] constexpr bool nfc_inert(char32_t code) noexcept { return detail::table_letter(code) < 'a'; }

/// A set of properties as bits, so that a regex class is one mask.
using Properties = std::uint16_t;
inline constexpr Properties letter = 1;        ///< \p{L}
inline constexpr Properties number = 2;        ///< \p{N}
inline constexpr Properties mark = 4;          ///< \p{M}
inline constexpr Properties punctuation = 8;   ///< \p{P}
inline constexpr Properties symbol = 16;       ///< \p{S}
inline constexpr Properties white_space = 32;  ///< \s, the property White_Space
inline constexpr Properties line_break = 64;   ///< [\r\n] alone
inline constexpr Properties upper = 128;       ///< \p{Lu} and \p{Lt}
inline constexpr Properties lower = 256;       ///< \p{Ll}

namespace detail {
constexpr Properties compute(char32_t code) noexcept {
  using enum Category;
  const Category c = category(code);
  Properties p = 0;
  if (c <= Lo) p = letter;
  else if (c <= Me) p = mark;
  else if (c <= No) p = number;
  else if (c <= Po) p = punctuation;
  else if (c <= So) p = symbol;
  else if (c <= Zp) p = white_space;
  if (c == Lu || c == Lt) p |= upper;
  if (c == Ll) p |= lower;
  if ((code >= 9 && code <= 13) || code == 0x85) p |= white_space;
  if (code == '\r' || code == '\n') p |= line_break;
  return p;
}

struct AsciiProperties {
  Properties of[128];
};
inline constexpr AsciiProperties ascii = [] {
  AsciiProperties table{};
  for (char32_t code = 0; code < 128; ++code) table.of[code] = compute(code);
  return table;
}();
}  // namespace detail

/// All properties of a code point.
[[nodiscard]] constexpr Properties properties(char32_t code) noexcept {
  return code < 128 ? detail::ascii.of[code] : detail::compute(code);
}

}  // namespace nihao::unicode
