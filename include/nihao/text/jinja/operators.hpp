// Python's operators: truth, equality, order, arithmetic, membership, subscripts.
#pragma once

#include "ast.hpp"
#include "print.hpp"

#include <compare>

namespace nihao::jinja {

/// bool(value).
[[nodiscard]] inline bool truth(const Value& v) noexcept {
  switch (v.kind()) {
    case Kind::undefined:
    case Kind::none: return false;
    case Kind::boolean:
    case Kind::integer: return v.integer() != 0;
    case Kind::real: return v.real() != 0;
    case Kind::string: return !v.text().empty();
    case Kind::list: return v.flavor() == Flavor::iterator || !v.items().empty();
    case Kind::dict: return !v.entries().empty();
    case Kind::function:
    case Kind::object: return true;
  }
  return true;
}

namespace detail {
/// An int against a float, exactly. NaN is unordered.
[[nodiscard]] inline std::partial_ordering compare_numbers(const Value& a, const Value& b) noexcept {
  if (a.is_integral() && b.is_integral()) {
    return a.integer() < b.integer()   ? std::partial_ordering::less
           : a.integer() > b.integer() ? std::partial_ordering::greater
                                       : std::partial_ordering::equivalent;
  }
  if (a.is(Kind::real) && b.is(Kind::real)) return a.real() <=> b.real();
  if (a.is(Kind::real)) return 0 <=> compare_numbers(b, a);
  const double r = b.real();
  if (std::isnan(r)) return std::partial_ordering::unordered;
  if (r >= 0x1p126) return std::partial_ordering::less;
  if (r <= -0x1p126) return std::partial_ordering::greater;
  const auto whole = static_cast<Int>(r);
  if (a.integer() != whole) return a.integer() < whole ? std::partial_ordering::less : std::partial_ordering::greater;
  return 0.0 <=> r - std::trunc(r);
}
}  // namespace detail

/// a == b. Values are nested at most Limits::depth deep; what is shared is compared once per pair, within the step limit.
[[nodiscard]] inline bool equals(Runtime& rt, const Value& a, const Value& b) {
  if (!rt.tick()) return false;
  if (a.is_number() && b.is_number()) return detail::compare_numbers(a, b) == 0;
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::undefined: return true;
    case Kind::string: rt.tick(a.text().size() / 64); return a.text() == b.text();
    case Kind::list: {
      if (a.same(b)) return true;
      if (a.flavor() != b.flavor() || a.flavor() == Flavor::iterator || a.flavor() == Flavor::dict_values) return false;
      const auto x = a.items(), y = b.items();
      if (x.size() != y.size()) return false;
      for (std::size_t i = 0; i < x.size(); ++i) {
        if (!equals(rt, x[i], y[i])) return false;
      }
      return true;
    }
    case Kind::dict:
      if (a.same(b)) return true;
      if (a.entries().size() != b.entries().size()) return false;
      for (const auto& [key, value] : a.entries()) {
        const Value* other = nullptr;
        if (key.is_string()) {
          other = b.find(key.text());
        } else {
          for (const auto& [k, v] : b.entries()) {
            if (rt.tick() && detail::same_key(k, key)) other = &v;
          }
        }
        if (!other || !equals(rt, value, *other)) return false;
      }
      return true;
    default: return a.same(b);
  }
}

/// How a stands to b, where Python can say. Errors: mismatch.
[[nodiscard]] inline Expected<std::partial_ordering> order(Runtime& rt, const Value& a, const Value& b, std::string_view op) {
  if (!rt.tick()) return rt.failure();
  if (a.is_undefined()) return undefined_error(a);
  if (b.is_undefined()) return undefined_error(b);
  if (a.is_number() && b.is_number()) return detail::compare_numbers(a, b);
  if (a.is_string() && b.is_string()) {
    rt.tick(a.text().size() / 64);
    return std::partial_ordering(a.text().compare(b.text()) <=> 0);  // UTF-8 keeps the order of code points
  }
  if (a.is(Kind::list) && b.is(Kind::list) && a.flavor() == b.flavor() &&
      (a.flavor() == Flavor::list || a.flavor() == Flavor::tuple)) {
    const auto x = a.items(), y = b.items();
    for (std::size_t i = 0; i < x.size() && i < y.size(); ++i) {
      if (!equals(rt, x[i], y[i])) return order(rt, x[i], y[i], op);
    }
    return std::partial_ordering(x.size() <=> y.size());
  }
  return type_error(concat("'", op, "' not supported between instances of '", type_name(a), "' and '", type_name(b), "'"));
}

/// What a loop or a filter runs over. Holds the value, so that its items stay.
struct Iteration {
  Value of;
  std::vector<Value> made;
  std::span<const Value> items;
};

/// iter(value): characters of a string, keys of a dict, nothing of an undefined value. Errors: mismatch.
[[nodiscard]] inline Expected<Iteration> iterate(Runtime& rt, const Value& v) {
  Iteration out;
  switch (v.kind()) {
    case Kind::undefined: return out;
    case Kind::list:
      out.of = v;
      out.items = v.flavor() == Flavor::iterator ? v.consume() : v.items();
      return out;
    case Kind::string:
      if (!rt.room(v.text().size() * 160)) return rt.failure();
      each_character(v.text(), [&](char32_t, std::string_view bytes) { out.made.push_back(rt.text(std::string(bytes))); });
      break;
    case Kind::dict:
      for (const auto& [key, value] : v.entries()) out.made.push_back(key);
      break;
    default: return type_error(concat("'", type_name(v), "' object is not iterable"));
  }
  if (!rt.tick(out.made.size())) return rt.failure();
  out.items = out.made;
  return out;
}

/// len(value). Errors: mismatch.
[[nodiscard]] inline Expected<std::size_t> size_of(Runtime& rt, const Value& v) {
  switch (v.kind()) {
    case Kind::undefined: return std::size_t{0};
    case Kind::string:
      if (v.ascii()) return v.text().size();
      rt.tick(v.text().size() / 16);
      return length(v.text());
    case Kind::dict: return v.entries().size();
    case Kind::list:
      if (v.flavor() != Flavor::iterator) return v.items().size();
      [[fallthrough]];
    default: return type_error(concat("object of type '", type_name(v), "' has no len()"));
  }
}

namespace detail {
/// Whether Python would take it as a dict's key.
[[nodiscard]] inline bool hashable(const Value& v) noexcept {
  if (v.is_list(Flavor::tuple)) return std::all_of(v.items().begin(), v.items().end(), hashable);
  return !v.is(Kind::dict) && !v.is_list(Flavor::list) && !v.is_list(Flavor::dict_keys) && !v.is_list(Flavor::dict_items);
}
[[nodiscard]] inline Error unhashable(const Value& v) {
  if (v.is_list(Flavor::tuple)) {
    for (const Value& item : v.items()) {
      if (!hashable(item)) return unhashable(item);
    }
  }
  return type_error(concat("unhashable type: '", type_name(v), "'"));
}
}  // namespace detail

/// `needle in hay`. Errors: mismatch.
[[nodiscard]] inline Expected<bool> contains(Runtime& rt, const Value& hay, const Value& needle) {
  if (hay.is_string()) {
    if (needle.is_undefined()) return type_error("'in <string>' requires string as left operand, not Undefined");
    if (!needle.is_string()) return type_error(concat("'in <string>' requires string as left operand, not ", type_name(needle)));
    rt.tick(hay.text().size() / 16);
    return hay.text().find(needle.text()) != std::string_view::npos;
  }
  if (hay.is(Kind::dict)) {
    if (needle.is_string()) return hay.find(needle.text()) != nullptr;
    if (!detail::hashable(needle)) return detail::unhashable(needle);
    return std::any_of(hay.entries().begin(), hay.entries().end(),
                       [&](const auto& e) { return rt.tick() && detail::same_key(e.first, needle); });
  }
  if (!hay.is(Kind::list) && !hay.is_undefined())
    return type_error(concat("argument of type '", type_name(hay), "' is not iterable"));
  if ((hay.is_list(Flavor::dict_keys)) && !detail::hashable(needle)) return detail::unhashable(needle);
  NIHAO_TRY(const Iteration all, iterate(rt, hay));
  return std::any_of(all.items.begin(), all.items.end(), [&](const Value& x) { return equals(rt, x, needle); });
}

namespace detail {
[[nodiscard]] inline std::string_view symbol(Op op) noexcept {
  constexpr std::string_view symbols[] = {
      "+", "-", "*", "/", "//", "%", "** or pow()", "==", "!=", "<", "<=", ">", ">=", "in", "not in", ""};
  return symbols[static_cast<std::size_t>(op)];
}
[[nodiscard]] inline Error unsupported_operands(Op op, const Value& a, const Value& b) {
  if (a.is_undefined()) return undefined_error(a);
  if (b.is_undefined()) return undefined_error(b);
  return type_error(concat("unsupported operand type(s) for ", symbol(op), ": '", type_name(a), "' and '", type_name(b), "'"));
}
[[nodiscard]] inline std::string escaped_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&#34;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}
inline Error too_large() { return Error{ErrorCode::limit, "an integer needs more than 128 bits"}; }

[[nodiscard]] inline Expected<Value> add(Runtime& rt, const Value& a, const Value& b) {
  if (a.is_string()) {
    if (b.is_undefined()) return undefined_error(b);
    if (!b.is_string()) return type_error(concat("can only concatenate str (not \"", type_name(b), "\") to str"));
    if (!rt.room(a.text().size() + b.text().size())) return rt.failure();
    if (a.markup() != b.markup()) {  // what is not escaped yet is escaped first
      const std::string left = a.markup() ? std::string(a.text()) : escaped_html(a.text());
      return rt.text(left + (b.markup() ? std::string(b.text()) : escaped_html(b.text()))).as_markup();
    }
    const Value joined = rt.text(concat(a.text(), b.text()));
    return a.markup() ? joined.as_markup() : joined;
  }
  if (a.is(Kind::list) && (a.flavor() == Flavor::list || a.flavor() == Flavor::tuple)) {
    if (b.is_undefined()) return undefined_error(b);
    if (!b.is_list(a.flavor())) {
      return type_error(concat("can only concatenate ", type_name(a), " (not \"", type_name(b), "\") to ", type_name(a)));
    }
    if (!rt.room((a.items().size() + b.items().size()) * sizeof(Value))) return rt.failure();
    std::vector<Value> items(a.items().begin(), a.items().end());
    items.insert(items.end(), b.items().begin(), b.items().end());
    return rt.list(std::move(items), a.flavor());
  }
  return unsupported_operands(Op::add, a, b);
}

/// `text * n` and `list * n`.
[[nodiscard]] inline Expected<Value> repeat(Runtime& rt, const Value& what, Int times) {
  const std::size_t size = what.is_string() ? what.text().size() : what.items().size();
  if (times <= 0 || size == 0) return what.is_string() ? rt.text({}) : rt.list({}, what.flavor());
  if (times > 1'000'000'000 || !rt.room(size * static_cast<std::size_t>(times) * (what.is_string() ? 1 : sizeof(Value)))) {
    rt.fail("bytes of memory");
    return rt.failure();
  }
  if (what.is_string()) {
    std::string out;
    out.reserve(size * static_cast<std::size_t>(times));
    for (Int i = 0; i < times; ++i) out += what.text();
    return rt.text(std::move(out));
  }
  std::vector<Value> items;
  items.reserve(size * static_cast<std::size_t>(times));
  for (Int i = 0; i < times; ++i) items.insert(items.end(), what.items().begin(), what.items().end());
  return rt.list(std::move(items), what.flavor());
}

[[nodiscard]] inline Int floor_div(Int a, Int b) noexcept { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

[[nodiscard]] inline Expected<Value> integer_power(Int base, Int exponent) {
  if (exponent < 0) {
    if (base == 0) return value_error("0.0 cannot be raised to a negative power");
    return Value(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  Int out = 1;
  for (;;) {
    if ((exponent & 1) && __builtin_mul_overflow(out, base, &out)) return too_large();
    exponent >>= 1;
    if (exponent == 0) return Value(out);
    if (__builtin_mul_overflow(base, base, &base)) return too_large();
  }
}

[[nodiscard]] inline Expected<Value> integers(Op op, Int a, Int b) {
  Int out = 0;
  switch (op) {
    case Op::add:
      if (__builtin_add_overflow(a, b, &out)) return too_large();
      return Value(out);
    case Op::sub:
      if (__builtin_sub_overflow(a, b, &out)) return too_large();
      return Value(out);
    case Op::mul:
      if (__builtin_mul_overflow(a, b, &out)) return too_large();
      return Value(out);
    case Op::div:
      if (b == 0) return value_error("division by zero");
      return Value(static_cast<double>(a) / static_cast<double>(b));
    case Op::floor_div:
    case Op::mod:
      if (b == 0) return value_error("integer division or modulo by zero");
      if (b == -1)
        return op == Op::mod ? Expected<Value>(Value(0)) : integers(Op::sub, 0, a);  // the smallest int / -1 does not fit
      return Value(op == Op::mod ? a - floor_div(a, b) * b : floor_div(a, b));
    default: return integer_power(a, b);
  }
}

[[nodiscard]] inline Expected<Value> reals(Op op, double a, double b) {
  switch (op) {
    case Op::add: return Value(a + b);
    case Op::sub: return Value(a - b);
    case Op::mul: return Value(a * b);
    case Op::div:
      if (b == 0) return value_error("float division by zero");
      return Value(a / b);
    case Op::floor_div:
    case Op::mod: {
      if (b == 0) return value_error(op == Op::mod ? "float modulo" : "float floor division by zero");
      double rest = std::fmod(a, b);
      double whole = (a - rest) / b;
      if (rest != 0 && (rest < 0) != (b < 0)) rest += b, whole -= 1;
      if (op == Op::mod) return Value(rest == 0 ? std::copysign(0.0, b) : rest);
      return Value(whole == 0 ? std::copysign(0.0, a / b) : std::floor(whole + 0.5));
    }
    default: {
      const double out = std::pow(a, b);
      if (std::isnan(out) && !std::isnan(a) && !std::isnan(b)) return type_error("a complex number is not supported");
      if (std::isinf(out) && !std::isinf(a) && !std::isinf(b)) return value_error("(34, 'Numerical result out of range')");
      return Value(out);
    }
  }
}
}  // namespace detail

/// `text % arguments`; format.hpp.
[[nodiscard]] Expected<Value> percent_format(Runtime& rt, std::string_view format, const Value& arguments);

/// a op b for the arithmetic operators. Errors: mismatch (types, division by zero), limit (size).
[[nodiscard]] inline Expected<Value> arithmetic(Runtime& rt, Op op, const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    if (a.is_integral() && b.is_integral()) return detail::integers(op, a.integer(), b.integer());
    return detail::reals(op, a.real(), b.real());
  }
  const auto sequence = [](const Value& v) { return v.is_string() || v.is_list(Flavor::list) || v.is_list(Flavor::tuple); };
  if (op == Op::add) return detail::add(rt, a, b);
  if (op == Op::mul && sequence(a) && b.is_integral()) return detail::repeat(rt, a, b.integer());
  if (op == Op::mul && sequence(b) && a.is_integral()) return detail::repeat(rt, b, a.integer());
  if (op == Op::mul && (sequence(a) || sequence(b)) && !a.is_undefined() && !b.is_undefined()) {
    return type_error(concat("can't multiply sequence by non-int of type '", type_name(sequence(a) ? b : a), "'"));
  }
  if (op == Op::mod && a.is_string()) return percent_format(rt, a.text(), b);
  return detail::unsupported_operands(op, a, b);
}

namespace detail {
/// Where a slice begins and ends and how it steps, for `size` items (Python's slice.indices).
struct SliceRange {
  std::int64_t start, stop, step;
};
[[nodiscard]] inline Expected<SliceRange> slice_range(std::int64_t size, const Value& start, const Value& stop,
                                                      const Value& step) {
  const auto given = [](const Value& v, std::int64_t otherwise) -> Expected<std::int64_t> {
    if (v.is_none()) return otherwise;
    if (!v.is_integral() && !v.is_undefined())
      return type_error("slice indices must be integers or None or have an __index__ method");
    return integer_argument(&v, otherwise);
  };
  SliceRange r{};
  NIHAO_TRY(r.step, given(step, 1));
  if (r.step == 0) return value_error("slice step cannot be zero");
  const std::int64_t low = r.step > 0 ? 0 : -1, high = r.step > 0 ? size : size - 1;
  const auto place = [&](std::int64_t i) { return std::clamp(i < 0 ? i + size : i, low, high); };
  NIHAO_TRY(r.start, given(start, r.step > 0 ? low : size));
  NIHAO_TRY(r.stop, given(stop, r.step > 0 ? high : -size - 1));
  r.start = place(r.start), r.stop = place(r.stop);
  return r;
}
}  // namespace detail

/// value[start:stop:step]; none for a bound that is not given. Errors: mismatch.
[[nodiscard]] inline Expected<Value> slice(Runtime& rt, const Value& v, const Value& start, const Value& stop,
                                           const Value& step) {
  if (v.is_undefined()) return undefined_error(v);
  if (v.is_string()) {
    NIHAO_TRY(const std::size_t size, size_of(rt, v));
    NIHAO_TRY(const detail::SliceRange r, detail::slice_range(static_cast<std::int64_t>(size), start, stop, step));
    const std::string_view text = v.text();
    if (!rt.room(text.size())) return rt.failure();
    if (r.step == 1) {
      if (r.start >= r.stop) return rt.text({});
      const auto first = static_cast<std::size_t>(r.start), count = static_cast<std::size_t>(r.stop - r.start);
      if (v.ascii()) return rt.text(std::string(text.substr(first, count)));
      const std::string_view tail = text.substr(byte_of(text, first));
      return rt.text(std::string(tail.substr(0, byte_of(tail, count))));
    }
    std::vector<std::string_view> characters;
    each_character(text, [&](char32_t, std::string_view bytes) { characters.push_back(bytes); });
    std::string out;
    for (std::int64_t i = r.start; r.step > 0 ? i < r.stop : i > r.stop; i += r.step)
      out += characters[static_cast<std::size_t>(i)];
    return rt.text(std::move(out));
  }
  if (!v.is(Kind::list) || (v.flavor() != Flavor::list && v.flavor() != Flavor::tuple && v.flavor() != Flavor::range)) {
    return type_error(concat("'", type_name(v), "' object is not subscriptable"));
  }
  const auto items = v.items();
  NIHAO_TRY(const detail::SliceRange r, detail::slice_range(static_cast<std::int64_t>(items.size()), start, stop, step));
  if (!rt.room(items.size() * sizeof(Value))) return rt.failure();
  std::vector<Value> out;
  for (std::int64_t i = r.start; r.step > 0 ? i < r.stop : i > r.stop; i += r.step)
    out.push_back(items[static_cast<std::size_t>(i)]);
  return rt.list(std::move(out), v.flavor());
}

}  // namespace nihao::jinja
