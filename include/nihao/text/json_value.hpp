// JSON to template values: messages and tools as a server or a file has them. Apart from the engine, so that only what reads
// JSON includes the JSON library.
#pragma once

#include "jinja/value.hpp"

#include <nlohmann/json.hpp>

namespace nihao {

namespace detail {
inline jinja::Value json_scalar(const nlohmann::ordered_json& json) {
  using nlohmann::ordered_json;
  switch (json.type()) {
    case ordered_json::value_t::boolean: return json.get<bool>();
    case ordered_json::value_t::number_integer: return json.get<std::int64_t>();
    case ordered_json::value_t::number_unsigned: return json.get<std::uint64_t>();
    case ordered_json::value_t::number_float: return json.get<double>();
    case ordered_json::value_t::string: return json.get_ref<const std::string&>();
    default: return jinja::Value::none();
  }
}
}  // namespace detail

/// The same value: objects become dicts in their order, null is none, and 1 and 1.0 stay an int and a float. Uses no stack for
/// depth; a render refuses a context nested deeper than jinja::Limits::depth.
[[nodiscard]] inline jinja::Value to_value(const nlohmann::ordered_json& json) {
  using nlohmann::ordered_json;
  struct Open {
    const ordered_json* json;
    ordered_json::const_iterator next;
    std::vector<jinja::Value> items = {};
    std::vector<jinja::Value::Pair> entries = {};
  };
  std::vector<Open> open;
  const ordered_json* current = &json;
  for (;;) {
    jinja::Value made;
    if (current && current->is_structured()) {
      open.push_back({current, current->cbegin()});
      current = nullptr;
    } else if (current) {
      made = detail::json_scalar(*current);
      if (open.empty()) return made;
    }
    // Hand what was made to the innermost open container; take its next child, or close it and hand that on.
    for (bool hand = current != nullptr;; hand = true) {
      Open& top = open.back();
      if (hand) {
        if (top.json->is_object()) top.entries.emplace_back(jinja::Value(top.next.key()), std::move(made));
        else top.items.push_back(std::move(made));
        ++top.next;
      }
      if (top.next != top.json->cend()) {
        current = &*top.next;
        break;
      }
      made = top.json->is_object() ? jinja::Value::dict(std::move(top.entries)) : jinja::Value::list(std::move(top.items));
      open.pop_back();
      if (open.empty()) return made;
    }
  }
}

}  // namespace nihao
