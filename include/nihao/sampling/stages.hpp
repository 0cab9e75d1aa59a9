// The stages of a sampler chain. Each is a small policy: a name, parameters, and apply(Candidates&, SamplerState&), which
// changes logits or drops candidates. A selector, at the end of a chain, chooses one of those left.
#pragma once

#include "candidates.hpp"

#include <concepts>
#include <string_view>

namespace nihao {

/// A stage: `static constexpr std::string_view name` and `void apply(Candidates&, SamplerState&)`. It may hold state of its
/// sequence. If it has `Expected<void> check() const`, the chain calls it once, when it is made. If it has `std::size_t keeps()
/// const`, that is how many of the largest it keeps at most and looks at alone (0: all): as the first of a chain it is given
/// these and few others, which is what makes it fast on a large vocabulary. A selector may have both too.
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
/// How many of the largest candidates are enough for `policy`; 0: it wants all.
template <class Policy>
[[nodiscard]] std::size_t enough_for(const Policy& policy) noexcept {
  if constexpr (requires { policy.keeps(); }) return policy.keeps();
  else return 0;
}
}  // namespace detail

/// Makes tokens that are already in the history less likely. For a token that occurs `count` times among the last `last_n`:
/// its logit is divided by `repeat` (multiplied, if not above zero: Keskar et al., CTRL, 2019), then loses
/// `count * frequency + presence`. last_n 0 switches the stage off; -1 means the whole history.
struct Penalties {
  static constexpr std::string_view name = "penalties";
  float repeat = 1.0f;
  float frequency = 0.0f;
  float presence = 0.0f;
  std::int32_t last_n = 64;

  [[nodiscard]] Expected<void> check() const {
    NIHAO_CHECK(detail::check_parameter(repeat > 0 && repeat < 1e6f, name, "repeat is above 0 and below 1e6",
                                        static_cast<double>(repeat)));
    NIHAO_CHECK(detail::check_parameter(frequency > -1e6f && frequency < 1e6f, name, "frequency is finite, within 1e6",
                                        static_cast<double>(frequency)));
    NIHAO_CHECK(detail::check_parameter(presence > -1e6f && presence < 1e6f, name, "presence is finite, within 1e6",
                                        static_cast<double>(presence)));
    return detail::check_parameter(last_n >= -1, name, "last_n is -1 or more", static_cast<double>(last_n));
  }

  void apply(Candidates& candidates, SamplerState& state) const noexcept {
    std::span<const TokenId> window = state.history();
    if (last_n >= 0) window = window.last(std::min(window.size(), static_cast<std::size_t>(last_n)));
    if (window.empty() || (repeat == 1.0f && frequency == 0.0f && presence == 0.0f)) return;
    const auto counts = state.counts();
    const auto known = [&](TokenId id) { return id >= 0 && static_cast<std::size_t>(id) < counts.size(); };
    for (const TokenId id : window) {
      if (known(id)) ++counts[static_cast<std::size_t>(id)];
    }
    for (Candidate& c : candidates.edit()) {
      const std::uint32_t count = counts[static_cast<std::size_t>(c.id)];
      if (count == 0) continue;
      const float scaled = c.logit <= 0.0f ? c.logit * repeat : c.logit / repeat;
      // In double count * frequency is exact, so fused or not the sum has the same bits.
      const double loss = static_cast<double>(count) * static_cast<double>(frequency) + static_cast<double>(presence);
      c.logit = static_cast<float>(static_cast<double>(scaled) - loss);
    }
    for (const TokenId id : window) {
      if (known(id)) counts[static_cast<std::size_t>(id)] = 0;
    }
  }
};

/// Keeps the k largest (Fan et al., 2018). k <= 0 keeps all.
struct TopK {
  static constexpr std::string_view name = "top_k";
  std::int32_t k = 40;

  [[nodiscard]] std::size_t keeps() const noexcept { return k <= 0 ? 0 : static_cast<std::size_t>(k); }

  void apply(Candidates& candidates, SamplerState&) const noexcept {
    if (k <= 0 || static_cast<std::size_t>(k) >= candidates.size()) return;
    candidates.descending(static_cast<std::size_t>(k));
    candidates.keep_first(static_cast<std::size_t>(k));
  }
};

/// Keeps the fewest of the largest whose mass is at least p (nucleus sampling, Holtzman et al., 2019), and at least min_keep.
/// The mass is counted among the candidates it is given, so after top-k it is renormalised. p >= 1 keeps all.
struct TopP {
  static constexpr std::string_view name = "top_p";
  float p = 0.95f;
  std::int32_t min_keep = 1;

  [[nodiscard]] Expected<void> check() const {
    NIHAO_CHECK(detail::check_parameter(p >= 0 && p <= 1, name, "p is between 0 and 1", static_cast<double>(p)));
    return detail::check_parameter(min_keep >= 0, name, "min_keep is 0 or more", static_cast<double>(min_keep));
  }

  void apply(Candidates& candidates, SamplerState&) const noexcept {
    if (p >= 1.0f) return;
    const auto max = static_cast<double>(candidates.best().logit);
    double total = 0;
    for (const Candidate& c : candidates.items()) total += exact_exp(static_cast<double>(c.logit) - max);
    const double wanted = static_cast<double>(p) * total;
    // The nucleus is nearly always small: order a front that grows, not the vocabulary.
    double mass = 0;
    std::size_t kept = 0;
    for (std::size_t front = 128; kept < candidates.size(); front *= 8) {
      for (const Candidate& c : candidates.descending(front).subspan(kept)) {
        mass += exact_exp(static_cast<double>(c.logit) - max);
        ++kept;
        if (mass >= wanted && kept >= static_cast<std::size_t>(min_keep)) return candidates.keep_first(kept);
      }
    }
  }
};

/// Keeps what is at least p times as likely as the likeliest (Nguyen et al., 2024), and at least min_keep. p = 0 keeps all.
struct MinP {
  static constexpr std::string_view name = "min_p";
  float p = 0.05f;
  std::int32_t min_keep = 1;

  [[nodiscard]] Expected<void> check() const {
    NIHAO_CHECK(detail::check_parameter(p >= 0 && p <= 1, name, "p is between 0 and 1", static_cast<double>(p)));
    return detail::check_parameter(min_keep >= 0, name, "min_keep is 0 or more", static_cast<double>(min_keep));
  }

  void apply(Candidates& candidates, SamplerState&) const noexcept {
    if (p <= 0.0f) return;
    // p_i >= p * p_max, said in logits: no softmax, no order.
    const double limit = static_cast<double>(candidates.best().logit) + exact_log(static_cast<double>(p));
    const auto least = std::min(static_cast<std::size_t>(min_keep), candidates.size());
    if (least > 1 && static_cast<double>(candidates.descending(least).back().logit) < limit) return candidates.keep_first(least);
    candidates.keep_from(limit);
  }
};

/// Divides the logits by `temperature`; at 0 only the likeliest stays (the lower id of a tie).
struct Temperature {
  static constexpr std::string_view name = "temperature";
  float temperature = 0.8f;

  [[nodiscard]] Expected<void> check() const {
    return detail::check_parameter(temperature >= 0 && temperature < 1e6f, name, "a temperature is 0 or more, and below 1e6",
                                   static_cast<double>(temperature));
  }
  [[nodiscard]] std::size_t keeps() const noexcept { return temperature == 0.0f ? 1 : 0; }

  void apply(Candidates& candidates, SamplerState&) const noexcept {
    if (temperature == 0.0f) {
      candidates.descending(1);
      return candidates.keep_first(1);
    }
    if (temperature == 1.0f) return;
    for (Candidate& c : candidates.edit_in_order()) c.logit /= temperature;
  }
};

/// Selector: the likeliest; the lower id of a tie.
struct Greedy {
  static constexpr std::string_view name = "greedy";

  [[nodiscard]] static std::size_t keeps() noexcept { return 1; }
  [[nodiscard]] TokenId select(Candidates& candidates, SamplerState& state) const noexcept {
    candidates.descending(1);
    candidates.keep_first(1);
    return state.normalise(candidates).front().id;
  }
};

/// Selector: a draw from the softmax of what is left, with one uniform number of the step's stream, by inverting the running
/// sum in candidate order.
struct Dist {
  static constexpr std::string_view name = "dist";

  [[nodiscard]] TokenId select(Candidates& candidates, SamplerState& state) const noexcept {
    const auto probabilities = state.normalise(candidates);
    double total = 0;
    for (const TokenProbability& t : probabilities) total += static_cast<double>(t.p);
    const double u = state.random().uniform() * total;
    double sum = 0;
    TokenId chosen = probabilities.front().id;
    for (const TokenProbability& t : probabilities) {
      if (t.p == 0.0f) continue;  // rounding must not choose what cannot be
      chosen = t.id;
      sum += static_cast<double>(t.p);
      if (sum > u) break;
    }
    return chosen;
  }
};

}  // namespace nihao
