// A sampler chain as text: "top_k=40;top_p=0.95;temperature=0.8".
#pragma once

#include "stages.hpp"

#include <charconv>
#include <utility>
#include <variant>
#include <vector>

namespace nihao {

/// Any stage, or any selector, that text can name.
using AnyStage = std::variant<Penalties, TopK, TopP, MinP, Temperature>;
using AnySelector = std::variant<Dist, Greedy>;

/// What a text says, before it has buffers.
struct ChainPlan {
  std::vector<AnyStage> stages = {};
  AnySelector selector = Dist{};
};

namespace detail {

// The parameters of a stage by name; the first is the one that `stage=value` sets.
template <class F>
void parameters(Penalties& s, F&& f) {
  f("repeat", s.repeat), f("frequency", s.frequency), f("presence", s.presence), f("last_n", s.last_n);
}
template <class F>
void parameters(TopK& s, F&& f) {
  f("k", s.k);
}
template <class F>
void parameters(TopP& s, F&& f) {
  f("p", s.p), f("min_keep", s.min_keep);
}
template <class F>
void parameters(MinP& s, F&& f) {
  f("p", s.p), f("min_keep", s.min_keep);
}
template <class F>
void parameters(Temperature& s, F&& f) {
  f("temperature", s.temperature);
}

[[nodiscard]] inline std::string_view trimmed(std::string_view text) noexcept {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t' || text.front() == '\n')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\n')) text.remove_suffix(1);
  return text;
}
/// Splits at the first `separator`: what is before it, and what is after it (empty without one). Both trimmed.
[[nodiscard]] inline std::pair<std::string_view, std::string_view> split(std::string_view text, char separator) noexcept {
  const std::size_t at = text.find(separator);
  if (at == std::string_view::npos) return {trimmed(text), {}};
  return {trimmed(text.substr(0, at)), trimmed(text.substr(at + 1))};
}
template <class Number>
[[nodiscard]] bool parse_number(std::string_view text, Number& out) noexcept {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), out);
  return problem == std::errc{} && end == text.data() + text.size() && !text.empty();
}

[[nodiscard]] inline Error chain_error(std::string_view stage, std::string_view what) {
  return Error{ErrorCode::invalid_argument, what, concat("sampler chain, ", printable(stage))};
}

/// Fills one stage from "value,option=value,...".
template <class Stage>
[[nodiscard]] Expected<void> fill_stage(Stage& stage, std::string_view text) {
  if (text.empty()) return chain_error(Stage::name, concat("needs a value: ", Stage::name, "=..."));
  for (bool first = true; first || !text.empty(); first = false) {
    const auto parts = split(text, ',');
    text = parts.second;
    const auto named = split(parts.first, '=');
    const std::string_view option = first ? std::string_view{} : named.first, value = first ? parts.first : named.second;
    bool known = false, good = false;
    std::string names;
    parameters(stage, [&](std::string_view name, auto& parameter) {
      if (!known && (first || name == option)) known = true, good = parse_number(value, parameter);
      if (!names.empty()) names += ", ";
      names += name;
    });
    if (!known) return chain_error(Stage::name, concat("has no parameter '", printable(option), "'; it has ", names));
    if (!good) return chain_error(Stage::name, concat("'", printable(value), "' is not a number that fits"));
  }
  return check_policy(stage);
}

}  // namespace detail

/// The stages a text names, `;` between them. Errors: invalid_argument; `where` names the stage.
[[nodiscard]] inline Expected<ChainPlan> parse_chain(std::string_view text) {
  ChainPlan plan;
  bool ended = false;
  while (!detail::trimmed(text).empty()) {
    const auto parts = detail::split(text, ';');
    const std::string_view part = parts.first;
    text = parts.second;
    if (part.empty()) continue;
    const auto named = detail::split(part, '=');
    const std::string_view name = named.first, value = named.second;
    if (ended) return detail::chain_error(name, "nothing can follow the selector");
    if (name == Greedy::name || name == Dist::name) {
      if (part.find('=') != std::string_view::npos) return detail::chain_error(name, "takes no value");
      if (name == Greedy::name) plan.selector = Greedy{};
      ended = true;
      continue;
    }
    const std::string_view full = name == "temp" ? Temperature::name : name;
    Expected<void> filled = detail::chain_error(
        name, "is not a stage; the stages are penalties, top_k, top_p, min_p, temperature, and greedy or dist at the end");
    // One try per alternative of AnyStage: the one whose name it is fills itself.
    [&]<class... Stages>(std::type_identity<std::variant<Stages...>>) {
      const auto attempt = [&]<class Stage>(Stage stage) {
        if (full != Stage::name) return;
        filled = detail::fill_stage(stage, value);
        plan.stages.emplace_back(stage);
      };
      (attempt(Stages{}), ...);
    }(std::type_identity<AnyStage>{});
    if (!filled) return std::move(filled).error();
  }
  return plan;
}

}  // namespace nihao
