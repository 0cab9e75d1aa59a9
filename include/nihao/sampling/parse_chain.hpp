// A sampler chain as text: "top_k=40;top_p=0.95;temperature=0.8".
#pragma once

#include "stages.hpp"

#include <charconv>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace nihao {

/// Any stage, or any selector, that text can name.
using AnyStage = std::variant<Penalties, Dry, LogitBias, MinTokens, TopK, TopP, MinP, Typical, TopNSigma, TailFree, Xtc,
                              Temperature, DynamicTemperature>;
using AnySelector = std::variant<Dist, Greedy, Mirostat, Mirostat2, AdaptiveP>;

/// What a text says, before it has buffers.
struct ChainPlan {
  std::vector<AnyStage> stages = {};
  std::optional<AnySelector> selector = {};  ///< none, if the text has none
};

namespace detail {

// The parameters of a policy by name; the first is the one that `stage=value` sets. Greedy and Dist have none.
template <class F>
void parameters(Penalties& s, F&& f) {
  f("repeat", s.repeat), f("frequency", s.frequency), f("presence", s.presence), f("last_n", s.last_n), f("of", s.of);
}
template <class F>
void parameters(Dry& s, F&& f) {
  f("multiplier", s.multiplier), f("base", s.base), f("allowed_length", s.allowed_length), f("last_n", s.last_n);
  f("breakers", s.breakers);
}
template <class F>
void parameters(LogitBias& s, F&& f) {
  f("biases", s.biases);
}
template <class F>
void parameters(MinTokens& s, F&& f) {
  f("n", s.n), f("ends", s.ends);
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
void parameters(Typical& s, F&& f) {
  f("p", s.p), f("min_keep", s.min_keep);
}
template <class F>
void parameters(TopNSigma& s, F&& f) {
  f("n", s.n);
}
template <class F>
void parameters(TailFree& s, F&& f) {
  f("z", s.z), f("min_keep", s.min_keep);
}
template <class F>
void parameters(Xtc& s, F&& f) {
  f("probability", s.probability), f("threshold", s.threshold), f("min_keep", s.min_keep);
}
template <class F>
void parameters(Temperature& s, F&& f) {
  f("temperature", s.temperature);
}
template <class F>
void parameters(DynamicTemperature& s, F&& f) {
  f("temperature", s.temperature), f("range", s.range), f("exponent", s.exponent);
}
template <class F>
void parameters(Mirostat& s, F&& f) {
  f("tau", s.tau), f("eta", s.eta), f("m", s.m);
}
template <class F>
void parameters(Mirostat2& s, F&& f) {
  f("tau", s.tau), f("eta", s.eta);
}
template <class F>
void parameters(AdaptiveP& s, F&& f) {
  f("target", s.target), f("decay", s.decay);
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

// A parameter's value, by its type: a number, a part of the history, or a list with spaces between its items.
template <class Number>
[[nodiscard]] bool parse_value(std::string_view text, Number& out) noexcept {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), out);
  return problem == std::errc{} && end == text.data() + text.size() && !text.empty();
}
[[nodiscard]] inline bool parse_value(std::string_view text, HistoryPart& out) noexcept {
  if (text == "both") out = HistoryPart::both;
  else if (text == "prompt") out = HistoryPart::prompt;
  else if (text == "output") out = HistoryPart::output;
  else return false;
  return true;
}
[[nodiscard]] inline bool parse_value(std::string_view text, TokenBias& out) noexcept {  // id:bias
  const auto parts = split(text, ':');
  return parse_value(parts.first, out.id) && parse_value(parts.second, out.bias);
}
template <class Item>
[[nodiscard]] bool parse_list(std::string_view text, char separator, std::vector<Item>& out);
[[nodiscard]] inline bool parse_value(std::string_view text, std::vector<TokenId>& out) { return parse_list(text, ' ', out); }
[[nodiscard]] inline bool parse_value(std::string_view text, std::vector<TokenBias>& out) { return parse_list(text, ' ', out); }
[[nodiscard]] inline bool parse_value(std::string_view text, std::vector<std::vector<TokenId>>& out) {  // 13+198 271
  out.clear();
  while (!text.empty()) {
    const auto parts = split(text, ' ');
    if (!parse_list(parts.first, '+', out.emplace_back())) return false;
    text = parts.second;
  }
  return !out.empty();
}
template <class Item>
bool parse_list(std::string_view text, char separator, std::vector<Item>& out) {
  out.clear();
  while (!text.empty()) {
    const auto parts = split(text, separator);
    if (!parse_value(parts.first, out.emplace_back())) return false;
    text = parts.second;
  }
  return !out.empty();
}

[[nodiscard]] inline Error chain_error(std::string_view stage, std::string_view what) {
  return Error{ErrorCode::invalid_argument, what, concat("sampler chain, ", printable(stage))};
}

template <class Parameter>
inline constexpr std::string_view parameter_kind = "a number that fits";
template <>
inline constexpr std::string_view parameter_kind<HistoryPart> = "both, prompt or output";
template <>
inline constexpr std::string_view parameter_kind<std::vector<TokenId>> = "a list of ids, with spaces between them";
template <>
inline constexpr std::string_view parameter_kind<std::vector<TokenBias>> = "a list of id:bias, with spaces between them";
template <>
inline constexpr std::string_view parameter_kind<std::vector<std::vector<TokenId>>> =
    "a list of breakers, with spaces between them: ids, those of one breaker joined by +";

/// Fills one policy from "value,option=value,...".
template <class Policy>
[[nodiscard]] Expected<void> fill_policy(Policy& policy, std::string_view text) {
  if (text.empty()) return chain_error(Policy::name, concat("needs a value: ", Policy::name, "=..."));
  for (bool first = true; first || !text.empty(); first = false) {
    const auto parts = split(text, ',');
    text = parts.second;
    const auto named = split(parts.first, '=');
    const std::string_view option = first ? std::string_view{} : named.first, value = first ? parts.first : named.second;
    bool known = false, good = false;
    std::string names;
    std::string_view kind, parameter_name;
    parameters(policy, [&]<class Parameter>(std::string_view name, Parameter& parameter) {
      if (!known && (first || name == option)) {
        known = true, good = parse_value(value, parameter);
        kind = parameter_kind<Parameter>, parameter_name = name;
      }
      if (!names.empty()) names += ", ";
      names += name;
    });
    if (!known) return chain_error(Policy::name, concat("has no parameter '", printable(option), "'; it has ", names));
    if (!good) return chain_error(Policy::name, concat(parameter_name, ": '", printable(value), "' is not ", kind));
  }
  return check_policy(policy);
}

/// The alternative of `Any` that is called `name`, filled from `value`; nothing if there is none.
template <class Any>
struct PolicyParser;
template <class... Policies>
struct PolicyParser<std::variant<Policies...>> {
  using Any = std::variant<Policies...>;

  [[nodiscard]] static Expected<std::optional<Any>> parse(std::string_view name, std::string_view text, bool has_value) {
    Expected<std::optional<Any>> result = std::optional<Any>();
    (attempt(Policies{}, name, text, has_value, result), ...);
    return result;
  }
  [[nodiscard]] static std::string names(std::string_view separator) {
    std::string all;
    ((all += all.empty() ? std::string_view() : separator, all += Policies::name), ...);
    return all;
  }

 private:
  template <class Policy>
  static void attempt(Policy policy, std::string_view name, std::string_view text, bool has_value,
                      Expected<std::optional<Any>>& result) {
    if (name != Policy::name) return;
    Expected<void> filled;
    if constexpr (requires { parameters(policy, [](std::string_view, auto&) {}); }) filled = fill_policy(policy, text);
    else if (has_value) filled = chain_error(name, "takes no value");
    if (filled) result = std::optional<Any>(std::move(policy));
    else result = std::move(filled).error();
  }
};

}  // namespace detail

/// The policies a text names, `;` between them. Errors: invalid_argument; `where` names the stage.
[[nodiscard]] inline Expected<ChainPlan> parse_chain(std::string_view text) {
  using Stages = detail::PolicyParser<AnyStage>;
  using Selectors = detail::PolicyParser<AnySelector>;
  ChainPlan plan;
  while (!detail::trimmed(text).empty()) {
    const auto parts = detail::split(text, ';');
    const std::string_view part = parts.first;
    text = parts.second;
    if (part.empty()) continue;
    const auto named = detail::split(part, '=');
    const std::string_view name = named.first == "temp" ? Temperature::name : named.first;
    const bool has_value = part.find('=') != std::string_view::npos;
    if (plan.selector) return detail::chain_error(name, "nothing can follow the selector");
    NIHAO_TRY(plan.selector, Selectors::parse(name, named.second, has_value));
    if (plan.selector) continue;
    NIHAO_TRY(std::optional<AnyStage> stage, Stages::parse(name, named.second, has_value));
    if (!stage) {
      return detail::chain_error(name, concat("is not a stage; the stages are ", Stages::names(", "), ", and one of ",
                                              Selectors::names(", "), " at the end"));
    }
    plan.stages.push_back(std::move(*stage));
  }
  return plan;
}

}  // namespace nihao
