// What can be called on a string, a list or a dict: Python's methods, save those that would change the value.
#pragma once

#include "format.hpp"

namespace nihao::jinja {

namespace detail {

using Result = Expected<Value>;

// ------------------------------------------------------------------------------------------------------------------- str

/// The methods that cut or compare take an optional range of characters; this is the part of `text` it names.
[[nodiscard]] inline Expected<std::string_view> sub_range(Runtime& rt, std::string_view text, const Value* start,
                                                          const Value* stop, std::size_t* skipped = nullptr) {
  if (!start && !stop) return text;
  rt.tick(text.size() / 16);
  const auto size = static_cast<std::int64_t>(length(text));
  const Value none = Value::none();
  NIHAO_TRY(const SliceRange r, slice_range(size, start ? *start : none, stop ? *stop : none, none));
  if (r.start >= r.stop) return std::string_view{};
  if (skipped) *skipped = static_cast<std::size_t>(r.start);
  const std::string_view tail = text.substr(byte_of(text, static_cast<std::size_t>(r.start)));
  return tail.substr(0, byte_of(tail, static_cast<std::size_t>(r.stop - r.start)));
}

enum class Side : std::uint8_t { both, left, right };

template <Side side>
Result str_strip(Runtime& rt, const Value& self, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<1>("strip", a, {"chars"}));
  std::string_view text = self.text();
  if (!p[0] || p[0]->is_none()) {
    text = side == Side::both ? strip(text) : side == Side::left ? strip_left(text) : strip_right(text);
  } else {
    NIHAO_TRY(const std::string_view set, text_argument(p[0], ""));
    if (!rt.tick(set.size())) return rt.failure();
    text = strip_if(text, side != Side::right, side != Side::left, [&](std::string_view c) {
      rt.tick(set.size() / 16);
      return set.find(c) != std::string_view::npos;
    });
  }
  if (!rt.room(text.size())) return rt.failure();
  return rt.text(std::string(text));
}

template <bool prefix>
Result str_begins(Runtime& rt, const Value& self, const Arguments& a) {
  const std::string_view name = prefix ? "startswith" : "endswith";
  NIHAO_TRY(const auto p, bind<3>(name, a, {prefix ? "prefix" : "suffix", "start", "end"}, 1));
  NIHAO_TRY(const std::string_view text, sub_range(rt, self.text(), p[1], p[2]));
  const auto matches = [&](std::string_view part) { return prefix ? text.starts_with(part) : text.ends_with(part); };
  if (p[0]->is_list(Flavor::tuple)) {
    for (const Value& part : p[0]->items()) {
      if (!part.is_string()) return type_error(concat("tuple for ", name, " must only contain str, not ", type_name(part)));
      if (rt.tick() && matches(part.text())) return Value(true);
    }
    return Value(false);
  }
  if (p[0]->is_undefined()) return undefined_error(*p[0]);
  if (!p[0]->is_string()) return type_error(concat(name, " first arg must be str or a tuple of str, not ", type_name(*p[0])));
  return Value(matches(p[0]->text()));
}

template <bool reverse, bool must>
Result str_find(Runtime& rt, const Value& self, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<3>("find", a, {"sub", "start", "end"}, 1));
  NIHAO_TRY(const std::string_view part, text_argument(p[0], ""));
  std::size_t skipped = 0;
  NIHAO_TRY(const std::string_view text, sub_range(rt, self.text(), p[1], p[2], &skipped));
  if (!rt.tick(text.size() / 16)) return rt.failure();
  const std::size_t at = reverse ? text.rfind(part) : text.find(part);
  if (at == std::string_view::npos) return must ? Result(value_error("substring not found")) : Result(Value(-1));
  return Value(skipped + length(text.substr(0, at)));
}

inline Result str_count(Runtime& rt, const Value& self, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<3>("count", a, {"sub", "start", "end"}, 1));
  NIHAO_TRY(const std::string_view part, text_argument(p[0], ""));
  NIHAO_TRY(const std::string_view text, sub_range(rt, self.text(), p[1], p[2]));
  if (!rt.tick(text.size() / 16)) return rt.failure();
  if (part.empty()) return Value(length(text) + 1);
  std::int64_t count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) ++count;
  return Value(count);
}

/// str.replace; count < 0: all. Also the filter.
[[nodiscard]] inline Result replace(Runtime& rt, std::string_view text, std::string_view from, std::string_view to,
                                    std::int64_t count) {
  std::string out;
  std::size_t at = 0;
  const auto fits = [&](std::size_t more) {
    return rt.tick() && rt.room(out.size() / 64 + more) && out.size() <= rt.limits().memory_bytes;
  };
  if (!fits(text.size())) return rt.failure();
  if (from.empty()) {
    while (count != 0) {
      out += to, --count;
      if (!fits(to.size())) return rt.fail("bytes of memory"), rt.failure();
      if (at == text.size()) break;
      const std::size_t n = decode_utf8(text, at).length;
      out += text.substr(at, n), at += n;
    }
  } else {
    for (std::size_t next = text.find(from); next != std::string_view::npos && count != 0; next = text.find(from, at), --count) {
      out += text.substr(at, next - at);
      out += to;
      at = next + from.size();
      if (!fits(to.size())) return rt.fail("bytes of memory"), rt.failure();
    }
  }
  out += text.substr(at);
  return rt.text(std::move(out));
}

inline Result str_replace(Runtime& rt, const Value& self, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<3>("replace", a, {"old", "new", "count"}, 2));
  NIHAO_TRY(const std::string_view from, text_argument(p[0], ""));
  NIHAO_TRY(const std::string_view to, text_argument(p[1], ""));
  NIHAO_TRY(const std::int64_t count, integer_argument(p[2], -1));
  return replace(rt, self.text(), from, to, count);
}

[[nodiscard]] inline std::size_t first_space(std::string_view text) noexcept {
  std::size_t at = 0;
  while (at < text.size() && !is_space(decode_utf8(text, at).code)) at += decode_utf8(text, at).length;
  return at;
}
[[nodiscard]] inline std::size_t after_last_space(std::string_view text) noexcept {
  while (!text.empty() && !drops_space(last_character(text))) text.remove_suffix(last_character(text).size());
  return text.size();
}

template <bool from_right>
Result str_split(Runtime& rt, const Value& self, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<2>("split", a, {"sep", "maxsplit"}));
  NIHAO_TRY(const std::int64_t most, integer_argument(p[1], -1));
  std::string_view text = self.text();
  if (!rt.room(text.size() * 2)) return rt.failure();
  std::vector<std::string_view> parts;
  const auto may_split = [&] { return most < 0 || static_cast<std::int64_t>(parts.size()) < most; };
  if (!p[0] || p[0]->is_none()) {  // runs of white space; what a limit leaves whole keeps the space at its far end
    text = from_right ? strip_right(text) : strip_left(text);
    while (!text.empty()) {
      const std::size_t cut = !may_split() ? (from_right ? 0 : text.size())
                              : from_right ? after_last_space(text)
                                           : first_space(text);
      parts.push_back(from_right ? text.substr(cut) : text.substr(0, cut));
      text = from_right ? strip_right(text.substr(0, cut)) : strip_left(text.substr(cut));
    }
  } else {
    NIHAO_TRY(const std::string_view separator, text_argument(p[0], ""));
    if (separator.empty()) return value_error("empty separator");
    for (;;) {
      const std::size_t at = may_split() ? (from_right ? text.rfind(separator) : text.find(separator)) : std::string_view::npos;
      if (at == std::string_view::npos) break;
      parts.push_back(from_right ? text.substr(at + separator.size()) : text.substr(0, at));
      text = from_right ? text.substr(0, at) : text.substr(at + separator.size());
    }
    parts.push_back(text);
  }
  if (from_right) std::reverse(parts.begin(), parts.end());
  if (!rt.room(parts.size() * 160)) return rt.failure();
  std::vector<Value> out;
  out.reserve(parts.size());
  for (const std::string_view part : parts) out.push_back(rt.text(std::string(part)));
  return rt.list(std::move(out));
}

/// Where the line that begins at `at` ends, and how long its break is (0 at the end of the text).
struct LineEnd {
  std::size_t end, gap;
};
[[nodiscard]] inline LineEnd line_end(std::string_view text, std::size_t at) noexcept {
  while (at < text.size()) {
    const DecodedChar c = decode_utf8(text, at);
    if (c.code == '\r' && at + 1 < text.size() && text[at + 1] == '\n') return {at, 2};
    if ((c.code >= 0x0a && c.code <= 0x0d) || (c.code >= 0x1c && c.code <= 0x1e) || c.code == 0x85 || c.code == 0x2028 ||
        c.code == 0x2029) {
      return {at, c.length};
    }
    at += c.length;
  }
  return {at, 0};
}
[[nodiscard]] inline std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends = false) {
  std::vector<std::string_view> out;
  for (std::size_t at = 0; at < text.size();) {
    const LineEnd e = line_end(text, at);
    out.push_back(text.substr(at, e.end - at + (keep_ends ? e.gap : 0)));
    at = e.end + e.gap;
  }
  return out;
}
inline Result str_splitlines(Runtime& rt, const Value& self, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<1>("splitlines", a, {"keepends"}));
  const auto lines = split_lines(self.text(), p[0] && truth(*p[0]));
  if (!rt.room(self.text().size() + lines.size() * 160)) return rt.failure();
  std::vector<Value> out;
  out.reserve(lines.size());
  for (const std::string_view line : lines) out.push_back(rt.text(std::string(line)));
  return rt.list(std::move(out));
}

template <bool from_right>
Result str_partition(Runtime& rt, const Value& self, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<1>("partition", a, {"sep"}, 1));
  NIHAO_TRY(const std::string_view separator, text_argument(p[0], ""));
  if (separator.empty()) return value_error("empty separator");
  const std::string_view text = self.text();
  const std::size_t at = from_right ? text.rfind(separator) : text.find(separator);
  if (!rt.room(text.size())) return rt.failure();
  if (at == std::string_view::npos) {
    const Value empty = rt.text({});
    return from_right ? rt.list({empty, empty, self}, Flavor::tuple) : rt.list({self, empty, empty}, Flavor::tuple);
  }
  return rt.list({rt.text(std::string(text.substr(0, at))), *p[0], rt.text(std::string(text.substr(at + separator.size())))},
                 Flavor::tuple);
}

template <bool prefix>
Result str_remove(Runtime& rt, const Value& self, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<1>(prefix ? "removeprefix" : "removesuffix", a, {prefix ? "prefix" : "suffix"}, 1));
  NIHAO_TRY(const std::string_view part, text_argument(p[0], ""));
  const std::string_view text = self.text();
  if (part.empty() || !(prefix ? text.starts_with(part) : text.ends_with(part))) return self;
  return rt.text(std::string(prefix ? text.substr(part.size()) : text.substr(0, text.size() - part.size())));
}

inline Result str_join(Runtime& rt, const Value& self, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<1>("join", a, {"iterable"}, 1));
  NIHAO_TRY(const Iteration all, iterate(rt, *p[0]));
  std::string out;
  for (std::size_t i = 0; i < all.items.size(); ++i) {
    const Value& item = all.items[i];
    if (!item.is_string()) return type_error(concat("sequence item ", i, ": expected str instance, ", type_name(item), " found"));
    if (!rt.tick() || !rt.room(out.size() / 64 + self.text().size() + item.text().size())) return rt.failure();
    if (out.size() > rt.limits().memory_bytes) return rt.fail("bytes of memory"), rt.failure();
    if (i > 0) out += self.text();
    out += item.text();
  }
  return rt.text(std::move(out));
}

/// str.title(): each run of letters begins with a capital.
inline Result str_title(Runtime& rt, const Value& self, const Arguments& a) {
  NIHAO_CHECK(bind_none("title", a));
  std::string out;
  bool inside = false;
  each_character(self.text(), [&](char32_t c, std::string_view bytes) {
    const bool cased = is_upper(c) || is_lower(c) || is_title(c);
    if (!cased) out += bytes;
    else if (inside) append_lower_in(out, c, self.text(), static_cast<std::size_t>(bytes.data() - self.text().data()));
    else append_title(out, c);
    inside = cased;
  });
  return rt.text(std::move(out));
}
[[nodiscard]] inline std::string capitalized(std::string_view text) {
  std::string out;
  if (text.empty()) return out;
  const DecodedChar first = decode_utf8(text, 0);
  if (first.valid) append_title(out, first.code);
  else out += text.substr(0, first.length);
  return out += to_lower(text.substr(first.length));
}
[[nodiscard]] inline std::string swapped_case(std::string_view text) {
  std::string out;
  each_character(text, [&](char32_t c, std::string_view bytes) {
    if (is_upper(c)) append_lower_in(out, c, text, static_cast<std::size_t>(bytes.data() - text.data()));
    else if (is_lower(c)) append_upper(out, c);
    else out += bytes;
  });
  return out;
}
/// Case folding, as the lower case of the upper case, letter by letter: what it is for all but the dotless i and Cherokee.
[[nodiscard]] inline std::string folded_case(std::string_view text) {
  std::string out;
  each_character(to_upper(text), [&](char32_t c, std::string_view bytes) {
    c == replacement_character ? void(out += bytes) : append_lower(out, c);
  });
  return out;
}
/// A method without arguments that makes a new text.
template <auto change>
Result str_map(Runtime& rt, const Value& self, const Arguments& a) {
  NIHAO_CHECK(bind_none("this method", a));
  if (!rt.room(self.text().size() * 2)) return rt.failure();
  return rt.text(change(self.text()));
}
/// A method without arguments that asks something of every character; of none, the answer is `empty`.
template <auto ask, bool empty = false>
Result str_all(Runtime& rt, const Value& self, const Arguments& a) {
  NIHAO_CHECK(bind_none("this method", a));
  if (!rt.tick(self.text().size() / 8)) return rt.failure();
  if (self.text().empty()) return Value(empty);
  bool all = true;
  each_character(self.text(), [&](char32_t c, std::string_view) { all = all && ask(c); });
  return Value(all);
}
inline bool char_is_alpha(char32_t c) noexcept { return unicode::category(c) <= unicode::Category::Lo; }
inline bool char_is_decimal(char32_t c) noexcept { return unicode::category(c) == unicode::Category::Nd; }
inline bool char_is_digit(char32_t c) noexcept {
  return char_is_decimal(c) || c == 0xb2 || c == 0xb3 || c == 0xb9 || c == 0x2070 || (c >= 0x2074 && c <= 0x2079) ||
         (c >= 0x2080 && c <= 0x2089) || (c >= 0x2460 && c <= 0x2468);
}
inline bool char_is_numeric(char32_t c) noexcept {
  return unicode::category(c) >= unicode::Category::Nd && unicode::category(c) <= unicode::Category::No;
}
inline bool char_is_alnum(char32_t c) noexcept { return char_is_alpha(c) || char_is_numeric(c); }
inline bool char_is_ascii(char32_t c) noexcept { return c < 0x80; }
inline bool char_is_name(char32_t c) noexcept {
  return c == '_' || char_is_alnum(c) || unicode::category(c) == unicode::Category::Mn;
}

/// isupper() and islower(): some letter has the case, and none has another.
template <bool upper>
[[nodiscard]] bool all_in_case(std::string_view text) noexcept {
  bool some = false, other = false;
  each_character(text, [&](char32_t c, std::string_view) {
    some |= upper ? is_upper(c) : is_lower(c);
    other |= is_title(c) || (upper ? is_lower(c) : is_upper(c));
  });
  return some && !other;
}
template <bool upper>
Result str_case(Runtime&, const Value& self, const Arguments& a) {
  NIHAO_CHECK(bind_none(upper ? "isupper" : "islower", a));
  return Value(all_in_case<upper>(self.text()));
}
inline Result str_istitle(Runtime&, const Value& self, const Arguments& a) {
  NIHAO_CHECK(bind_none("istitle", a));
  bool inside = false, some = false, good = true;
  each_character(self.text(), [&](char32_t c, std::string_view) {
    const bool head = is_upper(c) || is_title(c), tail = is_lower(c);
    good = good && !(head && inside) && !(tail && !inside);
    some |= head || tail;
    inside = head || tail;
  });
  return Value(some && good);
}
inline Result str_isidentifier(Runtime&, const Value& self, const Arguments& a) {
  NIHAO_CHECK(bind_none("isidentifier", a));
  bool good = !self.text().empty(), first = true;
  each_character(self.text(), [&](char32_t c, std::string_view) {
    good = good && char_is_name(c) && !(first && char_is_numeric(c));
    first = false;
  });
  return Value(good);
}

/// ljust, rjust, center.
template <char align>
Result str_pad(Runtime& rt, const Value& self, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<2>("just", a, {"width", "fillchar"}, 1));
  FormatSpec spec;
  NIHAO_TRY(const std::int64_t width, integer_argument(p[0], 0));
  NIHAO_TRY(const std::string_view fill, text_argument(p[1], " "));
  if (length(fill) != 1) return type_error("The fill character must be exactly one character long");
  spec.fill = fill;
  spec.width = static_cast<std::size_t>(std::max<std::int64_t>(width, 0));
  if (!rt.room(spec.width > self.text().size() ? spec.width : 0) || !rt.room(self.text().size())) return rt.failure();
  std::string out;
  if constexpr (align == '^') {  // str.center puts the odd blank on the left when the width is odd
    const std::size_t size = length(self.text()), pad = spec.width > size ? spec.width - size : 0;
    const std::size_t left = pad / 2 + (pad & spec.width & 1);
    for (std::size_t i = 0; i < left; ++i) out += fill;
    out += self.text();
    for (std::size_t i = left; i < pad; ++i) out += fill;
  } else {
    append_field(out, self.text(), spec, align);
  }
  return rt.text(std::move(out));
}
inline Result str_zfill(Runtime& rt, const Value& self, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<1>("zfill", a, {"width"}, 1));
  NIHAO_TRY(const std::int64_t width, integer_argument(p[0], 0));
  if (width > 0 && !rt.room(static_cast<std::size_t>(width))) return rt.failure();
  const FormatSpec spec{.fill = "0", .align = '=', .width = static_cast<std::size_t>(std::max<std::int64_t>(width, 0))};
  std::string out;
  const bool sign = self.text().starts_with('-') || self.text().starts_with('+');
  if (sign) out += self.text()[0];
  FormatSpec rest = spec;
  rest.align = '>';
  rest.width = spec.width > 0 && sign ? spec.width - 1 : spec.width;
  append_field(out, self.text().substr(sign), rest, '>');
  return rt.text(std::move(out));
}
inline Result str_format(Runtime& rt, const Value& self, const Arguments& a) { return brace_format(rt, self.text(), a); }

// ----------------------------------------------------------------------------------------------------------- list and dict

inline Result list_index(Runtime& rt, const Value& self, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<1>("index", a, {"value"}, 1));
  const auto items = self.items();
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (equals(rt, items[i], *p[0])) return Value(i);
  }
  return value_error("the value is not in the list");
}
inline Result list_count(Runtime& rt, const Value& self, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<1>("count", a, {"value"}, 1));
  return Value(std::count_if(self.items().begin(), self.items().end(), [&](const Value& v) { return equals(rt, v, *p[0]); }));
}
inline Result copy(Runtime&, const Value& self, const Arguments& a) {
  NIHAO_CHECK(bind_none("copy", a));
  return self;  // values never change
}

inline Result dict_get(Runtime& rt, const Value& self, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<2>("get", a, {"key", "default"}, 1));
  Value otherwise = p[1] ? *p[1] : Value::none();
  if (p[0]->is_string()) {
    const Value* found = self.find(p[0]->text());
    return found ? *found : otherwise;
  }
  if (!hashable(*p[0])) return unhashable(*p[0]);
  for (const auto& [key, value] : self.entries()) {
    if (rt.tick() && same_key(key, *p[0])) return value;
  }
  return otherwise;
}
/// keys(), values() or items(): the rows of a dict as a sequence.
[[nodiscard]] inline Value dict_rows(Runtime& rt, const Value& dict, Flavor flavor) {
  std::vector<Value> rows;
  if (!rt.room(dict.entries().size() * 160)) return {};
  for (const auto& [key, value] : dict.entries()) {
    rows.push_back(flavor == Flavor::dict_keys     ? key
                   : flavor == Flavor::dict_values ? value
                                                   : rt.list({key, value}, Flavor::tuple));
  }
  return rt.list(std::move(rows), flavor);
}
template <Flavor flavor>
Result dict_view(Runtime& rt, const Value& self, const Arguments& a) {
  NIHAO_CHECK(bind_none("this method", a));
  return dict_rows(rt, self, flavor);
}
inline Result real_is_integer(Runtime&, const Value& self, const Arguments& a) {
  NIHAO_CHECK(bind_none("is_integer", a));
  return Value(std::isfinite(self.real()) && std::trunc(self.real()) == self.real());
}

inline constexpr Callable text_methods[] = {
    {"capitalize", str_map<capitalized>},
    {"casefold", str_map<folded_case>},
    {"center", str_pad<'^'>},
    {"count", str_count},
    {"endswith", str_begins<false>},
    {"find", str_find<false, false>},
    {"format", str_format},
    {"index", str_find<false, true>},
    {"isalnum", str_all<char_is_alnum>},
    {"isalpha", str_all<char_is_alpha>},
    {"isascii", str_all<char_is_ascii, true>},
    {"isdecimal", str_all<char_is_decimal>},
    {"isdigit", str_all<char_is_digit>},
    {"isidentifier", str_isidentifier},
    {"islower", str_case<false>},
    {"isnumeric", str_all<char_is_numeric>},
    {"isprintable", str_all<is_printable, true>},
    {"isspace", str_all<is_space>},
    {"istitle", str_istitle},
    {"isupper", str_case<true>},
    {"join", str_join},
    {"ljust", str_pad<'<'>},
    {"lower", str_map<to_lower>},
    {"lstrip", str_strip<Side::left>},
    {"partition", str_partition<false>},
    {"removeprefix", str_remove<true>},
    {"removesuffix", str_remove<false>},
    {"replace", str_replace},
    {"rfind", str_find<true, false>},
    {"rindex", str_find<true, true>},
    {"rjust", str_pad<'>'>},
    {"rpartition", str_partition<true>},
    {"rsplit", str_split<true>},
    {"rstrip", str_strip<Side::right>},
    {"split", str_split<false>},
    {"splitlines", str_splitlines},
    {"startswith", str_begins<true>},
    {"strip", str_strip<Side::both>},
    {"swapcase", str_map<swapped_case>},
    {"title", str_title},
    {"upper", str_map<to_upper>},
    {"zfill", str_zfill},
};
inline constexpr Callable list_methods[] = {{"copy", copy}, {"count", list_count}, {"index", list_index}};
inline constexpr Callable tuple_methods[] = {{"count", list_count}, {"index", list_index}};
inline constexpr Callable dict_methods[] = {
    {"copy", copy},
    {"get", dict_get},
    {"items", dict_view<Flavor::dict_items>},
    {"keys", dict_view<Flavor::dict_keys>},
    {"values", dict_view<Flavor::dict_values>},
};
inline constexpr Callable real_methods[] = {{"is_integer", real_is_integer}};

[[nodiscard]] inline std::span<const Callable> methods_of(const Value& v) noexcept {
  if (v.is_string()) return text_methods;
  if (v.is(Kind::dict)) return dict_methods;
  if (v.is(Kind::real)) return real_methods;
  if (v.is_list(Flavor::list)) return list_methods;
  if (v.is_list(Flavor::tuple) || v.is_list(Flavor::range)) return tuple_methods;
  return {};
}
/// What the sandbox keeps from a template: methods that change a value, and everything with two underscores.
[[nodiscard]] inline bool unsafe(const Value& v, std::string_view name) noexcept {
  if (name.size() > 4 && name.starts_with("__") && name.ends_with("__")) return true;
  const auto any_of = [&](auto... names) { return ((name == names) || ...); };
  if (v.is_list(Flavor::list)) return any_of("append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort");
  if (v.is(Kind::dict)) return any_of("clear", "pop", "popitem", "setdefault", "update");
  return v.is_string() && any_of("format_map");
}
}  // namespace detail

/// The method of that name, or null.
[[nodiscard]] inline const Callable* find_method(const Value& v, std::string_view name) noexcept {
  for (const Callable& method : detail::methods_of(v)) {
    if (method.name == name) return &method;
  }
  return nullptr;
}

/// `value.name`: a method, or a member, or an item; else an undefined value that says what is missing. Errors: mismatch, of an
/// undefined `value`.
inline Expected<Value> get_attribute(Runtime& rt, const Value& v, std::string_view name) {
  if (v.is_undefined()) return undefined_error(v);
  if (const Callable* method = find_method(v, name)) return rt.bound(method, v);
  if (v.is(Kind::object)) {
    if (auto member = v.object()->get(rt, name)) return *std::move(member);
  } else if (detail::unsafe(v, name)) {
    return rt.missing(concat("access to attribute '", name, "' of '", type_name(v), "' object is unsafe."));
  }
  if (const Value* found = v.find(name)) return *found;
  return rt.missing(v.is_none() ? concat("'None' has no attribute '", printable(name), "'")
                                : concat("'", type_name(v), " object' has no attribute '", printable(name), "'"));
}

/// `value[key]`: an item, else, for a string key, what `value.key` gives.
inline Expected<Value> get_item(Runtime& rt, const Value& v, const Value& key) {
  if (v.is_undefined()) return undefined_error(v);
  if (v.is(Kind::dict)) {
    if (key.is_string()) {
      if (const Value* found = v.find(key.text())) return *found;
    } else {
      for (const auto& [k, value] : v.entries()) {
        if (rt.tick() && detail::same_key(k, key)) return value;
      }
    }
  } else if (key.is_integral() && (v.is_string() || (v.is(Kind::list) && !detail::methods_of(v).empty()))) {
    NIHAO_TRY(const std::size_t size, size_of(rt, v));
    const Int at = key.integer() < 0 ? key.integer() + static_cast<Int>(size) : key.integer();
    if (at >= 0 && at < static_cast<Int>(size)) {
      const auto i = static_cast<std::size_t>(at);
      if (!v.is_string()) return v.items()[i];
      const std::size_t start = v.ascii() ? i : byte_of(v.text(), i);
      return rt.text(std::string(v.text().substr(start, decode_utf8(v.text(), start).length)));
    }
  }
  if (key.is_string()) return get_attribute(rt, v, key.text());
  std::string shown;
  NIHAO_CHECK(append_repr(rt, shown, key));
  return rt.missing(concat(v.is_none() ? "None" : concat(type_name(v), " object"), " has no element ", shown));
}

}  // namespace nihao::jinja
