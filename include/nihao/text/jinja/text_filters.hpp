// Jinja's filters on text and numbers.
#pragma once

#include "tests.hpp"

namespace nihao::jinja {

/// A filter: `value | name(arguments)`.
struct FilterFunction {
  std::string_view name;
  Expected<Value> (*call)(Runtime&, const Value&, const Arguments&);
};

namespace detail {

/// 'a.b.0' read off a value; an integer or nothing is itself a way.
[[nodiscard]] inline Result read_path(Runtime& rt, Value v, const Value* path, const Value* otherwise = nullptr) {
  const auto step = [&](const Value& key) -> Expected<void> {
    NIHAO_TRY(v, get_item(rt, v, key));
    if (otherwise && !otherwise->is_none() && v.is_undefined()) v = *otherwise;
    return {};
  };
  if (!path || path->is_none()) return v;
  if (!path->is_string()) {
    NIHAO_CHECK(step(*path));
    return v;
  }
  for (std::string_view rest = path->text();;) {
    const std::size_t dot = std::min(rest.find('.'), rest.size());
    const std::string_view part = rest.substr(0, dot);
    std::int64_t index = 0;
    const bool number = !part.empty() && part.front() != '-' &&
                        std::from_chars(part.data(), part.data() + part.size(), index).ptr == part.data() + part.size();
    NIHAO_CHECK(step(number ? Value(index) : rt.text(std::string(part))));
    if (dot == rest.size()) return v;
    rest.remove_prefix(dot + 1);
  }
}
/// The value as text, as most filters begin: str() unless it is a string.
template <auto change>
Result filter_text(Runtime& rt, const Value& v, const Arguments& a) {
  NIHAO_CHECK(bind_none("this filter", a));
  NIHAO_TRY(const std::string text, to_text(rt, v));
  if (!rt.room(text.size() * 3)) return rt.failure();
  return rt.text(change(text));
}
/// The same for filters that leave an escaped text escaped.
template <auto change>
Result filter_soft(Runtime& rt, const Value& v, const Arguments& a) {
  NIHAO_TRY(const Value out, filter_text<change>(rt, v, a));
  return v.markup() ? out.as_markup() : out;
}

[[nodiscard]] inline std::string same_text(std::string_view text) { return std::string(text); }
/// Every run of letters after white space or one of -([{< begins with a capital.
[[nodiscard]] inline std::string title_words(std::string_view text) {
  std::string out;
  const auto breaks = [](char32_t c) { return is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<'; };
  for (std::size_t at = 0; at < text.size();) {
    const DecodedChar first = decode_utf8(text, at);
    out += to_upper(text.substr(at, first.length));
    at += first.length;
    if (breaks(first.code)) continue;
    std::size_t end = at;
    while (end < text.size() && !breaks(decode_utf8(text, end).code)) end += decode_utf8(text, end).length;
    out += to_lower(text.substr(at, end - at));
    at = end;
  }
  return out;
}
/// Tags and comments out, white space runs to one blank, the five common entities resolved.
[[nodiscard]] inline std::string without_tags(std::string_view text) {
  std::string bare;
  while (!text.empty()) {
    const bool comment = text.starts_with("<!--");
    const std::size_t end = comment ? text.find("-->") : text.front() == '<' ? text.find('>') : std::string_view::npos;
    if (end == std::string_view::npos) {
      bare += text.front();
      text.remove_prefix(1);
    } else {
      text.remove_prefix(end + (comment ? 3 : 1));
    }
  }
  std::string out;
  for (std::string_view rest = strip(bare); !rest.empty();) {
    const DecodedChar c = decode_utf8(rest, 0);
    if (is_space(c.code)) {
      out += ' ';
      rest = strip_left(rest);
      continue;
    }
    std::size_t used = c.length;
    std::string_view piece = rest.substr(0, used);
    for (const auto& [entity, plain] : {std::pair<std::string_view, std::string_view>{"&lt;", "<"},
                                        {"&gt;", ">"},
                                        {"&quot;", "\""},
                                        {"&#34;", "\""},
                                        {"&#39;", "'"},
                                        {"&amp;", "&"}}) {
      if (rest.starts_with(entity)) piece = plain, used = entity.size();
    }
    out += piece;
    rest.remove_prefix(used);
  }
  return out;
}

inline Result filter_escape(Runtime& rt, const Value& v, const Arguments& a) {
  if (v.is_string() && v.markup()) return v;
  NIHAO_TRY(const Value out, filter_text<escaped_html>(rt, v, a));
  return out.as_markup();
}
inline Result filter_force_escape(Runtime& rt, const Value& v, const Arguments& a) {
  NIHAO_TRY(const Value out, filter_text<escaped_html>(rt, v, a));
  return out.as_markup();
}
inline Result filter_safe(Runtime& rt, const Value& v, const Arguments& a) {
  NIHAO_TRY(const Value out, filter_text<same_text>(rt, v, a));
  return out.as_markup();
}
inline Result filter_string(Runtime& rt, const Value& v, const Arguments& a) {
  if (v.is_string()) return v;
  return filter_text<same_text>(rt, v, a);
}
inline Result filter_trim(Runtime& rt, const Value& v, const Arguments& a) {
  NIHAO_TRY(const Value text, filter_string(rt, v, {}));
  NIHAO_TRY(const Value out, str_strip<Side::both>(rt, text, a));
  return v.markup() ? out.as_markup() : out;
}
inline Result filter_center(Runtime& rt, const Value& v, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<1>("center", a, {"width"}));
  NIHAO_TRY(const Value text, filter_string(rt, v, {}));
  return str_pad<'^'>(rt, text, {.positional = {p[0] ? *p[0] : Value(80)}});
}
inline Result filter_replace(Runtime& rt, const Value& v, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<3>("replace", a, {"old", "new", "count"}, 2));
  NIHAO_TRY(const std::string text, to_text(rt, v));
  NIHAO_TRY(const std::string from, to_text(rt, *p[0]));
  NIHAO_TRY(const std::string to, to_text(rt, *p[1]));
  NIHAO_TRY(const std::int64_t count, integer_argument(p[2] && !p[2]->is_none() ? p[2] : nullptr, -1));
  return replace(rt, text, from, to, count);
}
inline Result filter_join(Runtime& rt, const Value& v, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<2>("join", a, {"d", "attribute"}));
  NIHAO_TRY(const std::string between, to_text(rt, p[0] ? *p[0] : Value("")));
  NIHAO_TRY(const Iteration all, iterate(rt, v));
  std::string out;
  for (std::size_t i = 0; i < all.items.size(); ++i) {
    if (i > 0) out += between;
    Value item = all.items[i];
    if (p[1] && !p[1]->is_none()) { NIHAO_TRY(item, read_path(rt, item, p[1])); }
    NIHAO_CHECK(append_str(rt, out, item));
    if (!rt.room(between.size() + out.size() / 64) || out.size() > rt.limits().memory_bytes)
      return rt.fail("bytes of memory"), rt.failure();
  }
  return rt.text(std::move(out));
}
inline Result filter_indent(Runtime& rt, const Value& v, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<3>("indent", a, {"width", "first", "blank"}));
  if (!v.is_string()) return v.is_undefined() ? undefined_error(v) : unsupported_operands(Op::add, v, Value(""));
  std::string indention;
  if (p[0] && p[0]->is_string()) {
    indention = p[0]->text();
  } else {
    NIHAO_TRY(const std::int64_t width, integer_argument(p[0], 4));
    indention.assign(static_cast<std::size_t>(std::clamp<std::int64_t>(width, 0, max_field)), ' ');
  }
  std::string text(v.text());
  text += '\n';
  const auto lines = split_lines(text);
  if (!rt.room(text.size() + lines.size() * indention.size())) return rt.failure();
  std::string out = p[1] && truth(*p[1]) ? indention : "";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out += '\n';
    if (i > 0 && (!lines[i].empty() || (p[2] && truth(*p[2])))) out += indention;
    out += lines[i];
  }
  return rt.text(std::move(out));
}
inline Result filter_truncate(Runtime& rt, const Value& v, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<4>("truncate", a, {"length", "killwords", "end", "leeway"}));
  NIHAO_TRY(const std::int64_t wanted, integer_argument(p[0], 255));
  NIHAO_TRY(const std::string_view end, text_argument(p[2], "..."));
  NIHAO_TRY(const std::int64_t leeway, integer_argument(p[3] && !p[3]->is_none() ? p[3] : nullptr, 5));
  NIHAO_TRY(const std::size_t size, size_of(rt, v));
  const auto end_size = static_cast<std::int64_t>(length(end));
  if (wanted < end_size) return value_error(concat("expected length >= ", end_size, ", got ", wanted));
  if (leeway < 0) return value_error(concat("expected leeway >= 0, got ", leeway));
  if (static_cast<std::int64_t>(size) - wanted <= leeway) return v;
  if (!v.is_string()) return type_error(concat("'", type_name(v), "' object has no attribute 'rsplit'"));
  std::string_view head = v.text().substr(0, byte_of(v.text(), static_cast<std::size_t>(wanted - end_size)));
  if (!(p[1] && truth(*p[1]))) head = head.substr(0, head.rfind(' '));
  return rt.text(concat(head, end));
}
inline Result filter_format(Runtime& rt, const Value& v, const Arguments& a) {
  if (!a.positional.empty() && !a.named.empty())
    return type_error("can't handle positional and keyword arguments at the same time");
  NIHAO_TRY(const std::string format, to_text(rt, v));
  if (a.named.empty()) return percent_format(rt, format, rt.list(a.positional, Flavor::tuple));
  std::vector<Value::Pair> entries;
  entries.reserve(a.named.size());
  for (const auto& [name, value] : a.named) entries.emplace_back(rt.text(name), value);
  return percent_format(rt, format, rt.dict(std::move(entries)));
}
inline Result filter_wordcount(Runtime& rt, const Value& v, const Arguments& a) {
  NIHAO_CHECK(bind_none("wordcount", a));
  NIHAO_TRY(const std::string text, to_text(rt, v));
  std::int64_t words = 0;
  bool inside = false;
  each_character(text, [&](char32_t c, std::string_view) {
    const bool letter = c == '_' || char_is_alnum(c);
    words += letter && !inside;
    inside = letter;
  });
  return Value(words);
}

/// One paragraph broken at `width` characters (Python's textwrap.wrap, white space kept as it is).
inline void wrap_line(std::vector<std::string>& out, std::string_view line, std::size_t width, bool break_words,
                      bool at_hyphens) {
  // Chunks: runs of white space, and words cut after hyphens between letters.
  std::vector<std::string_view> chunks;
  for (std::size_t at = 0; at < line.size();) {
    const bool space = is_space(decode_utf8(line, at).code);
    std::size_t end = at;
    while (end < line.size() && is_space(decode_utf8(line, end).code) == space) {
      const std::size_t next = end + decode_utf8(line, end).length;
      const auto letter = [&](std::size_t i) { return i < line.size() && char_is_alpha(decode_utf8(line, i).code); };
      const bool cut = !space && at_hyphens && line[end] == '-' && end >= at + 2 &&
                       char_is_alpha(decode_utf8(last_character(line.substr(0, end)), 0).code) && letter(next) &&
                       letter(next + decode_utf8(line, next).length);
      end = next;
      if (cut) break;
    }
    chunks.push_back(line.substr(at, end - at));
    at = end;
  }
  for (std::size_t i = 0; i < chunks.size();) {
    if (!out.empty() && strip(chunks[i]).empty()) {  // a line after the first does not begin with white space
      if (++i == chunks.size()) break;
    }
    std::string current;
    std::size_t used = 0;
    while (i < chunks.size() && used + length(chunks[i]) <= width) used += length(chunks[i]), current += chunks[i++];
    if (i < chunks.size() && length(chunks[i]) > width) {  // a word longer than a line
      if (break_words) {
        const std::size_t cut = byte_of(chunks[i], std::max<std::size_t>(width - used, 1));
        current += chunks[i].substr(0, cut);
        chunks[i].remove_prefix(cut);
      } else if (current.empty()) {
        current += chunks[i++];
      }
    }
    const std::size_t keep = strip_right(current).size();
    if (!out.empty() || keep > 0 || i < chunks.size()) current.resize(keep);
    if (!current.empty()) out.push_back(std::move(current));
  }
}
inline Result filter_wordwrap(Runtime& rt, const Value& v, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<4>("wordwrap", a, {"width", "break_long_words", "wrapstring", "break_on_hyphens"}));
  NIHAO_TRY(const std::int64_t width, integer_argument(p[0], 79));
  NIHAO_TRY(const std::string_view between, text_argument(p[2] && !p[2]->is_none() ? p[2] : nullptr, "\n"));
  if (v.is_undefined()) return undefined_error(v);
  if (!v.is_string()) return type_error(concat("'", type_name(v), "' object has no attribute 'splitlines'"));
  if (width < 1) return value_error(concat("invalid width ", width, " (must be > 0)"));
  const std::string_view text = v.text();
  std::string out;
  bool first = true;
  for (const std::string_view line : split_lines(text)) {
    if (!rt.room(line.size() * 16)) return rt.failure();
    std::vector<std::string> wrapped;
    wrap_line(wrapped, line, static_cast<std::size_t>(width), !p[1] || truth(*p[1]), !p[3] || truth(*p[3]));
    if (!std::exchange(first, false)) out += between;
    for (std::size_t i = 0; i < wrapped.size(); ++i) {
      if (i > 0) out += between;
      out += wrapped[i];
    }
    if (!rt.room(out.size() / 64 + between.size()) || out.size() > rt.limits().memory_bytes)
      return rt.fail("bytes of memory"), rt.failure();
  }
  return rt.text(std::move(out));
}

inline void append_url(std::string& out, std::string_view text, bool query) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
                       c == '-' || c == '~' || (c == '/' && !query);
    if (plain) out += c;
    else if (c == ' ' && query) out += '+';
    else out += '%', out += "0123456789ABCDEF"[byte >> 4], out += "0123456789ABCDEF"[byte & 15];
  }
}
inline Result filter_urlencode(Runtime& rt, const Value& v, const Arguments& a) {
  NIHAO_CHECK(bind_none("urlencode", a));
  std::string out;
  if (!v.is(Kind::dict) && !v.is(Kind::list)) {
    NIHAO_TRY(const std::string text, to_text(rt, v));
    append_url(out, text, false);
    return rt.text(std::move(out));
  }
  NIHAO_TRY(const Iteration all, iterate(rt, v.is(Kind::dict) ? dict_rows(rt, v, Flavor::dict_items) : v));
  for (const Value& pair : all.items) {
    if (!pair.is(Kind::list) || pair.items().size() != 2) return value_error("urlencode needs pairs");
    if (!out.empty()) out += '&';
    for (std::size_t i = 0; i < 2; ++i) {
      NIHAO_TRY(const std::string text, to_text(rt, pair.items()[i]));
      if (i > 0) out += '=';
      append_url(out, text, true);
    }
  }
  return rt.text(std::move(out));
}
inline Result filter_xmlattr(Runtime& rt, const Value& v, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<1>("xmlattr", a, {"autospace"}));
  if (!v.is(Kind::dict)) return type_error("Can only get item pairs from a mapping.");
  std::string out;
  for (const auto& [key, value] : v.entries()) {
    if (value.is_none() || value.is_undefined()) continue;
    NIHAO_TRY(const std::string name, to_text(rt, key));
    if (name.find_first_of(" \t\n\r\f\v/>=") != std::string::npos)
      return value_error(concat("Invalid character in attribute name: '", printable(name), "'"));
    NIHAO_TRY(const std::string text, to_text(rt, value));
    if (!out.empty() || !p[0] || truth(*p[0])) out += ' ';
    out += concat(escaped_html(name), "=\"", escaped_html(text), "\"");
  }
  return rt.text(std::move(out));
}

// ----------------------------------------------------------------------------------------------------------------- numbers

/// float(text): nothing if it is no number.
[[nodiscard]] inline std::optional<double> parse_real(std::string_view text) {
  std::string digits;
  for (const char c : strip(text)) {
    if (c != '_') digits += c;
  }
  std::string_view rest = digits;
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  if (rest.empty() || rest.front() == '-' || rest.front() == '+') return std::nullopt;
  double value = 0;
  const auto [end, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (end != rest.data() + rest.size()) return std::nullopt;
  if (problem == std::errc::result_out_of_range) value = rest.find("e-") != std::string_view::npos ? 0.0 : HUGE_VAL;
  else if (problem != std::errc{}) return std::nullopt;
  return negative ? -value : value;
}
/// int(text, base): nothing if it is none.
[[nodiscard]] inline std::optional<Int> parse_int(std::string_view text, unsigned base) {
  std::string_view rest = strip(text);
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  const auto prefix = [&](char lower) { return rest.size() > 2 && rest[0] == '0' && (rest[1] | 0x20) == lower; };
  for (const auto& [lower, of] : {std::pair{'x', 16u}, {'o', 8u}, {'b', 2u}}) {
    if (prefix(lower) && (base == of || base == 0)) base = of, rest.remove_prefix(2);
  }
  if (base == 0) base = 10;
  if (rest.empty() || base < 2 || base > 36) return std::nullopt;
  Int value = 0;
  char before = '_';
  for (const char c : rest) {
    if (c == '_' && before != '_') {
      before = c;
      continue;
    }
    const char low = static_cast<char>(c | 0x20);
    const int digit = c >= '0' && c <= '9' ? c - '0' : low >= 'a' && low <= 'z' ? low - 'a' + 10 : 99;
    if (digit >= static_cast<int>(base)) return std::nullopt;
    if (__builtin_mul_overflow(value, static_cast<Int>(base), &value) ||
        __builtin_add_overflow(value, static_cast<Int>(digit), &value))
      return std::nullopt;
    before = c;
  }
  if (before == '_') return std::nullopt;
  return negative ? -value : value;
}
inline Result filter_int(Runtime&, const Value& v, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<2>("int", a, {"default", "base"}));
  NIHAO_TRY(const std::int64_t base, integer_argument(p[1], 10));
  Value otherwise = p[0] ? *p[0] : Value(0);
  if (v.is_undefined()) return undefined_error(v);
  if (v.is_integral()) return Value(v.integer());
  std::optional<double> real;
  if (v.is(Kind::real)) real = v.real();
  if (v.is_string()) {
    if (const auto whole = parse_int(v.text(), static_cast<unsigned>(std::clamp<std::int64_t>(base, 0, 37))))
      return Value(*whole);
    real = parse_real(v.text());
  }
  if (!real || !std::isfinite(*real)) return otherwise;
  if (std::abs(*real) >= 0x1p126) return too_large();
  return Value(static_cast<Int>(*real));
}
inline Result filter_float(Runtime&, const Value& v, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<1>("float", a, {"default"}));
  if (v.is_undefined()) return undefined_error(v);
  if (v.is_number()) return Value(v.real());
  if (v.is_string()) {
    if (const auto real = parse_real(v.text())) return Value(*real);
  }
  return p[0] ? *p[0] : Value(0.0);
}
inline Result filter_abs(Runtime& rt, const Value& v, const Arguments& a) {
  NIHAO_CHECK(bind_none("abs", a));
  if (v.is_undefined()) return undefined_error(v);
  if (v.is(Kind::real)) return Value(std::abs(v.real()));
  if (!v.is_integral()) return type_error(concat("bad operand type for abs(): '", type_name(v), "'"));
  return v.integer() < 0 ? arithmetic(rt, Op::sub, Value(0), v) : Value(v.integer());
}
/// round(): half to even; digits by the decimal form, as Python rounds.
[[nodiscard]] inline double rounded(double value, std::int64_t digits) {
  if (!std::isfinite(value) || digits > 323) return value;
  if (digits < -308) return std::copysign(0.0, value);
  if (digits < 0) {
    const double scale = std::pow(10.0, static_cast<double>(-digits));
    return std::nearbyint(value / scale) * scale;
  }
  char buffer[800];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed, static_cast<int>(digits)).ptr;
  double out = value;
  std::from_chars(buffer, end, out);
  return out;
}
inline Result filter_round(Runtime&, const Value& v, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<2>("round", a, {"precision", "method"}));
  NIHAO_TRY(const std::int64_t digits, integer_argument(p[0], 0));
  NIHAO_TRY(const std::string_view method, text_argument(p[1], "common"));
  if (method != "common" && method != "ceil" && method != "floor") return value_error("method must be common, ceil or floor");
  if (v.is_undefined()) return undefined_error(v);
  if (!v.is_number()) return type_error(concat("type ", type_name(v), " doesn't define __round__ method"));
  if (method == "common") {
    if (v.is(Kind::real)) return Value(rounded(v.real(), digits));
    Int unit = 1;
    for (std::int64_t i = digits; i < 0 && unit != 0; ++i) {
      if (__builtin_mul_overflow(unit, Int{10}, &unit)) return Value(0);
    }
    const Int rest = v.integer() % unit, whole = v.integer() - rest, twice = 2 * (rest < 0 ? -rest : rest);
    const bool away = twice > unit || (twice == unit && (whole / unit) % 2 != 0);  // half to even
    return Value(away ? whole + (rest < 0 ? -unit : unit) : whole);
  }
  const double scale = std::pow(10.0, static_cast<double>(std::clamp<std::int64_t>(digits, -300, 300)));
  const double out = (method == "ceil" ? std::ceil(v.real() * scale) : std::floor(v.real() * scale)) / scale;
  return Value(out);
}
inline Result filter_filesize(Runtime& rt, const Value& v, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<1>("filesizeformat", a, {"binary"}));
  const Value unknown = Value::none();
  NIHAO_TRY(const Value number, filter_float(rt, v, {.positional = {unknown}}));
  if (number.is_none()) return value_error(concat("could not convert '", type_name(v), "' to float"));
  const double bytes = number.real();
  const bool binary = p[0] && truth(*p[0]);
  const double base = binary ? 1024 : 1000;
  if (bytes == 1) return rt.text("1 Byte");
  if (!(bytes >= base)) return rt.text(concat(static_cast<std::int64_t>(std::clamp(bytes, -1e15, 1e15)), " Bytes"));
  double unit = base;
  std::size_t i = 0;
  while (i < 7 && bytes >= unit * base) unit *= base, ++i;
  return rt.text(concat(real_digits(bytes / unit, 'f', {.precision = 1}), " ",
                        std::string_view(binary ? "KMGTPEZY" : "kMGTPEZY").substr(i, 1), binary ? "iB" : "B"));
}

// ------------------------------------------------------------------------------------------------------------------- others

inline Result filter_default(Runtime&, const Value& v, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<2>("default", a, {"default_value", "boolean"}));
  if (v.is_undefined() || (p[1] && truth(*p[1]) && !truth(v))) return p[0] ? *p[0] : Value("");
  return v;
}
inline Result filter_attr(Runtime& rt, const Value& v, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<1>("attr", a, {"name"}, 1));
  NIHAO_TRY(const std::string_view name, text_argument(p[0], ""));
  if (v.is(Kind::dict) && !find_method(v, name))
    return rt.missing(concat("'dict object' has no attribute '", printable(name), "'"));
  return get_attribute(rt, v, name);
}
inline Result filter_tojson(Runtime& rt, const Value& v, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<4>("tojson", a, {"ensure_ascii", "indent", "separators", "sort_keys"}));
  JsonStyle style;
  style.ensure_ascii = p[0] && truth(*p[0]);
  style.sort_keys = p[3] && truth(*p[3]);
  if (p[1] && !p[1]->is_none()) {
    style.item_separator.assign(1, ',');
    if (p[1]->is_string()) {
      style.indent = std::string(p[1]->text());
    } else {
      NIHAO_TRY(const std::int64_t width, integer_argument(p[1], 0));
      style.indent = std::string(static_cast<std::size_t>(std::clamp<std::int64_t>(width, 0, 1000)), ' ');
    }
    if (style.indent->size() > 1000) return rt.fail("bytes of memory"), rt.failure();
  }
  if (p[2] && !p[2]->is_none()) {
    if (!p[2]->is(Kind::list) || p[2]->items().size() != 2) return value_error("separators are a pair");
    NIHAO_TRY(style.item_separator, text_argument(&p[2]->items()[0], ""));
    NIHAO_TRY(style.key_separator, text_argument(&p[2]->items()[1], ""));
  }
  std::string out;
  NIHAO_CHECK(append_json(rt, out, v, style));
  return rt.text(std::move(out));
}
inline Result filter_refused(Runtime&, const Value&, const Arguments&) {
  return Error{ErrorCode::unsupported, "this filter of Jinja (random, urlize or pprint) is not supported"};
}

inline constexpr FilterFunction text_filters[] = {
    {"abs", filter_abs},
    {"attr", filter_attr},
    {"capitalize", filter_soft<capitalized>},
    {"center", filter_center},
    {"d", filter_default},
    {"default", filter_default},
    {"e", filter_escape},
    {"escape", filter_escape},
    {"filesizeformat", filter_filesize},
    {"float", filter_float},
    {"forceescape", filter_force_escape},
    {"format", filter_format},
    {"indent", filter_indent},
    {"int", filter_int},
    {"join", filter_join},
    {"lower", filter_soft<to_lower>},
    {"pprint", filter_refused},
    {"random", filter_refused},
    {"replace", filter_replace},
    {"round", filter_round},
    {"safe", filter_safe},
    {"string", filter_string},
    {"striptags", filter_text<without_tags>},
    {"title", filter_text<title_words>},
    {"tojson", filter_tojson},
    {"trim", filter_trim},
    {"truncate", filter_truncate},
    {"upper", filter_soft<to_upper>},
    {"urlencode", filter_urlencode},
    {"urlize", filter_refused},
    {"wordcount", filter_wordcount},
    {"wordwrap", filter_wordwrap},
    {"xmlattr", filter_xmlattr},
};

}  // namespace detail

}  // namespace nihao::jinja
