// A template's text to tokens: where text ends and code begins, and who takes the white space between them.
// Settings are those of transformers: trim_blocks and lstrip_blocks on, and one newline at the template's end dropped.
#pragma once

#include "../../base/error.hpp"
#include "../../base/str.hpp"
#include "../utf8.hpp"
#include "characters.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nihao::jinja {

enum class TokenKind : std::uint8_t {
  text,
  print_begin,
  print_end,
  block_begin,
  block_end,
  name,
  string,
  integer,
  real,
  op,
  end
};

struct Token {
  TokenKind kind;
  std::string text;  // of a string: what it means, escapes resolved
  std::uint32_t line;
};

/// "line 7", where errors of a template are.
[[nodiscard]] inline std::string line_of(std::uint32_t line) { return concat("line ", line); }

namespace detail {

class Lexer {
 public:
  explicit Lexer(std::string_view source) {
    // All newlines are \n from here on, in strings too.
    for (std::size_t i = 0; i < source.size(); ++i) {
      if (source[i] == '\r') {
        source_ += '\n';
        i += i + 1 < source.size() && source[i + 1] == '\n';
      } else {
        source_ += source[i];
      }
    }
    if (!source_.empty() && source_.back() == '\n') source_.pop_back();
  }

  [[nodiscard]] Expected<std::vector<Token>> run() {
    while (at_ < source_.size()) NIHAO_CHECK(text_then_tag());
    push(TokenKind::end, "");
    return std::move(tokens_);
  }

 private:
  [[nodiscard]] bool starts(std::string_view word) const noexcept {
    return std::string_view(source_).substr(at_, word.size()) == word;
  }
  [[nodiscard]] char peek(std::size_t ahead = 0) const noexcept {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }
  void push(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }
  void advance(std::size_t n) noexcept {
    for (; n > 0 && at_ < source_.size(); --n) line_ += source_[at_++] == '\n';
  }
  [[nodiscard]] Error fail(std::string_view what) const { return Error{ErrorCode::malformed, what, line_of(line_)}; }

  void push_text(std::string_view text) {
    if (!text.empty()) push(TokenKind::text, std::string(text));
  }
  void skip_space() noexcept {
    while (at_ < source_.size()) {
      const DecodedChar c = decode_utf8(source_, at_);
      if (!is_space(c.code)) return;
      advance(c.length);
    }
  }

  /// What is left of `text` before a tag with this sign: `-` takes all white space, a block or comment without `+` takes the
  /// white space of its own line if nothing else is before it there.
  [[nodiscard]] std::string_view before_tag(std::string_view text, char sign, bool print) const noexcept {
    if (sign == '-') return strip_right(text);
    if (sign == '+' || print) return text;
    const std::size_t newline = text.rfind('\n');
    const std::size_t start = newline == std::string_view::npos ? 0 : newline + 1;
    if (start == 0 && !line_start_) return text;
    return strip(text.substr(start)).empty() ? text.substr(0, start) : text;
  }
  /// After a tag's end: `-` takes all white space; a block or comment without `+` takes one newline.
  void after_tag(char sign, bool print) noexcept {
    if (sign == '-') skip_space();
    else if (sign != '+' && !print && peek() == '\n') advance(1);
  }

  [[nodiscard]] Expected<void> text_then_tag() {
    const std::string_view rest = std::string_view(source_).substr(at_);
    std::size_t tag = 0;
    for (;; ++tag) {
      tag = rest.find('{', tag);
      if (tag == std::string_view::npos || tag + 1 >= rest.size()) {
        push_text(rest);
        at_ = source_.size();
        return {};
      }
      if (rest[tag + 1] == '{' || rest[tag + 1] == '%' || rest[tag + 1] == '#') break;
    }
    const char type = rest[tag + 1];
    char sign = tag + 2 < rest.size() ? rest[tag + 2] : '\0';
    if (sign != '-' && sign != '+') sign = '\0';
    push_text(before_tag(rest.substr(0, tag), sign, type == '{'));
    advance(tag + 2 + (sign != '\0'));
    if (type == '#') return comment();
    if (type == '%' && is_raw()) return raw();
    push(type == '{' ? TokenKind::print_begin : TokenKind::block_begin, "");
    return code(type == '{');
  }

  [[nodiscard]] Expected<void> comment() {
    const std::size_t end = source_.find("#}", at_);
    if (end == std::string::npos) return fail("Missing end of comment tag");
    const char sign = end > at_ && (source_[end - 1] == '-' || source_[end - 1] == '+') ? source_[end - 1] : '\0';
    advance(end + 2 - at_);
    after_tag(sign, false);
    line_start_ = source_[at_ - 1] == '\n';
    return {};
  }

  // At `raw -%}` or `raw %}`: passes it.
  [[nodiscard]] bool is_raw() noexcept {
    std::size_t i = at_;
    const auto spaces = [&] {
      while (i < source_.size() && is_space(static_cast<unsigned char>(source_[i]))) ++i;
    };
    spaces();
    if (source_.compare(i, 3, "raw") != 0) return false;
    i += 3;
    spaces();
    const bool strips = i < source_.size() && source_[i] == '-';
    if (source_.compare(i + strips, 2, "%}") != 0) return false;
    advance(i + strips + 2 - at_);
    if (strips) skip_space();
    line_start_ = source_[at_ - 1] == '\n';
    return true;
  }

  [[nodiscard]] Expected<void> raw() {
    for (std::size_t begin = source_.find("{%", at_); begin != std::string::npos; begin = source_.find("{%", begin + 2)) {
      std::size_t i = begin + 2;
      const char sign = i < source_.size() && (source_[i] == '-' || source_[i] == '+') ? source_[i] : '\0';
      i += sign != '\0';
      while (i < source_.size() && is_space(static_cast<unsigned char>(source_[i]))) ++i;
      if (source_.compare(i, 6, "endraw") != 0) continue;
      i += 6;
      while (i < source_.size() && is_space(static_cast<unsigned char>(source_[i]))) ++i;
      const char closing = i < source_.size() && (source_[i] == '-' || source_[i] == '+') ? source_[i] : '\0';
      i += closing != '\0';
      if (source_.compare(i, 2, "%}") != 0) continue;
      push_text(before_tag(std::string_view(source_).substr(at_, begin - at_), sign, false));
      advance(i + 2 - at_);
      after_tag(closing, false);
      line_start_ = source_[at_ - 1] == '\n';
      return {};
    }
    return fail("Missing end of raw directive");
  }

  // The tokens up to the tag's end. Inside brackets `}}` and `%}` are operators.
  [[nodiscard]] Expected<void> code(bool print) {
    std::string brackets;
    const std::string_view closing = print ? "}}" : "%}";
    for (;;) {
      skip_space();
      if (at_ >= source_.size()) return {};  // the parser says what it waits for
      if (brackets.empty()) {
        const char sign = peek() == '-' || (peek() == '+' && !print) ? peek() : '\0';
        if (std::string_view(source_).substr(at_ + (sign != '\0'), 2) == closing) {
          push(print ? TokenKind::print_end : TokenKind::block_end, "");
          advance(2u + (sign != '\0'));
          after_tag(sign, print);
          line_start_ = source_[at_ - 1] == '\n';
          return {};
        }
      }
      const char c = peek();
      if (is_digit(c)) NIHAO_CHECK(number());
      else if (is_name_byte(c)) name();
      else if (c == '\'' || c == '"') NIHAO_CHECK(string(c));
      else NIHAO_CHECK(op(brackets));
    }
  }

  static bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
  static bool is_name_byte(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c) || static_cast<unsigned char>(c) >= 0x80;
  }

  void name() {
    std::size_t n = 0;
    while (is_name_byte(peek(n))) ++n;
    push(TokenKind::name, source_.substr(at_, n));
    advance(n);
  }

  [[nodiscard]] Expected<void> number() {
    std::string text;
    std::size_t n = 0;
    const auto digits = [&](auto accepts) {
      while (accepts(peek(n)) || (peek(n) == '_' && accepts(peek(n + 1)))) {
        if (peek(n) != '_') text += peek(n);
        ++n;
      }
    };
    TokenKind kind = TokenKind::integer;
    const char base = peek() == '0' ? static_cast<char>(peek(1) | 0x20) : '\0';
    if (base == 'x' || base == 'o' || base == 'b') {
      text = {'0', base};
      n = 2;
      if (base == 'x') digits([](char c) { return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'); });
      else digits([&](char c) { return c >= '0' && c <= (base == 'o' ? '7' : '1'); });
    } else {
      digits(is_digit);
      if (peek(n) == '.' && is_digit(peek(n + 1))) {
        kind = TokenKind::real;
        text += '.', ++n;
        digits(is_digit);
      }
      const std::size_t signs = peek(n + 1) == '+' || peek(n + 1) == '-';
      if ((peek(n) | 0x20) == 'e' && is_digit(peek(n + 1 + signs))) {
        kind = TokenKind::real;
        text += 'e', ++n;
        if (signs) text += peek(n++);
        digits(is_digit);
      }
    }
    if (kind == TokenKind::integer && base != 'x' && base != 'o' && base != 'b' && text.size() > 1 && text[0] == '0' &&
        text.find_first_not_of('0') != std::string::npos) {
      return fail("an integer does not begin with 0");
    }
    if (text.size() > 400) return fail("a number has too many digits");
    push(kind, std::move(text));
    advance(n);
    return {};
  }

  // A quoted string, with Python's escapes; one it does not know stays as it is.
  [[nodiscard]] Expected<void> string(char quote) {
    std::string text;
    std::size_t i = at_ + 1;
    const auto hex = [&](std::size_t digits, char32_t& code) {
      code = 0;
      for (std::size_t d = 0; d < digits; ++d) {
        const char c = i < source_.size() ? source_[i] : '\0';
        const char low = static_cast<char>(c | 0x20);
        if (is_digit(c)) code = code * 16 + static_cast<char32_t>(c - '0');
        else if (low >= 'a' && low <= 'f') code = code * 16 + static_cast<char32_t>(low - 'a' + 10);
        else return false;
        ++i;
      }
      return code < 0x110000;
    };
    for (;;) {
      if (i >= source_.size()) return fail("a string has no end");
      const char c = source_[i++];
      if (c == quote) break;
      if (c != '\\') {
        text += c;
        continue;
      }
      if (i >= source_.size()) return fail("a string has no end");
      const char e = source_[i++];
      char32_t code = 0;
      switch (e) {
        case '\n': break;
        case 'n': text += '\n'; break;
        case 't': text += '\t'; break;
        case 'r': text += '\r'; break;
        case 'a': text += '\a'; break;
        case 'b': text += '\b'; break;
        case 'f': text += '\f'; break;
        case 'v': text += '\v'; break;
        case '\\':
        case '\'':
        case '"': text += e; break;
        case 'x':
        case 'u':
        case 'U':
          if (!hex(e == 'x' ? 2 : e == 'u' ? 4 : 8, code)) return fail(concat("truncated \\", e, " escape in a string"));
          append_code(text, code);
          break;
        case 'N': return fail("\\N{...} escapes are not supported");
        default:
          if (e >= '0' && e <= '7') {
            code = static_cast<char32_t>(e - '0');
            for (int d = 0; d < 2 && i < source_.size() && source_[i] >= '0' && source_[i] <= '7'; ++d) {
              code = code * 8 + static_cast<char32_t>(source_[i++] - '0');
            }
            append_utf8(text, code);
          } else {
            text += '\\', text += e;
          }
      }
    }
    push(TokenKind::string, std::move(text));
    advance(i - at_);
    return {};
  }

  // Two escapes that form a surrogate pair give one character, as they do once Python has written the text out.
  static void append_code(std::string& text, char32_t code) {
    if (code >= 0xDC00 && code < 0xE000 && text.size() >= 3) {
      const auto byte = [&](std::size_t back) { return static_cast<unsigned char>(text[text.size() - back]); };
      if (byte(3) == 0xED && byte(2) >= 0xA0 && byte(2) < 0xB0) {
        const char32_t high = 0xD000 | (byte(2) & 0x3Fu) << 6 | (byte(1) & 0x3Fu);
        text.resize(text.size() - 3);
        code = 0x10000 + ((high - 0xD800) << 10) + (code - 0xDC00);
      }
    }
    append_utf8(text, code);
  }

  [[nodiscard]] Expected<void> op(std::string& brackets) {
    for (const std::string_view two : {"//", "**", "==", "!=", ">=", "<="}) {
      if (!starts(two)) continue;
      push(TokenKind::op, std::string(two));
      advance(2);
      return {};
    }
    const char c = peek();
    if (std::string_view("+-/*%~[](){}<>=.:|,;").find(c) == std::string_view::npos) {
      return fail(
          concat("unexpected char '", printable(std::string_view(source_).substr(at_, decode_utf8(source_, at_).length)), "'"));
    }
    if (c == '(') brackets += ')';
    else if (c == '[') brackets += ']';
    else if (c == '{') brackets += '}';
    else if (c == ')' || c == ']' || c == '}') {
      if (brackets.empty()) return fail(concat("unexpected '", c, "'"));
      if (brackets.back() != c) return fail(concat("unexpected '", c, "', expected '", brackets.back(), "'"));
      brackets.pop_back();
    }
    push(TokenKind::op, std::string(1, c));
    advance(1);
    return {};
  }

  std::string source_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  bool line_start_ = true;  // whether the text that comes next begins a line
  std::vector<Token> tokens_;
};

}  // namespace detail

/// Tokens of a template; the last is `end`. Errors: malformed, at "line N".
[[nodiscard]] inline Expected<std::vector<Token>> tokenize_template(std::string_view source) {
  return detail::Lexer(source).run();
}

}  // namespace nihao::jinja
