// What a sampler chain is made of: stages, which change logits or drop candidates, and a selector, which chooses one of those
// left.
#pragma once

#include "sampler_state.hpp"

#include <concepts>
#include <string_view>

namespace nihao {

/// A stage: `static constexpr std::string_view name` and `void apply(Candidates&, SamplerState&)`. It may hold state of its
/// sequence. If it has `Expected<void> check() const`, the chain calls it once, when it is made. If it has `std::size_t keeps()
/// const`, that is how many of the largest it keeps at most and looks at alone (0: all): as the first of a chain it is given
/// these and few others, which is what makes it fast on a large vocabulary. A selector may have both too. If it has `void
/// touch(SamplerState&) const`, it changes the logits of no tokens but those it gives SamplerState::touch, and drops no others: a
/// stage behind it is still the first that keeps few.
template <class S>
concept SamplerStage = requires(S& stage, Candidates& candidates, SamplerState& state) {
  { S::name } -> std::convertible_to<std::string_view>;
  { stage.apply(candidates, state) } -> std::same_as<void>;
};

/// The end of a chain: `TokenId select(Candidates&, SamplerState&)`, which leaves the distribution it chose from in
/// SamplerState::probabilities().
template <class S>
concept TokenSelector = requires(S& selector, Candidates& candidates, SamplerState& state) {
  { S::name } -> std::convertible_to<std::string_view>;
  { selector.select(candidates, state) } -> std::same_as<TokenId>;
};

namespace detail {
/// invalid_argument, unless `good`.
[[nodiscard]] inline Expected<void> check_parameter(bool good, std::string_view stage, std::string_view rule, double value) {
  if (good) return {};
  return Error{ErrorCode::invalid_argument, concat(rule, ", not ", value), std::string(stage)};
}
template <class Policy>
[[nodiscard]] Expected<void> check_policy(const Policy& policy) {
  if constexpr (requires { policy.check(); }) return policy.check();
  else return {};
}
/// Says what `policy` means for the candidates: it touches some tokens (true: the next one may still keep few), or how many of
/// the largest are enough for it (`enough`; 0: it wants all).
template <class Policy>
[[nodiscard]] bool look_ahead(const Policy& policy, SamplerState& state, std::size_t& enough) noexcept {
  if constexpr (requires { policy.touch(state); }) return policy.touch(state), true;
  if constexpr (requires { policy.keeps(); }) enough = policy.keeps();
  return false;
}
/// The index of a candidate drawn with one uniform number of the step's stream, by inverting the running sum.
[[nodiscard]] inline std::size_t draw(std::span<const TokenProbability> probabilities, Random& random) noexcept {
  double total = 0;
  for (const TokenProbability& t : probabilities) total += static_cast<double>(t.p);
  const double u = random.uniform() * total;
  double sum = 0;
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    if (probabilities[i].p == 0.0f) continue;  // rounding must not choose what cannot be
    chosen = i;
    sum += static_cast<double>(probabilities[i].p);
    if (sum > u) break;
  }
  return chosen;
}
}  // namespace detail

}  // namespace nihao
