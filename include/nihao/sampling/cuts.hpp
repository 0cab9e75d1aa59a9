// Stages that drop candidates.
#pragma once

#include "policy.hpp"

namespace nihao {

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

/// Keeps what is least surprising to be as surprising as a token of this distribution is on average, nearest first, until their
/// mass is above p (locally typical sampling, Meister et al., 2022), and at least min_keep. p >= 1 keeps all.
struct Typical {
  static constexpr std::string_view name = "typical";
  float p = 0.95f;
  std::int32_t min_keep = 1;

  [[nodiscard]] Expected<void> check() const {
    NIHAO_CHECK(detail::check_parameter(p >= 0 && p <= 1, name, "p is between 0 and 1", static_cast<double>(p)));
    return detail::check_parameter(min_keep >= 0, name, "min_keep is 0 or more", static_cast<double>(min_keep));
  }

  void apply(Candidates& candidates, SamplerState&) const noexcept {
    if (p >= 1.0f) return;
    const auto max = static_cast<double>(candidates.best().logit);
    double total = 0, weighted = 0;
    for (const Candidate& c : candidates.items()) {
      const double weight = exact_exp(static_cast<double>(c.logit) - max);
      total += weight;
      weighted = std::fma(weight, static_cast<double>(c.logit), weighted);
    }
    // A token's surprise is ln(sum) - logit, the entropy their mean: both differ from the logits by the same ln(sum).
    const double mean = weighted / total;
    const auto nearer = [mean](const Candidate& a, const Candidate& b) {
      const double x = std::abs(static_cast<double>(a.logit) - mean), y = std::abs(static_cast<double>(b.logit) - mean);
      return x < y || (x == y && Candidates::before(a, b));
    };
    const double wanted = static_cast<double>(p) * total;
    double mass = 0;
    std::size_t kept = 0;
    for (std::size_t front = 128; kept < candidates.size(); front *= 8) {
      for (const Candidate& c : candidates.arrange_by(kept, front, nearer).subspan(kept)) {
        mass += exact_exp(static_cast<double>(c.logit) - max);
        ++kept;
        if (mass > wanted && kept >= static_cast<std::size_t>(min_keep)) return candidates.keep_first(kept);
      }
    }
  }
};

/// Keeps the logits within n standard deviations, taken over all candidates, of the largest (top-n-sigma, Tang et al., 2024).
/// n = 0 keeps all.
struct TopNSigma {
  static constexpr std::string_view name = "top_n_sigma";
  float n = 1.0f;

  [[nodiscard]] Expected<void> check() const {
    return detail::check_parameter(n >= 0 && n < 1e6f, name, "n is 0 or more, and below 1e6", static_cast<double>(n));
  }

  void apply(Candidates& candidates, SamplerState&) const noexcept {
    if (n <= 0.0f) return;
    const auto count = static_cast<double>(candidates.size());
    double sum = 0, squares = 0;
    for (const Candidate& c : candidates.items()) sum += static_cast<double>(c.logit);
    const double mean = sum / count;
    for (const Candidate& c : candidates.items()) {
      const double distance = static_cast<double>(c.logit) - mean;
      squares = std::fma(distance, distance, squares);
    }
    candidates.keep_from(
        std::fma(-static_cast<double>(n), std::sqrt(squares / count), static_cast<double>(candidates.best().logit)));
  }
};

/// Cuts the tail where the probabilities, largest first, stop bending: before the summed second differences, by their size and
/// normalised, pass z (tail-free sampling, Phénix and Egan, 2019), and not before min_keep of them. z >= 1 keeps all.
struct TailFree {
  static constexpr std::string_view name = "tail_free";
  float z = 0.95f;
  std::int32_t min_keep = 1;

  [[nodiscard]] Expected<void> check() const {
    NIHAO_CHECK(detail::check_parameter(z >= 0 && z <= 1, name, "z is between 0 and 1", static_cast<double>(z)));
    return detail::check_parameter(min_keep >= 0, name, "min_keep is 0 or more", static_cast<double>(min_keep));
  }

  void apply(Candidates& candidates, SamplerState&) const noexcept {
    if (z >= 1.0f || candidates.size() <= 2) return;
    const auto items = candidates.descending(candidates.size());
    const auto max = static_cast<double>(items.front().logit);
    const auto weight = [&](std::size_t i) { return exact_exp(static_cast<double>(items[i].logit) - max); };
    const std::size_t bends = items.size() - 2;
    double total = weight(0) + weight(1), bent = 0;
    each_bend(weight, bends, [&](std::size_t i, double bend) { return total += weight(i + 2), bent += bend, true; });
    const bool straight = !(bent > 1e-6 * total);  // then each bend counts the same
    double sum = 0;
    std::size_t kept = items.size();
    each_bend(weight, bends, [&](std::size_t i, double bend) {
      sum += straight ? 1.0 / static_cast<double>(bends) : bend / bent;
      if (!(sum > static_cast<double>(z)) || i < static_cast<std::size_t>(min_keep)) return true;
      kept = i;
      return false;
    });
    candidates.keep_first(kept);
  }

 private:
  // f(i, |w[i] - 2 w[i + 1] + w[i + 2]|) for i below `bends`, while it says true.
  template <class Weight, class F>
  static void each_bend(Weight weight, std::size_t bends, F f) noexcept {
    double first = weight(0), second = weight(1);
    for (std::size_t i = 0; i < bends; ++i) {
      const double third = weight(i + 2);
      if (!f(i, std::abs((third - second) - (second - first)))) return;
      first = second, second = third;
    }
  }
};

/// Excludes top choices (XTC, Weidmann, 2024): with this probability, all candidates whose own is at least `threshold` go, but
/// for the least likely of them; unless fewer than min_keep would stay. Takes a number of the step's stream. probability 0, or a
/// threshold above 0.5, keeps all.
struct Xtc {
  static constexpr std::string_view name = "xtc";
  float probability = 0.5f;
  float threshold = 0.1f;
  std::int32_t min_keep = 1;

  [[nodiscard]] Expected<void> check() const {
    NIHAO_CHECK(detail::check_parameter(probability >= 0 && probability <= 1, name, "probability is between 0 and 1",
                                        static_cast<double>(probability)));
    NIHAO_CHECK(detail::check_parameter(threshold >= 0 && threshold <= 1, name, "threshold is between 0 and 1",
                                        static_cast<double>(threshold)));
    return detail::check_parameter(min_keep >= 0, name, "min_keep is 0 or more", static_cast<double>(min_keep));
  }

  void apply(Candidates& candidates, SamplerState& state) const noexcept {
    if (probability <= 0.0f || threshold > 0.5f || candidates.size() < 2) return;
    if (state.random().uniform() > static_cast<double>(probability)) return;
    std::size_t top = 0;
    for (const TokenProbability& t : state.normalise(candidates)) top += t.p >= threshold;
    if (top < 2 || candidates.size() - (top - 1) < static_cast<std::size_t>(min_keep)) return;
    candidates.descending(top);
    candidates.drop_first(top - 1);
  }
};

}  // namespace nihao
