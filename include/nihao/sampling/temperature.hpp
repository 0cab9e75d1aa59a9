// Stages that divide the logits.
#pragma once

#include "policy.hpp"

namespace nihao {

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

/// Divides the logits by a temperature that follows how unsure the model is (dynamic temperature, Walker, 2023): from
/// `temperature - range`, but not below 0, where one token is certain, to `temperature + range` where all are alike:
/// low + (high - low) * (entropy / ln count) ^ exponent. range 0 is Temperature. At 0 only the likeliest stays.
struct DynamicTemperature {
  static constexpr std::string_view name = "dynamic_temperature";
  float temperature = 0.8f;
  float range = 0.5f;
  float exponent = 1.0f;

  [[nodiscard]] Expected<void> check() const {
    NIHAO_CHECK(detail::check_parameter(temperature >= 0 && temperature < 1e6f, name, "a temperature is 0 or more, and below 1e6",
                                        static_cast<double>(temperature)));
    NIHAO_CHECK(detail::check_parameter(range >= 0 && range < 1e6f, name, "range is 0 or more, and below 1e6",
                                        static_cast<double>(range)));
    return detail::check_parameter(exponent >= 0 && exponent < 1e6f, name, "exponent is 0 or more, and below 1e6",
                                   static_cast<double>(exponent));
  }

  void apply(Candidates& candidates, SamplerState& state) const noexcept {
    if (range <= 0.0f) return Temperature{temperature}.apply(candidates, state);
    if (candidates.size() < 2) return;
    const auto max = static_cast<double>(candidates.best().logit);
    double total = 0, weighted = 0;
    for (const Candidate& c : candidates.items()) {
      const double below = static_cast<double>(c.logit) - max, weight = exact_exp(below);
      total += weight;
      weighted = std::fma(weight, below, weighted);
    }
    // The mean of -ln p, where ln p is logit - max - ln(total).
    const double entropy = std::max(0.0, exact_log(total) - weighted / total);
    const double unsure = entropy / exact_log(static_cast<double>(candidates.size()));
    const double low = std::max(0.0, static_cast<double>(temperature) - static_cast<double>(range));
    const double high = static_cast<double>(temperature) + static_cast<double>(range);
    const double power = unsure < 1e-300 ? (exponent == 0.0f) : exact_exp(static_cast<double>(exponent) * exact_log(unsure));
    Temperature{static_cast<float>(std::fma(high - low, power, low))}.apply(candidates, state);
  }
};

}  // namespace nihao
