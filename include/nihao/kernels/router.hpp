// Which experts a token goes to, and with what weights: small pure functions of the router's logits.
//
// A router is a policy: `route(shape, logits, bias, chosen)` writes `shape.chosen` choices in rising order of their experts, so
// that what is summed over experts is summed in one order. Ties go to the lower expert.
#pragma once

#include "../base/config.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>

namespace nihao {

inline constexpr std::size_t most_experts = 1024;  ///< of one layer

/// One expert of a token.
struct Choice {
  std::int32_t expert;
  float weight;
};

/// What a model's file says of its routers.
struct RouterShape {
  std::uint32_t experts = 0;      ///< up to most_experts
  std::uint32_t chosen = 0;       ///< of each token, 1 to experts
  std::uint32_t groups = 1;       ///< experts lie in so many groups of equal size (DeepSeek) ...
  std::uint32_t groups_kept = 1;  ///< ... of which so many may be chosen from
  bool normalize = false;         ///< the chosen weights are divided by their sum
  float scale = 1;                ///< what weights are multiplied by in the end
  float jitter = 0;               ///< SparseMixer's
  bool sigmoid = false;           ///< of families that have both: scores are sigmoids, not a softmax
};

namespace detail {

using Scores = std::array<double, most_experts>;

/// softmax(logits) over the experts; an expert at -infinity gets 0.
inline void softmax(std::span<const float> logits, Scores& scores) noexcept {
  double most = -INFINITY, total = 0;
  for (const float l : logits) most = std::max(most, static_cast<double>(l));
  for (std::size_t e = 0; e < logits.size(); ++e) total += scores[e] = std::exp(static_cast<double>(logits[e]) - most);
  for (std::size_t e = 0; e < logits.size(); ++e) scores[e] /= total;
}

/// The experts with the largest scores, in rising order. What is -infinity comes last, but comes.
inline void choose(std::span<const double> scores, std::span<Choice> chosen) noexcept {
  std::array<bool, most_experts> taken{};
  for (Choice& c : chosen) {
    std::size_t best = scores.size();
    for (std::size_t e = 0; e < scores.size(); ++e)
      if (!taken[e] && (best == scores.size() || scores[e] > scores[best])) best = e;
    taken[best] = true;
    c.expert = static_cast<std::int32_t>(best);
  }
  std::sort(chosen.begin(), chosen.end(), [](const Choice& a, const Choice& b) { return a.expert < b.expert; });
}

/// Experts outside the best groups become -infinity. A group is worth the sum of its `best` largest scores.
inline void keep_groups(const RouterShape& shape, std::size_t best, std::span<double> scores) noexcept {
  if (shape.groups <= 1 || shape.groups_kept >= shape.groups) return;
  const std::size_t each = scores.size() / shape.groups;
  Scores worth, sorted;
  for (std::size_t g = 0; g < shape.groups; ++g) {
    const auto group = scores.subspan(g * each, each);
    std::copy(group.begin(), group.end(), sorted.begin());
    const std::size_t n = std::min(best, each);
    std::partial_sort(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(n),
                      sorted.begin() + static_cast<std::ptrdiff_t>(each), [](double a, double b) { return a > b; });
    worth[g] = std::accumulate(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(n), 0.0);
  }
  std::array<Choice, most_experts> kept;
  choose(std::span<const double>(worth).first(shape.groups), std::span(kept).first(shape.groups_kept));
  for (std::size_t g = 0, k = 0; g < shape.groups; ++g) {
    if (k < shape.groups_kept && static_cast<std::size_t>(kept[k].expert) == g) ++k;
    else std::fill_n(scores.begin() + static_cast<std::ptrdiff_t>(g * each), each, -INFINITY);
  }
}

/// Divides by their sum, if the model does, and scales.
inline void finish(const RouterShape& shape, std::span<const double> scores, std::span<Choice> chosen) noexcept {
  double total = 0;
  for (const Choice& c : chosen) total += scores[static_cast<std::size_t>(c.expert)];
  const double factor = static_cast<double>(shape.scale) / (shape.normalize ? total + 1e-20 : 1.0);
  for (Choice& c : chosen) c.weight = static_cast<float>(scores[static_cast<std::size_t>(c.expert)] * factor);
}

}  // namespace detail

/// Softmax over all experts, then the largest; a group is worth its best expert. Mixtral (Jiang et al. 2024, arXiv:2401.04088;
/// normalised), Qwen3-MoE, DBRX, DeepSeek-V2 (arXiv:2405.04434; groups, scaled).
struct SoftmaxTopK {
  static constexpr bool weighs_input = false;
  static void route(const RouterShape& shape, std::span<const float> logits, std::span<const float>,
                    std::span<Choice> chosen) noexcept {
    detail::Scores scores, kept;
    detail::softmax(logits, scores);
    kept = scores;
    detail::keep_groups(shape, 1, std::span(kept).first(logits.size()));
    detail::choose(std::span<const double>(kept).first(logits.size()), chosen);
    detail::finish(shape, scores, chosen);
  }
};

/// The largest logits, then softmax over those: gpt-oss.
struct TopKSoftmax {
  static constexpr bool weighs_input = false;
  static void route(const RouterShape& shape, std::span<const float> logits, std::span<const float>,
                    std::span<Choice> chosen) noexcept {
    detail::Scores scores;
    for (std::size_t e = 0; e < logits.size(); ++e) scores[e] = static_cast<double>(logits[e]);
    detail::choose(std::span<const double>(scores).first(logits.size()), chosen);
    double most = -INFINITY, total = 0;
    for (const Choice& c : chosen) most = std::max(most, scores[static_cast<std::size_t>(c.expert)]);
    for (const Choice& c : chosen) total += std::exp(scores[static_cast<std::size_t>(c.expert)] - most);
    for (Choice& c : chosen)
      c.weight = static_cast<float>(std::exp(scores[static_cast<std::size_t>(c.expert)] - most) / total *
                                    static_cast<double>(shape.scale));
  }
};

/// A sigmoid for each expert. The choice is by sigmoid + bias, and a group is worth the sum of its two best; the weights are
/// the sigmoids alone. DeepSeek-V3: arXiv:2412.19437, section 2.1.2.
struct SigmoidGroups {
  static constexpr bool weighs_input = false;
  static void route(const RouterShape& shape, std::span<const float> logits, std::span<const float> bias,
                    std::span<Choice> chosen) noexcept {
    detail::Scores scores, biased;
    for (std::size_t e = 0; e < logits.size(); ++e) {
      scores[e] = 1.0 / (1.0 + std::exp(-static_cast<double>(logits[e])));
      biased[e] = scores[e] + (bias.empty() ? 0.0 : static_cast<double>(bias[e]));
    }
    detail::keep_groups(shape, 2, std::span(biased).first(logits.size()));
    detail::choose(std::span<const double>(biased).first(logits.size()), chosen);
    detail::finish(shape, scores, chosen);
  }
};

/// The largest logits; what an expert is given is multiplied by the logit's sigmoid: Llama 4.
struct SigmoidInput {
  static constexpr bool weighs_input = true;
  static void route(const RouterShape& shape, std::span<const float> logits, std::span<const float>,
                    std::span<Choice> chosen) noexcept {
    detail::Scores scores;
    for (std::size_t e = 0; e < logits.size(); ++e) scores[e] = static_cast<double>(logits[e]);
    detail::choose(std::span<const double>(scores).first(logits.size()), chosen);
    for (Choice& c : chosen)
      c.weight =
          static_cast<float>(static_cast<double>(shape.scale) / (1.0 + std::exp(-scores[static_cast<std::size_t>(c.expert)])));
  }
};

/// Two experts, one after the other: the best, with its share of a softmax over those logits that come near it; then the best of
/// the others, likewise, the first being out. "Near" is within 2 * jitter of the larger magnitude. PhiMoE (arXiv:2404.14219),
/// from SparseMixer (Liu, Gao and Chen 2023, arXiv:2310.00811), as it is when nothing is drawn at random.
struct SparseMixer {
  static constexpr bool weighs_input = false;
  static void route(const RouterShape& shape, std::span<const float> logits, std::span<const float>,
                    std::span<Choice> chosen) noexcept {
    std::array<bool, most_experts> out{};
    for (Choice& c : chosen) {
      std::size_t best = logits.size();
      for (std::size_t e = 0; e < logits.size(); ++e)
        if (!out[e] && (best == logits.size() || logits[e] > logits[best])) best = e;
      const double most = static_cast<double>(logits[best]);
      double total = 0;
      for (std::size_t e = 0; e < logits.size(); ++e) {
        const double l = static_cast<double>(logits[e]);
        if (!out[e] && !((most - l) / std::max(std::fabs(l), most) > 2.0 * static_cast<double>(shape.jitter)))
          total += std::exp(l - most);
      }
      c = {static_cast<std::int32_t>(best), static_cast<float>(static_cast<double>(shape.scale) / total)};
      out[best] = true;
    }
    std::sort(chosen.begin(), chosen.end(), [](const Choice& a, const Choice& b) { return a.expert < b.expert; });
  }
};

}  // namespace nihao
