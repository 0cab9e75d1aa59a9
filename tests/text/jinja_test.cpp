#include "text/chat_data.hpp"

#include "nihao/text/jinja/strftime.hpp"

#include <doctest/doctest.h>

using namespace nihao;
using jinja::Value;

namespace {

/// What the template renders to, or "code: what".
std::string rendered(std::string_view source, const Value& context = Value::dict(), const RenderOptions& options = {}) {
  const auto chat = ChatTemplate::parse(source);
  if (!chat) return concat(to_string(chat.error().code), ": ", chat.error().what);
  auto out = chat->render(context, options);
  if (!out) return concat(to_string(out.error().code), ": ", out.error().what);
  return *std::move(out);
}
Error error_of(std::string_view source, const Value& context = Value::dict(), const RenderOptions& options = {}) {
  const auto chat = ChatTemplate::parse(source);
  if (!chat) return chat.error();
  const auto out = chat->render(context, options);
  return out ? Error{ErrorCode::io, "no error, but: " + *out} : out.error();
}

}  // namespace

TEST_CASE("the language cases give what jinja2 gives") {
  const auto json =
      test::Json::parse(test::read_text(std::filesystem::path(test::source_dir) / "tests/text/data/jinja_lang.json"));
  std::size_t count = 0;
  for (const auto& c : json.at("cases")) {
    const auto source = c.at("template").get<std::string>();
    const std::string failure = test::failure_of(ChatTemplate::parse(source), json.at("context"), c, json.at("now"));
    CHECK_MESSAGE(failure.empty(), c.at("id").get<std::string>() << " " << source << ": " << failure);
    ++count;
  }
  CHECK(count == 130);
}

TEST_CASE("undefined and none are told apart") {
  const Value context = Value::dict({{"nothing", Value::none()}, {"d", Value::dict({{"a", Value::none()}})}});
  CHECK(rendered("{{ x }}|{{ nothing }}", context) == "|None");
  CHECK(rendered("{{ x is defined }} {{ nothing is defined }} {{ x is none }} {{ nothing is none }}", context) ==
        "False True False True");
  CHECK(rendered("{{ d.a is defined }} {{ d.b is defined }} {{ d.b or 'or' }} {{ d.a | default('D') }} {{ d.b | default('D') }}",
                 context) == "True False or None D");
  CHECK(error_of("{{ x.y }}").what == "'x' is undefined");
  CHECK(error_of("{{ d.b.c }}", context).what == "'dict object' has no attribute 'b'");
  CHECK(error_of("{{ nothing.a.b }}", context).what == "'None' has no attribute 'a'");
  CHECK(error_of("{{ 'a' + x }}").what == "'x' is undefined");
}

TEST_CASE("an error says the line, and raise_exception its own text") {
  const Error own = error_of("a\n\n{{ raise_exception('no ' ~ 1 ~ '\\n') }}");
  CHECK(own.code == ErrorCode::template_error);
  CHECK(own.what == "no 1\n");
  CHECK(own.where == "chat template: line 3");
  CHECK(error_of("a\n{% if x %}").message() ==
        "chat template: line 2: Unexpected end of template. Jinja was looking for the following tags: 'elif' or 'else' or "
        "'endif'. The "
        "innermost block "
        "that needs to be closed is 'if'.");
  CHECK(error_of("\n{{ 1 + 'a' }}").message() == "chat template: line 2: unsupported operand type(s) for +: 'int' and 'str'");
  CHECK(error_of("{{ 1 | nothing }}").message() == "chat template: line 1: No filter named 'nothing'.");
  CHECK(rendered("{% if false %}{{ 1 | nothing }}{% endif %}ok") == "ok");  // as in Jinja: only when it runs
  CHECK(error_of("{% if true %}{{ 1 | nothing }}{% endif %}").code == ErrorCode::unsupported);
  CHECK(error_of("{% macro m(a) %}\n{{ a.b.c }}\n{% endmacro %}\n\n{{ m({}) }}").where == "chat template: line 2");
}

TEST_CASE("numbers print as Python prints them") {
  CHECK(rendered("{{ 1.0 }} {{ 1e16 }} {{ 1e15 }} {{ 0.0001 }} {{ 0.00001 }} {{ -0.0 }} {{ 1e308 * 10 }}") ==
        "1.0 1e+16 1000000000000000.0 0.0001 1e-05 -0.0 inf");
  CHECK(rendered("{{ 7 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 2 ** 100 }} {{ 2 ** -1 }}") ==
        "3.5 3 -4 2 1267650600228229401496703205376 0.5");
  CHECK(error_of("{{ 2 ** 200 }}").code == ErrorCode::limit);
  CHECK(error_of("{{ 1 // 0 }}").what == "integer division or modulo by zero");
  // The ends of the integers: no overflow, whatever is done to them.
  const std::string low = "(-2 ** 63 * 2 ** 63 * 2)";
  CHECK(error_of("{{ 0 - " + low + " }}").code == ErrorCode::limit);
  CHECK(error_of("{{ " + low + " // -1 }}").code == ErrorCode::limit);
  CHECK(rendered("{{ " + low + " % -1 }}") == "0");
  CHECK(error_of("{{ -" + low + " }}").code == ErrorCode::limit);
  CHECK(rendered("{{ " + low + " }}") == "-170141183460469231731687303715884105728");
  CHECK(rendered("{{ 9007199254740993 == 9007199254740993.0 }} {{ 9007199254740993 > 9007199254740992.0 }}") == "False True");
}

TEST_CASE("strings are rows of code points, and bytes that are not UTF-8 do no harm") {
  const Value context = Value::dict({{"u", "hé世👍"},
                                     {"bad",
                                      "a\xFF\xF0\x9F"
                                      "b"}});
  CHECK(rendered("{{ u | length }} {{ u[1] }} {{ u[-1] }} {{ u[1:3] }} {{ u[::-1] }} {{ u | upper }} {{ u.find('世') }}",
                 context) == "4 é 👍 é世 👍世éh HÉ世👍 2");
  CHECK(rendered("{{ bad }}|{{ bad | length }}|{{ bad[::-1] }}|{{ bad | upper }}|{{ bad.strip('b') }}", context) ==
        "a\xFF\xF0\x9F"
        "b|4|b\xF0\x9F\xFF"
        "a|A\xFF\xF0\x9F"
        "B|a\xFF\xF0\x9F");
  CHECK(rendered("{{ 'straße ΑΣ'.upper() }} {{ 'ΑΣ Σ'.lower() }} {{ 'ǆ'.title() }} {{ '\\ud83d\\ude00' }}") ==
        "STRASSE ΑΣ ας σ ǅ 😀");
}

TEST_CASE("a dict keeps its order, and equal keys are one") {
  std::vector<Value::Pair> many;
  for (int i = 0; i < 100; ++i) many.emplace_back(concat("k", i % 50), i);
  const Value d = Value::dict(std::move(many));
  CHECK(d.entries().size() == 50);
  CHECK(d.entries()[7].first.text() == "k7");
  CHECK(d.find("k7")->integer() == 57);
  CHECK(d.find("k99") == nullptr);
  CHECK(rendered("{{ {1: 'a', 'x': 0, 1.0: 'b', true: 'c', 'x': 1} }}") == "{1: 'c', 'x': 1}");
  CHECK(rendered("{{ {'items': 1}['items'] }} {{ {'items': 1}.items() | list }}") == "1 [('items', 1)]");
}

TEST_CASE("the sandbox keeps values as they are") {
  const Value context = Value::dict({{"l", Value::list({1})}, {"d", Value::dict()}});
  for (const char* source : {"{{ l.append(1) }}", "{{ l.pop() }}", "{{ l.sort() }}", "{{ d.update({}) }}", "{{ d.pop('a') }}",
                             "{{ d.clear() }}", "{{ ''.__class__() }}", "{{ l.__len__() }}"}) {
    const Error e = error_of(source, context);
    CHECK_MESSAGE(e.code == ErrorCode::mismatch, source);
    CHECK_MESSAGE(e.what.ends_with("is unsafe."), source << ": " << e.what);
  }
  CHECK(error_of("{% set d.x = 1 %}", context).what == "cannot assign attribute on non-namespace object");
}

TEST_CASE("scopes: a loop's and a macro's assignments are their own, a namespace's are not") {
  CHECK(rendered("{% set x = 1 %}{% for i in [1, 2] %}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}") == "231");
  CHECK(rendered("{% set n = namespace(x=1) %}{% for i in [1, 2] %}{% set n.x = n.x + i %}{% endfor %}{{ n.x }}") == "4");
  CHECK(rendered("{% macro m() %}{{ z }}{% set z = 2 %}{{ z }}{% endmacro %}{% set z = 1 %}{{ m() }}{{ z }}") == "121");
  CHECK(rendered("{% for i in [1, 2] %}{% macro m() %}{{ i }}{% endmacro %}{% set f = m %}{{ f() }}{% endfor %}") == "12");
  CHECK(rendered("{% set keep = namespace() %}{% for i in [1, 2] %}{% macro m() %}{{ i }}{% endmacro %}{% if i == 1 %}{% set "
                 "keep.m = m %}"
                 "{% endif %}{% endfor %}{{ keep.m() }}") == "1");
}

TEST_CASE("a template cannot hang, fill the memory or overflow the stack") {
  RenderOptions small;
  small.limits = {.steps = 100'000, .depth = 100, .output_bytes = 10'000, .memory_bytes = 1'000'000};
  const std::string deep_list =
      "{% set n = namespace(x=[]) %}{% for i in range(5000) %}{% set n.x = [n.x] %}{% endfor %}{{ n.x }}";
  for (const std::string& source : {
           std::string("{% for i in range(1000) %}{% for j in range(1000) %}{% endfor %}{% endfor %}"),
           std::string("{% for i in range(100000) %}{{ 'xxxxxxxxxxxxxxxx' }}{% endfor %}"),
           std::string("{{ 'x' * 1000000000 }}"),
           std::string("{{ [0] * 1000000000 }}"),
           std::string("{{ 'x' * 100 ** 30 }}"),
           std::string("{% set n = namespace(x='x') %}{% for i in range(64) %}{% set n.x = n.x + n.x %}{% endfor %}"),
           std::string("{% set n = namespace(x=['x']) %}{% for i in range(64) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x }}"),
           std::string("{% set n = namespace(x=['x'], y=['x']) %}{% for i in range(64) %}{% set n.x = [n.x, n.x] %}{% set n.y = "
                       "[n.y, n.y] %}"
                       "{% endfor %}{{ n.x == n.y }}"),
           std::string("{% set n = namespace(x=['x']) %}{% for i in range(64) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x | "
                       "tojson }}"),
           deep_list,
           std::string("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"),
           std::string("{% set n = namespace() %}{% set n.n = n %}{{ n }}"),
           std::string("{{ range(100001) }}"),
           std::string("{{ 'a' | center(100000000) }}"),
           std::string("{{ 'a'.ljust(100000000) }}"),
           std::string("{{ '%1000000000d' % 1 }}"),
           std::string("{{ '{:1000000000}'.format(1) }}"),
           std::string("{{ 'aaaa' | replace('', 'x' * 900000) }}"),
           std::string("{{ ('x,' * 100000).split(',') }}"),
           std::string("{{ (['x' * 100000] * 1000) | join }}"),
           std::string("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}"),
           std::string("{{ [1] | batch(1000000000, 0) | list }}"),
           std::string("{{ [1] | slice(1000000000) | list }}"),
           std::string("{{ ('a\\n' * 100000) | indent('x' * 100000) }}"),
           std::string("{% filter replace('a', 'a' * 100000) %}{{ 'a' * 100000 }}{% endfilter %}"),
           std::string("{% for i in range(100000) %}{% set x = 'x' * i %}{{ x | upper | lower }}{% endfor %}"),
       }) {
    const Error e = error_of(source, Value::dict(), small);
    CHECK_MESSAGE(e.code == ErrorCode::limit, source << ": " << to_string(e.code) << ": " << e.what);
  }
  // What fits, fits.
  CHECK(rendered("{% for i in range(1000) %}{{ i % 10 }}{% endfor %}", Value::dict(), small).size() == 1000);
}

TEST_CASE("nesting in the source is capped when it is parsed, and long rows are not nesting") {
  const auto repeat = [](std::string_view what, std::size_t n) {
    std::string out;
    for (std::size_t i = 0; i < n; ++i) out += what;
    return out;
  };
  CHECK(error_of("{{ " + repeat("(", 5000) + "1" + repeat(")", 5000) + " }}").code == ErrorCode::limit);
  CHECK(error_of("{{ " + repeat("[", 5000) + repeat("]", 5000) + " }}").code == ErrorCode::limit);
  CHECK(error_of("{{ " + repeat("-", 5000) + "1 }}").code == ErrorCode::limit);
  CHECK(error_of("{{ " + repeat("a if b else ", 5000) + "1 }}").code == ErrorCode::limit);
  CHECK(error_of(repeat("{% if a %}", 5000)).code == ErrorCode::limit);
  CHECK(error_of("{% for " + repeat("(", 5000) + "a" + repeat(")", 5000) + " in b %}").code == ErrorCode::limit);
  CHECK(error_of("{{ a" + repeat(".a", 50000) + " }}").code == ErrorCode::limit);
  CHECK(error_of("{{ ''" + repeat("|upper", 50000) + " }}").code == ErrorCode::limit);
  CHECK(rendered("{{ " + repeat("not ", 50000) + "1 }}") == "True");
  CHECK(rendered("{{ 1" + repeat(" + 1", 50000) + " }}") == "50001");
  CHECK(rendered("{{ 1" + repeat(" and 1", 50000) + " }}") == "1");
  CHECK(rendered("{% if 0 %}" + repeat("{% elif 0 %}", 50000) + "{% else %}x{% endif %}") == "x");
  // As deep as it goes is no deeper than the stack.
  CHECK(rendered("{{ " + repeat("[", 80) + repeat("]", 80) + " }}") == repeat("[", 80) + repeat("]", 80));
}

TEST_CASE("a value nested a million times is made, refused and dropped without the stack") {
  Value v = Value::list();
  for (int i = 0; i < 1'000'000; ++i) v = Value::list({std::move(v)});
  CHECK(v.depth() == 1'000'001);
  CHECK(error_of("{{ v }}", Value::dict({{"v", v}})).code == ErrorCode::limit);
  test::Json json = test::Json::array();
  for (int i = 0; i < 10'000; ++i) json = test::Json::array({std::move(json)});
  CHECK(to_value(json).depth() == 10'001);
}

TEST_CASE("JSON becomes values without losing what it was") {
  const auto json = test::Json::parse(
      R"({"b": [1, 1.0, true, null, "x", {}], "a": 18446744073709551615, "n": -5, "e": [], "o": {"k": {"l": [[]]}}})");
  CHECK(rendered("{{ v }}", Value::dict({{"v", to_value(json)}})) ==
        "{'b': [1, 1.0, True, None, 'x', {}], 'a': 18446744073709551615, 'n': -5, 'e': [], 'o': {'k': {'l': [[]]}}}");
  CHECK(rendered("{{ v | tojson }}", Value::dict({{"v", to_value(json)}})) ==
        R"({"b": [1, 1.0, true, null, "x", {}], "a": 18446744073709551615, "n": -5, "e": [], "o": {"k": {"l": [[]]}}})");
  CHECK(to_value(test::Json(7)).integer() == 7);
}

TEST_CASE("dates are those of the calendar") {
  using jinja::DateTime;
  const auto at = [](std::int64_t seconds, std::string_view format) {
    return jinja::strftime(DateTime::from_unix(seconds), format);
  };
  CHECK(at(0, "%Y-%m-%d %H:%M:%S %A") == "1970-01-01 00:00:00 Thursday");
  CHECK(at(951782400, "%F %j %a") == "2000-02-29 060 Tue");
  CHECK(at(-1, "%F %T") == "1969-12-31 23:59:59");
  CHECK(at(1709164800, "%d %b %Y, week %V of %G, %U, %W, %u, %w") == "29 Feb 2024, week 09 of 2024, 08, 09, 4, 4");
  CHECK(at(1609459200, "%G-%V") == "2020-53");  // 1 January 2021 belongs to the year before
  CHECK(at(4102444799, "%c|%I %p|%-d") == "Thu Dec 31 23:59:59 2099|11 PM|31");
  for (std::int64_t day = -719'000; day < 800'000; day += 97) {
    const DateTime t = DateTime::from_unix(day * 86400);
    CHECK(t.valid());
    CHECK(t.weekday() == (day % 7 + 10) % 7);
  }
  RenderOptions options;
  CHECK(rendered("{{ strftime_now is defined }}") == "False");
  options.now = DateTime{2026, 11, 29, 14, 5, 9};
  CHECK(rendered("{{ strftime_now('%Y') }}", Value::dict(), options) == "2026");
  options.now->month = 13;
  CHECK(error_of("", Value::dict(), options).code == ErrorCode::invalid_argument);
}
