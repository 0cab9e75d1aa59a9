// Selectors: the end of a chain.
#pragma once

#include "policy.hpp"

namespace nihao {

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
    return probabilities[detail::draw(probabilities, state.random())].id;
  }
};

/// What both kinds of mirostat have: the bound that follows how surprising the chosen tokens were, in bits, so that their mean
/// comes to `tau`; it starts at 2 tau. It is the sequence's own: it goes on after seek(), which cannot tell what it was then; a
/// copy of the chain keeps it.
class SurpriseBound {
 public:
  [[nodiscard]] double value(double tau) const noexcept { return learnt_ ? value_ : 2 * tau; }

  /// Draws one of the first `kept`, largest first, and follows its surprise.
  [[nodiscard]] TokenId choose(Candidates& candidates, std::size_t kept, double tau, double eta, SamplerState& state) noexcept {
    candidates.descending(kept);
    candidates.keep_first(kept);
    const auto probabilities = state.normalise(candidates);
    const TokenProbability chosen = probabilities[detail::draw(probabilities, state.random())];
    const double surprise = -exact_log(static_cast<double>(chosen.p)) / ln_2;
    value_ = std::fma(-eta, surprise - tau, value(tau));
    learnt_ = true;
    return chosen.id;
  }

  static constexpr double ln_2 = 0.6931471805599453;

 private:
  double value_ = 0;
  bool learnt_ = false;
};

/// Selector: mirostat (Basu et al., 2021, algorithm 1). From the m likeliest it fits how steeply the probabilities fall (Zipf's
/// s), and keeps the k for which the mean surprise should come to the bound.
struct Mirostat {
  static constexpr std::string_view name = "mirostat";
  float tau = 5.0f;
  float eta = 0.1f;
  std::int32_t m = 100;
  SurpriseBound bound = {};

  [[nodiscard]] Expected<void> check() const {
    NIHAO_CHECK(detail::check_parameter(m >= 2 && m <= 1 << 20, name, "m is from 2 to 1048576", static_cast<double>(m)));
    NIHAO_CHECK(
        detail::check_parameter(tau >= 0 && tau < 1e3f, name, "tau is 0 or more, and below 1000", static_cast<double>(tau)));
    return detail::check_parameter(eta >= 0 && eta <= 1, name, "eta is between 0 and 1", static_cast<double>(eta));
  }

  [[nodiscard]] TokenId select(Candidates& candidates, SamplerState& state) noexcept {
    const auto likeliest = candidates.descending(static_cast<std::size_t>(m));
    double products = 0, squares = 0;
    for (std::size_t i = 0; i + 1 < likeliest.size(); ++i) {
      const double t = exact_log(static_cast<double>(i + 2) / static_cast<double>(i + 1));
      const double b = static_cast<double>(likeliest[i].logit) - static_cast<double>(likeliest[i + 1].logit);
      products = std::fma(t, b, products);
      squares = std::fma(t, t, squares);
    }
    const std::size_t kept = squares > 0 ? count(products / squares, static_cast<double>(state.vocabulary())) : 1;
    return bound.choose(candidates, kept, static_cast<double>(tau), static_cast<double>(eta), state);
  }

 private:
  // k = (epsilon 2^mu / (1 - n^-epsilon))^(1/s), epsilon = s - 1, at least 1.
  [[nodiscard]] std::size_t count(double s, double n) const noexcept {
    constexpr double most = 1e9;
    const double epsilon = s - 1, log_n = exact_log(n);
    const double fall = std::abs(epsilon) < 1e-9 ? 1 / log_n : epsilon / (1 - exact_exp(-epsilon * log_n));
    const double log_k = (exact_log(fall) + bound.value(static_cast<double>(tau)) * SurpriseBound::ln_2) / s;
    if (!(log_k < 20)) return static_cast<std::size_t>(most);  // also of equal probabilities, where s is 0
    return std::max<std::size_t>(1, static_cast<std::size_t>(exact_exp(log_k)));
  }
};

/// Selector: mirostat 2 (Basu et al., 2021, algorithm 2): keeps the tokens that are no more surprising than the bound, and at
/// least the likeliest.
struct Mirostat2 {
  static constexpr std::string_view name = "mirostat2";
  float tau = 5.0f;
  float eta = 0.1f;
  SurpriseBound bound = {};

  [[nodiscard]] Expected<void> check() const {
    NIHAO_CHECK(
        detail::check_parameter(tau >= 0 && tau < 1e3f, name, "tau is 0 or more, and below 1000", static_cast<double>(tau)));
    return detail::check_parameter(eta >= 0 && eta <= 1, name, "eta is between 0 and 1", static_cast<double>(eta));
  }

  [[nodiscard]] TokenId select(Candidates& candidates, SamplerState& state) noexcept {
    const auto max = static_cast<double>(candidates.best().logit);
    double total = 0;
    for (const Candidate& c : candidates.items()) total += exact_exp(static_cast<double>(c.logit) - max);
    const double least = max + exact_log(total) - bound.value(static_cast<double>(tau)) * SurpriseBound::ln_2;
    std::size_t kept = 0;
    for (const Candidate& c : candidates.items()) kept += static_cast<double>(c.logit) >= least;
    return bound.choose(candidates, std::max<std::size_t>(kept, 1), static_cast<double>(tau), static_cast<double>(eta), state);
  }
};

/// The mean of the probabilities of the tokens chosen so far, the last counting most.
class ChosenMean {
 public:
  [[nodiscard]] double value(double start) const noexcept { return any_ ? mean_ : start; }
  void add(double p, double decay, double start) noexcept {
    mean_ = std::fma(decay, value(start), (1 - decay) * p);
    any_ = true;
  }

 private:
  double mean_ = 0;
  bool any_ = false;
};

/// Selector: draws tokens whose probability is near a target (adaptive-p, as llama.cpp has it). A token of probability p weighs
/// e^-(10 d^2 / (1 + d)), d = |p - aim| / 0.3; the aim is 2 target - the mean of the chosen tokens' probabilities, the last
/// counting most, each earlier one `decay` times the one after it, as if all before the first had been on the target. That mean
/// is the sequence's own: as with mirostat it goes on after seek().
struct AdaptiveP {
  static constexpr std::string_view name = "adaptive_p";
  float target = 0.5f;
  float decay = 0.9f;
  ChosenMean mean = {};

  [[nodiscard]] Expected<void> check() const {
    NIHAO_CHECK(
        detail::check_parameter(target >= 0 && target <= 1, name, "target is between 0 and 1", static_cast<double>(target)));
    return detail::check_parameter(decay >= 0 && decay <= 0.99f, name, "decay is between 0 and 0.99", static_cast<double>(decay));
  }

  [[nodiscard]] TokenId select(Candidates& candidates, SamplerState& state) noexcept {
    const auto wanted = static_cast<double>(target);
    const double aim = std::clamp(2 * wanted - mean.value(wanted), 0.0, 1.0);
    const auto max = static_cast<double>(candidates.best().logit);
    double total = 0;
    for (const Candidate& c : candidates.items()) total += exact_exp(static_cast<double>(c.logit) - max);
    const auto p = [&](const Candidate& c) { return exact_exp(static_cast<double>(c.logit) - max) / total; };
    const auto penalty = [&](const Candidate& c) {
      const double d = std::abs(p(c) - aim) / 0.3;
      return 10 * d * d / (1 + d);
    };
    double least = penalty(candidates.items().front());
    for (const Candidate& c : candidates.items()) least = std::min(least, penalty(c));
    const auto probabilities = state.weigh(candidates, [&](const Candidate& c) { return exact_exp(least - penalty(c)); });
    const std::size_t chosen = detail::draw(probabilities, state.random());
    mean.add(p(candidates.items()[chosen]), static_cast<double>(decay), wanted);
    return probabilities[chosen].id;
  }
};

}  // namespace nihao
