// What can stand after `is`: Jinja's tests.
#pragma once

#include "methods.hpp"

namespace nihao::jinja {

/// A test: `value is name(arguments)`.
struct TestFunction {
  std::string_view name;
  Expected<bool> (*call)(Runtime&, const Value&, const Arguments&);
};
[[nodiscard]] const TestFunction* find_test(std::string_view name) noexcept;
[[nodiscard]] bool has_filter(std::string_view name) noexcept;  // filters.hpp

namespace detail {

using Answer = Expected<bool>;

/// A test without arguments.
template <auto ask>
Answer plain(Runtime& rt, const Value& v, const Arguments& a) {
  NIHAO_CHECK(bind_none("this test", a));
  if constexpr (std::is_invocable_v<decltype(ask), Runtime&, const Value&>) return ask(rt, v);
  else return ask(v);
}
/// A test that compares with its argument.
template <auto ask>
Answer against(Runtime& rt, const Value& v, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<1>("this test", a, {"other"}, 1));
  return ask(rt, v, *p[0]);
}
template <Op op>
Answer ordered(Runtime& rt, const Value& v, const Value& other) {
  NIHAO_TRY(const auto o, order(rt, v, other, symbol(op)));
  return op == Op::lt ? o < 0 : op == Op::le ? o <= 0 : op == Op::gt ? o > 0 : o >= 0;
}

[[nodiscard]] inline bool is_defined(const Value& v) noexcept { return !v.is_undefined(); }
[[nodiscard]] inline bool is_undefined(const Value& v) noexcept { return v.is_undefined(); }
[[nodiscard]] inline bool is_none(const Value& v) noexcept { return v.is_none(); }
[[nodiscard]] inline bool is_boolean(const Value& v) noexcept { return v.is(Kind::boolean); }
[[nodiscard]] inline bool is_true(const Value& v) noexcept { return v.is(Kind::boolean) && v.boolean(); }
[[nodiscard]] inline bool is_false(const Value& v) noexcept { return v.is(Kind::boolean) && !v.boolean(); }
[[nodiscard]] inline bool is_integer(const Value& v) noexcept { return v.is(Kind::integer); }
[[nodiscard]] inline bool is_float(const Value& v) noexcept { return v.is(Kind::real); }
[[nodiscard]] inline bool is_number(const Value& v) noexcept { return v.is_number(); }
[[nodiscard]] inline bool is_string(const Value& v) noexcept { return v.is_string(); }
[[nodiscard]] inline bool is_mapping(const Value& v) noexcept { return v.is(Kind::dict); }
[[nodiscard]] inline bool is_iterable(const Value& v) noexcept {
  return v.is_undefined() || v.is_string() || v.is(Kind::dict) || v.is(Kind::list);
}
/// It has a length and items: also a string, a dict, and, because it answers to everything, an undefined value.
[[nodiscard]] inline bool is_sequence(const Value& v) noexcept {
  if (v.is(Kind::list)) return v.flavor() == Flavor::list || v.flavor() == Flavor::tuple || v.flavor() == Flavor::range;
  return v.is_undefined() || v.is_string() || v.is(Kind::dict);
}
[[nodiscard]] inline bool is_callable(const Value& v) noexcept {
  return v.is_undefined() || v.is(Kind::function) || (v.is(Kind::object) && v.object()->can_call());
}
[[nodiscard]] inline bool is_escaped(const Value& v) noexcept { return v.is_string() && v.markup(); }
template <bool upper>
Answer is_cased(Runtime& rt, const Value& v) {
  NIHAO_TRY(const std::string text, to_text(rt, v));
  return all_in_case<upper>(text);
}
template <int odd>
Answer is_parity(Runtime& rt, const Value& v) {
  NIHAO_TRY(const Value rest, arithmetic(rt, Op::mod, v, Value(2)));
  return equals(rt, rest, Value(odd));
}
inline Answer divides(Runtime& rt, const Value& v, const Value& by) {
  NIHAO_TRY(const Value rest, arithmetic(rt, Op::mod, v, by));
  return equals(rt, rest, Value(0));
}
inline Answer is_equal(Runtime& rt, const Value& v, const Value& other) { return equals(rt, v, other); }
inline Answer is_unequal(Runtime& rt, const Value& v, const Value& other) { return !equals(rt, v, other); }
inline Answer is_same(Runtime&, const Value& v, const Value& other) { return v.same(other); }
inline Answer is_in(Runtime& rt, const Value& v, const Value& all) { return contains(rt, all, v); }
inline Answer is_filter(const Value& v) {
  if (!hashable(v)) return unhashable(v);
  return v.is_string() && has_filter(v.text());
}
inline Answer is_test(const Value& v) {
  if (!hashable(v)) return unhashable(v);
  return v.is_string() && find_test(v.text()) != nullptr;
}

inline constexpr TestFunction tests[] = {
    {"!=", against<is_unequal>},
    {"<", against<ordered<Op::lt>>},
    {"<=", against<ordered<Op::le>>},
    {"==", against<is_equal>},
    {">", against<ordered<Op::gt>>},
    {">=", against<ordered<Op::ge>>},
    {"boolean", plain<is_boolean>},
    {"callable", plain<is_callable>},
    {"defined", plain<is_defined>},
    {"divisibleby", against<divides>},
    {"eq", against<is_equal>},
    {"equalto", against<is_equal>},
    {"escaped", plain<is_escaped>},
    {"even", plain<is_parity<0>>},
    {"false", plain<is_false>},
    {"filter", plain<is_filter>},
    {"float", plain<is_float>},
    {"ge", against<ordered<Op::ge>>},
    {"greaterthan", against<ordered<Op::gt>>},
    {"gt", against<ordered<Op::gt>>},
    {"in", against<is_in>},
    {"integer", plain<is_integer>},
    {"iterable", plain<is_iterable>},
    {"le", against<ordered<Op::le>>},
    {"lessthan", against<ordered<Op::lt>>},
    {"lower", plain<is_cased<false>>},
    {"lt", against<ordered<Op::lt>>},
    {"mapping", plain<is_mapping>},
    {"ne", against<is_unequal>},
    {"none", plain<is_none>},
    {"number", plain<is_number>},
    {"odd", plain<is_parity<1>>},
    {"sameas", against<is_same>},
    {"sequence", plain<is_sequence>},
    {"string", plain<is_string>},
    {"test", plain<is_test>},
    {"true", plain<is_true>},
    {"undefined", plain<is_undefined>},
    {"upper", plain<is_cased<true>>},
};

}  // namespace detail

/// The test of that name, or null.
inline const TestFunction* find_test(std::string_view name) noexcept {
  for (const TestFunction& test : detail::tests) {
    if (test.name == name) return &test;
  }
  return nullptr;
}

}  // namespace nihao::jinja
