// Values to text: str(), repr() and json.dumps() as Python writes them.
#pragma once

#include "characters.hpp"
#include "runtime.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace nihao::jinja {

__extension__ typedef unsigned __int128 UnsignedInt;
/// |value|, unsigned: the smallest int has no positive twin.
[[nodiscard]] constexpr UnsignedInt magnitude(Int value) noexcept {
  return value < 0 ? UnsignedInt{0} - static_cast<UnsignedInt>(value) : static_cast<UnsignedInt>(value);
}

/// Decimal digits of an int.
inline void append_int(std::string& out, Int value) {
  char digits[40];
  std::size_t n = sizeof digits;
  const bool negative = value < 0;
  UnsignedInt rest = magnitude(value);
  do {
    digits[--n] = static_cast<char>('0' + static_cast<int>(rest % 10));
    rest /= 10;
  } while (rest != 0);
  if (negative) digits[--n] = '-';
  out.append(digits + n, sizeof digits - n);
}

/// repr(float): the shortest digits that read back as the same number; an exponent below 1e-4 and from 1e16 on.
inline void append_real(std::string& out, double value) {
  if (std::isnan(value)) return void(out += "nan");
  if (std::isinf(value)) return void(out += value < 0 ? "-inf" : "inf");
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::scientific).ptr;
  const std::string_view written(text, static_cast<std::size_t>(end - text));
  const std::size_t e = written.find('e');
  int exponent = 0;
  std::from_chars(written.data() + e + 1 + (written[e + 1] == '+'), end, exponent);
  if (exponent < -4 || exponent >= 16) {
    out += written;  // 1e+20, 1.5e-07: to_chars already writes two digits of exponent, as Python does
    return;
  }
  std::string_view mantissa = written.substr(0, e);
  if (mantissa.front() == '-') out += '-', mantissa.remove_prefix(1);
  std::string digits(1, mantissa.front());
  if (mantissa.size() > 2) digits += mantissa.substr(2);
  if (exponent < 0) {
    out += "0.";
    out.append(static_cast<std::size_t>(-exponent - 1), '0');
    out += digits;
    return;
  }
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() < whole) digits.append(whole - digits.size(), '0');
  out += digits.substr(0, whole);
  out += '.';
  out += digits.size() > whole ? std::string_view(digits).substr(whole) : "0";
}

namespace detail {
inline void append_hex(std::string& out, char32_t code, int digits) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += "0123456789abcdef"[code >> shift & 15];
}
}  // namespace detail

/// repr(str).
inline void append_quoted(std::string& out, std::string_view text) {
  const char quote = text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos ? '"' : '\'';
  out += quote;
  each_character(text, [&](char32_t c, std::string_view bytes) {
    if (c == static_cast<unsigned char>(quote) || c == '\\') out += '\\', out += bytes;
    else if (c == '\n') out += "\\n";
    else if (c == '\r') out += "\\r";
    else if (c == '\t') out += "\\t";
    else if (is_printable(c)) out += bytes;
    else if (c < 0x100) out += "\\x", detail::append_hex(out, c, 2);
    else if (c < 0x10000) out += "\\u", detail::append_hex(out, c, 4);
    else out += "\\U", detail::append_hex(out, c, 8);
  });
  out += quote;
}

[[nodiscard]] Expected<void> append_repr(Runtime& rt, std::string& out, const Value& v);

/// str(value): what `{{ value }}` prints. Errors: limit.
[[nodiscard]] inline Expected<void> append_str(Runtime& rt, std::string& out, const Value& v) {
  if (v.is_undefined()) return {};
  if (!v.is_string()) return append_repr(rt, out, v);
  if (!rt.room(v.text().size())) return rt.failure();
  out += v.text();
  return {};
}

namespace detail {
[[nodiscard]] inline Expected<void> append_sequence(Runtime& rt, std::string& out, const Value& v) {
  std::string_view open = "[", close = "]";
  switch (v.flavor()) {
    case Flavor::tuple: open = "(", close = v.items().size() == 1 ? ",)" : ")"; break;
    case Flavor::dict_keys: open = "dict_keys([", close = "])"; break;
    case Flavor::dict_values: open = "dict_values([", close = "])"; break;
    case Flavor::dict_items: open = "dict_items([", close = "])"; break;
    case Flavor::iterator: out += "<generator object>"; return {};
    case Flavor::range: {
      const auto items = v.items();
      const Int start = items.empty() ? 0 : items[0].integer();
      const Int step = items.size() > 1 ? items[1].integer() - start : 1;
      out += "range(", append_int(out, start);
      out += ", ", append_int(out, items.empty() ? 0 : items.back().integer() + step);
      if (step != 1) out += ", ", append_int(out, step);
      out += ')';
      return {};
    }
    case Flavor::list: break;
  }
  out += open;
  bool first = true;
  for (const Value& item : v.items()) {
    if (!std::exchange(first, false)) out += ", ";
    NIHAO_CHECK(append_repr(rt, out, item));
  }
  out += close;
  return {};
}
}  // namespace detail

/// repr(value): what an element of a list prints as. Values are nested at most Limits::depth deep.
inline Expected<void> append_repr(Runtime& rt, std::string& out, const Value& v) {
  if (!rt.tick() || !rt.room(out.size() > 4096 ? 64 : 0)) return rt.failure();
  if (out.size() > rt.limits().memory_bytes) return rt.fail("bytes of memory"), rt.failure();
  switch (v.kind()) {
    case Kind::undefined: out += "Undefined"; break;
    case Kind::none: out += "None"; break;
    case Kind::boolean: out += v.boolean() ? "True" : "False"; break;
    case Kind::integer: append_int(out, v.integer()); break;
    case Kind::real: append_real(out, v.real()); break;
    case Kind::string: {
      if (!rt.room(v.text().size())) return rt.failure();
      append_quoted(out, v.text());
      break;
    }
    case Kind::list: return detail::append_sequence(rt, out, v);
    case Kind::dict: {
      out += '{';
      bool first = true;
      for (const auto& [key, value] : v.entries()) {
        if (!std::exchange(first, false)) out += ", ";
        NIHAO_CHECK(append_repr(rt, out, key));
        out += ": ";
        NIHAO_CHECK(append_repr(rt, out, value));
      }
      out += '}';
      break;
    }
    case Kind::function: out += concat("<built-in method ", v.callable()->name, ">"); break;
    case Kind::object: {
      const Runtime::Level level(rt);
      if (!rt.alive()) return rt.failure();
      return v.object()->print(rt, out);
    }
  }
  return {};
}

/// str(value) as a string of its own.
[[nodiscard]] inline Expected<std::string> to_text(Runtime& rt, const Value& v) {
  std::string out;
  NIHAO_CHECK(append_str(rt, out, v));
  return out;
}

/// json.dumps' options. An indent that is not given means one line.
struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  std::optional<std::string> indent = {};
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

namespace detail {
inline void append_json_text(std::string& out, std::string_view text, bool ensure_ascii) {
  out += '"';
  const auto unit = [&](char32_t code) { out += "\\u", append_hex(out, code, 4); };
  each_character(text, [&](char32_t c, std::string_view bytes) {
    switch (c) {
      case '"': out += "\\\""; return;
      case '\\': out += "\\\\"; return;
      case '\n': out += "\\n"; return;
      case '\r': out += "\\r"; return;
      case '\t': out += "\\t"; return;
      case '\b': out += "\\b"; return;
      case '\f': out += "\\f"; return;
      default: break;
    }
    if (c < 0x20 || (ensure_ascii && c >= 0x7f && c < 0x10000)) unit(c);
    else if (ensure_ascii && c >= 0x10000) unit(0xD800 + ((c - 0x10000) >> 10)), unit(0xDC00 + ((c - 0x10000) & 0x3FF));
    else out += bytes;
  });
  out += '"';
}
inline void append_json_real(std::string& out, double value) {
  if (std::isnan(value)) out += "NaN";
  else if (std::isinf(value)) out += value < 0 ? "-Infinity" : "Infinity";
  else append_real(out, value);
}
inline void append_json_break(std::string& out, const JsonStyle& style, std::size_t level) {
  if (!style.indent) return;
  out += '\n';
  for (std::size_t i = 0; i < level; ++i) out += *style.indent;
}
/// A dict's key: a string, or what Python turns into one.
[[nodiscard]] inline Expected<std::string> json_key(const Value& key) {
  std::string out;
  switch (key.kind()) {
    case Kind::string: out = key.text(); break;
    case Kind::none: out = "null"; break;
    case Kind::boolean: out = key.boolean() ? "true" : "false"; break;
    case Kind::integer: append_int(out, key.integer()); break;
    case Kind::real: append_json_real(out, key.real()); break;
    default: return type_error(concat("keys must be str, int, float, bool or None, not ", type_name(key)));
  }
  return out;
}
}  // namespace detail

/// json.dumps(value). Errors: mismatch (a value JSON has no form for), limit.
[[nodiscard]] inline Expected<void> append_json(Runtime& rt, std::string& out, const Value& v, const JsonStyle& style,
                                                std::size_t level = 0) {
  if (!rt.tick() || !rt.room(64)) return rt.failure();
  if (out.size() > rt.limits().memory_bytes) return rt.fail("bytes of memory"), rt.failure();
  bool first = true;
  const auto between = [&] {
    if (!std::exchange(first, false)) out += style.item_separator;
    detail::append_json_break(out, style, level + 1);
  };
  switch (v.kind()) {
    case Kind::none: out += "null"; return {};
    case Kind::boolean: out += v.boolean() ? "true" : "false"; return {};
    case Kind::integer: append_int(out, v.integer()); return {};
    case Kind::real: detail::append_json_real(out, v.real()); return {};
    case Kind::string:
      if (!rt.room(v.text().size())) return rt.failure();
      detail::append_json_text(out, v.text(), style.ensure_ascii);
      return {};
    case Kind::list: {
      if (v.flavor() != Flavor::list && v.flavor() != Flavor::tuple) break;
      if (v.items().empty()) return out += "[]", Expected<void>{};
      out += '[';
      for (const Value& item : v.items()) {
        between();
        NIHAO_CHECK(append_json(rt, out, item, style, level + 1));
      }
      detail::append_json_break(out, style, level);
      out += ']';
      return {};
    }
    case Kind::dict: {
      if (v.entries().empty()) return out += "{}", Expected<void>{};
      std::vector<std::pair<std::string, const Value*>> entries;
      for (const auto& [key, value] : v.entries()) {
        NIHAO_TRY(std::string name, detail::json_key(key));
        entries.emplace_back(std::move(name), &value);
      }
      if (style.sort_keys)
        std::sort(entries.begin(), entries.end());  // equal names (1 and "1"): the values lie in the dict's order
      out += '{';
      for (const auto& [name, value] : entries) {
        between();
        detail::append_json_text(out, name, style.ensure_ascii);
        out += style.key_separator;
        NIHAO_CHECK(append_json(rt, out, *value, style, level + 1));
      }
      detail::append_json_break(out, style, level);
      out += '}';
      return {};
    }
    default: break;
  }
  return type_error(concat("Object of type ", type_name(v), " is not JSON serializable"));
}

}  // namespace nihao::jinja
