// '%5.2f' % x and '{:>5}'.format(x).
#pragma once

#include "operators.hpp"

namespace nihao::jinja {

/// Subscripts and members, for '{0.name[key]}'; access.hpp.
[[nodiscard]] Expected<Value> get_attribute(Runtime& rt, const Value& v, std::string_view name);
[[nodiscard]] Expected<Value> get_item(Runtime& rt, const Value& v, const Value& key);

namespace detail {

/// One conversion: how wide, how precise, how signed. Both kinds of format fill it in.
struct FormatSpec {
  std::string fill = " ";
  char align = '\0';  // < > ^ =
  char sign = '-';    // + - space
  bool alternate = false;
  char grouping = '\0';  // , _
  std::size_t width = 0;
  std::optional<std::size_t> precision = {};
  char type = '\0';
};
inline constexpr std::size_t max_field = 100'000;  // a wider field is refused

/// `text`, which may begin with a sign, filled up to the width.
inline void append_field(std::string& out, std::string_view text, const FormatSpec& spec, char default_align) {
  const std::size_t size = length(text);
  const std::size_t pad = spec.width > size ? spec.width - size : 0;
  const char align = spec.align ? spec.align : default_align;
  const auto fill = [&](std::size_t n) {
    while (n-- > 0) out += spec.fill;
  };
  if (align == '=') {  // between the sign (and 0x) and the digits
    std::size_t head = !text.empty() && (text[0] == '-' || text[0] == '+' || text[0] == ' ') ? 1 : 0;
    if (text.size() > head + 1 && text[head] == '0' &&
        (text[head + 1] == 'x' || text[head + 1] == 'X' || text[head + 1] == 'o' || text[head + 1] == 'b'))
      head += 2;
    out += text.substr(0, head);
    fill(pad);
    out += text.substr(head);
    return;
  }
  fill(align == '>' ? pad : align == '^' ? pad / 2 : 0);
  out += text;
  fill(align == '<' ? pad : align == '^' ? pad - pad / 2 : 0);
}

inline void group_digits(std::string& digits, char separator) {
  std::size_t end = digits.find_first_of(".e");
  if (end == std::string::npos) end = digits.size();
  for (std::size_t at = end; at > 3; at -= 3) digits.insert(at - 3, 1, separator);
}

/// The digits of a non-negative number in the notation of `type`: e f g % (and capitals).
[[nodiscard]] inline std::string real_digits(double value, char type, const FormatSpec& spec) {
  const char low = static_cast<char>(type | 0x20);
  std::string out;
  if (std::isnan(value) || std::isinf(value)) {
    out = std::isnan(value) ? "nan" : "inf";
  } else {
    const auto precision = static_cast<int>(std::min<std::size_t>(spec.precision.value_or(6), 400));
    std::string buffer(static_cast<std::size_t>(precision) + 400, '\0');
    const auto write = [&](std::chars_format format, int digits) {
      const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format, digits).ptr;
      return std::string(buffer.data(), end);
    };
    if (low == 'e') {
      out = write(std::chars_format::scientific, precision);
    } else if (low == 'g') {
      out = write(std::chars_format::general, std::max(precision, 1));
    } else {
      if (type == '%') value *= 100;
      out = write(std::chars_format::fixed, precision);
    }
    if (spec.alternate && precision == 0 && low != 'g') out += '.';
  }
  if (type == '%') out += '%';
  if (type == 'E' || type == 'F' || type == 'G') {
    for (char& c : out) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
  }
  return out;
}

/// The digits of an int's magnitude in the base of `type`: d x X o b.
[[nodiscard]] inline std::string int_digits(Int value, char type, bool alternate) {
  std::string out;
  if (type != 'x' && type != 'X' && type != 'o' && type != 'b') {
    append_int(out, value);
    if (value < 0) out.erase(0, 1);
    return out;
  }
  UnsignedInt rest = magnitude(value);
  const unsigned base = type == 'o' ? 8 : type == 'b' ? 2 : 16;
  const std::string_view symbols = type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
  do {
    const auto digit = static_cast<std::size_t>(rest % base);
    out += symbols[digit];
    rest /= base;
  } while (rest != 0);
  if (alternate) out += type, out += '0';
  std::reverse(out.begin(), out.end());
  return out;
}

inline void append_number(std::string& out, std::string digits, bool negative, const FormatSpec& spec, char default_align) {
  if (spec.grouping) group_digits(digits, spec.grouping);
  if (negative) digits.insert(0, 1, '-');
  else if (spec.sign != '-') digits.insert(0, 1, spec.sign);
  append_field(out, digits, spec, default_align);
}

[[nodiscard]] inline Expected<std::size_t> read_width(std::string_view text, std::size_t& at) {
  std::size_t width = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    width = width * 10 + static_cast<std::size_t>(text[at] - '0');
    if (width > max_field) return Error{ErrorCode::limit, concat("a format asks for more than ", max_field, " characters")};
  }
  return width;
}

/// The conversion of one value by '%': s r a d i u f F e E g G x X o c.
[[nodiscard]] inline Expected<void> percent_convert(Runtime& rt, std::string& out, const Value& v, char type, FormatSpec spec) {
  if (type == 's' || type == 'r' || type == 'a') {
    std::string text;
    NIHAO_CHECK(type == 's' ? append_str(rt, text, v) : append_repr(rt, text, v));
    if (spec.precision) text.resize(byte_of(text, *spec.precision));
    if (spec.align == '=') spec.align = '\0', spec.fill.assign(1, ' ');
    append_field(out, text, spec, '>');
    return {};
  }
  if (v.is_undefined()) return undefined_error(v);
  if (type == 'c') {
    std::string text;
    if (v.is_integral() && v.integer() >= 0 && v.integer() < 0x110000) append_utf8(text, static_cast<char32_t>(v.integer()));
    else if (v.is_string() && length(v.text()) == 1) text = v.text();
    else return type_error("%c requires int or char");
    append_field(out, text, spec, '>');
    return {};
  }
  const bool decimal = type == 'd' || type == 'i' || type == 'u';
  if (decimal || type == 'x' || type == 'X' || type == 'o') {
    if (!v.is_integral() && !(decimal && v.is(Kind::real))) {
      return type_error(
          concat("%", type, " format: ", decimal ? "a real number" : "an integer", " is required, not ", type_name(v)));
    }
    if (v.is(Kind::real) && !(std::abs(v.real()) < 0x1p126)) return value_error("cannot convert float to integer");
    const Int value = v.is_integral() ? v.integer() : static_cast<Int>(v.real());
    std::string digits = int_digits(value, decimal ? 'd' : type, spec.alternate);
    if (spec.precision && digits.size() < *spec.precision) digits.insert(0, *spec.precision - digits.size(), '0');
    append_number(out, std::move(digits), value < 0, spec, '>');
    return {};
  }
  if (std::string_view("fFeEgG").find(type) == std::string_view::npos) {
    return value_error(concat("unsupported format character '", printable(std::string_view(&type, 1)), "'"));
  }
  if (!v.is_number()) return type_error(concat("must be real number, not ", type_name(v)));
  append_number(out, real_digits(std::abs(v.real()), type, spec), std::signbit(v.real()), spec, '>');
  return {};
}
}  // namespace detail

inline Expected<Value> percent_format(Runtime& rt, std::string_view format, const Value& arguments) {
  std::string out;
  const std::span<const Value> row = arguments.is_list(Flavor::tuple) ? arguments.items() : std::span(&arguments, 1);
  std::size_t used = 0;
  bool by_name = false;  // a %(name)s was seen
  const auto take = [&]() -> Expected<const Value*> {
    if (used == row.size()) return type_error("not enough arguments for format string");
    return &row[used++];
  };
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (!rt.tick() || !rt.room(out.size() / 64)) return rt.failure();
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    detail::FormatSpec spec;
    const Value* named = nullptr;
    ++i;
    if (i < format.size() && format[i] == '(') {
      const std::size_t close = format.find(')', i);
      if (close == std::string_view::npos) return value_error("incomplete format key");
      if (!arguments.is(Kind::dict)) return type_error("format requires a mapping");
      const std::string_view key = format.substr(i + 1, close - i - 1);
      named = arguments.find(key);
      if (!named) return Error{ErrorCode::mismatch, concat("'", printable(key), "'")};
      by_name = true;
      i = close + 1;
    }
    for (; i < format.size(); ++i) {
      const char c = format[i];
      if (c == '-') spec.align = '<';
      else if (c == '0' && spec.align != '<') spec.align = '=', spec.fill.assign(1, '0');
      else if (c == '+') spec.sign = '+';
      else if (c == ' ' && spec.sign != '+') spec.sign = ' ';
      else if (c == '#') spec.alternate = true;
      else if (c != '0' && c != ' ') break;
    }
    const auto number = [&]() -> Expected<std::int64_t> {
      if (i < format.size() && format[i] == '*') {
        ++i;
        NIHAO_TRY(const Value* given, take());
        return integer_argument(given, 0);
      }
      NIHAO_TRY(const std::size_t width, detail::read_width(format, i));
      return static_cast<std::int64_t>(width);
    };
    NIHAO_TRY(const std::int64_t width, number());
    if (width < 0) spec.align = '<';
    const auto capped = [](std::int64_t n) {
      return std::min<std::size_t>(static_cast<std::size_t>(n < 0 ? -n : n), detail::max_field);
    };
    spec.width = capped(width);
    if (i < format.size() && format[i] == '.') {
      ++i;
      NIHAO_TRY(const std::int64_t precision, number());
      spec.precision = precision < 0 ? 0 : capped(precision);
    }
    while (i < format.size() && (format[i] == 'l' || format[i] == 'h' || format[i] == 'L')) ++i;
    if (i == format.size()) return value_error("incomplete format");
    if (format[i] == '%') {
      out += '%';
      continue;
    }
    if (!named) { NIHAO_TRY(named, take()); }
    NIHAO_CHECK(detail::percent_convert(rt, out, *named, format[i], spec));
  }
  // Only of a tuple, or of one plain value, must nothing be left over: what has subscripts counts as a mapping here.
  const bool mapping = by_name || arguments.is_undefined() || arguments.is(Kind::dict) ||
                       (arguments.is(Kind::list) && (arguments.flavor() == Flavor::list || arguments.flavor() == Flavor::range));
  if (!mapping && used < row.size()) return type_error("not all arguments converted during string formatting");
  return rt.text(std::move(out));
}

namespace detail {
/// format(value, spec): '{:spec}'.
[[nodiscard]] inline Expected<void> append_formatted(Runtime& rt, std::string& out, const Value& v, std::string_view text) {
  if (text.empty()) return append_str(rt, out, v);
  FormatSpec spec;
  std::size_t i = 0;
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  const std::size_t first = decode_utf8(text, 0).length;
  if (first < text.size() && is_align(text[first])) spec.fill = text.substr(0, first), spec.align = text[first], i = first + 1;
  else if (is_align(text[0])) spec.align = text[0], i = 1;
  const auto at = [&](char c) { return i < text.size() && text[i] == c; };
  if (at('+') || at('-') || at(' ')) spec.sign = text[i++];
  if (at('#')) spec.alternate = true, ++i;
  bool zeros = false;
  if (at('0')) {
    if (!spec.align) spec.fill.assign(1, '0'), spec.align = '=', zeros = true;
    ++i;
  }
  NIHAO_TRY(spec.width, read_width(text, i));
  if (at(',') || at('_')) spec.grouping = text[i++];
  if (at('.')) {
    ++i;
    NIHAO_TRY(const std::size_t precision, read_width(text, i));
    spec.precision = precision;
  }
  if (i < text.size()) spec.type = text[i++];
  const auto bad = [&] {
    return value_error(concat("Invalid format specifier '", printable(text), "' for object of type '", type_name(v), "'"));
  };
  if (i != text.size()) return bad();
  if (v.is_number()) {
    const char t = spec.type;
    if (std::string_view("eEfFgG%").find(t) != std::string_view::npos && t != '\0') {
      append_number(out, real_digits(std::abs(v.real()), t, spec), std::signbit(v.real()), spec, '>');
      return {};
    }
    if (v.is_integral()) {
      if (spec.precision) return value_error("Precision not allowed in integer format specifier");
      if (t == 'c') {
        if (v.integer() < 0 || v.integer() > 0x10FFFF) return value_error("%c arg not in range(0x110000)");
        std::string one;
        append_utf8(one, static_cast<char32_t>(v.integer()));
        append_field(out, one, spec, '<');
        return {};
      }
      if (t != '\0' && std::string_view("dxXobn").find(t) == std::string_view::npos) return bad();
      append_number(out, int_digits(v.integer(), t, spec.alternate), v.integer() < 0, spec, '>');
      return {};
    }
    if (t != '\0' && t != 'n') return bad();
    std::string digits;
    if (spec.precision || t == 'n') digits = real_digits(std::abs(v.real()), 'g', spec);
    if (t == '\0' && !digits.empty() && digits.find_first_of(".ein") == std::string::npos) digits += ".0";
    if (digits.empty()) append_real(digits, std::abs(v.real()));
    append_number(out, std::move(digits), std::signbit(v.real()), spec, '>');
    return {};
  }
  if (!v.is_string()) { return type_error(concat("unsupported format string passed to ", type_name(v), ".__format__")); }
  if (zeros) spec.align = '<';
  if ((spec.type != '\0' && spec.type != 's') || spec.align == '=' || spec.sign != '-' || spec.grouping || spec.alternate)
    return bad();
  NIHAO_TRY(std::string whole, to_text(rt, v));
  if (spec.precision) whole.resize(byte_of(whole, *spec.precision));
  append_field(out, whole, spec, '<');
  return {};
}

/// The value that a field such as `0.name[key]` names.
[[nodiscard]] inline Expected<Value> field_value(Runtime& rt, std::string_view field, const Arguments& given,
                                                 std::size_t& automatic) {
  const std::size_t end = std::min(field.find_first_of(".["), field.size());
  const std::string_view head = field.substr(0, end);
  field.remove_prefix(end);
  Value value;
  const bool numbered = head.empty() || std::all_of(head.begin(), head.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (numbered) {
    std::size_t index = automatic;
    if (head.empty()) ++automatic;
    else if (std::from_chars(head.data(), head.data() + head.size(), index).ec != std::errc{}) index = SIZE_MAX;
    if (index >= given.positional.size()) return value_error("Replacement index out of range for positional args tuple");
    value = given.positional[index];
  } else {
    const auto at = std::find_if(given.named.begin(), given.named.end(), [&](const auto& n) { return n.first == head; });
    if (at == given.named.end()) return value_error(concat("'", printable(head), "'"));
    value = at->second;
  }
  while (!field.empty()) {
    if (field.front() == '.') {
      const std::size_t stop = std::min(field.find_first_of(".[", 1), field.size());
      NIHAO_TRY(value, get_attribute(rt, value, field.substr(1, stop - 1)));
      field.remove_prefix(stop);
    } else {
      const std::size_t close = field.find(']');
      if (close == std::string_view::npos) return value_error("Missing ']' in format string");
      const std::string_view key = field.substr(1, close - 1);
      std::int64_t index = 0;
      const bool number =
          std::from_chars(key.data(), key.data() + key.size(), index).ptr == key.data() + key.size() && !key.empty();
      NIHAO_TRY(value, get_item(rt, value, number ? Value(index) : Value(key)));
      field.remove_prefix(close + 1);
    }
    if (value.is_undefined()) return undefined_error(value);
  }
  return value;
}
}  // namespace detail

/// text.format(arguments).
[[nodiscard]] inline Expected<Value> brace_format(Runtime& rt, std::string_view format, const Arguments& given) {
  std::string out;
  std::size_t automatic = 0;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (!rt.tick() || !rt.room(out.size() / 64)) return rt.failure();
    const char c = format[i];
    if (c != '{' && c != '}') {
      out += c;
      continue;
    }
    if (i + 1 < format.size() && format[i + 1] == c) {
      out += c, ++i;
      continue;
    }
    if (c == '}') return value_error("Single '}' encountered in format string");
    const std::size_t close = format.find('}', i);
    if (close == std::string_view::npos) return value_error("expected '}' before end of string");
    std::string_view field = format.substr(i + 1, close - i - 1), spec;
    if (field.find('{') != std::string_view::npos)
      return Error{ErrorCode::unsupported, "a field inside a field of a format string"};
    if (const std::size_t colon = field.find(':'); colon != std::string_view::npos) {
      spec = field.substr(colon + 1);
      field = field.substr(0, colon);
    }
    char conversion = '\0';
    if (const std::size_t bang = field.find('!'); bang != std::string_view::npos) {
      if (bang + 2 != field.size()) return value_error("expected ':' after conversion specifier");
      conversion = field[bang + 1];
      field = field.substr(0, bang);
    }
    NIHAO_TRY(Value value, detail::field_value(rt, field, given, automatic));
    if (conversion != '\0') {
      std::string text;
      if (conversion == 's') NIHAO_CHECK(append_str(rt, text, value));
      else if (conversion == 'r' || conversion == 'a') NIHAO_CHECK(append_repr(rt, text, value));
      else return value_error("Unknown conversion specifier");
      value = rt.text(std::move(text));
    }
    NIHAO_CHECK(detail::append_formatted(rt, out, value, spec));
    i = close;
  }
  return rt.text(std::move(out));
}

}  // namespace nihao::jinja
