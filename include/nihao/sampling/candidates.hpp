// What a sampler works on: the tokens still in the running, and the buffers of one sequence's sampler.
#pragma once

#include "../base/error.hpp"
#include "../base/str.hpp"
#include "../text/token.hpp"
#include "exact_math.hpp"
#include "random.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace nihao {

/// A token that may still be chosen.
struct Candidate {
  TokenId id;
  float logit;
};

/// A token and its probability among the candidates left.
struct TokenProbability {
  TokenId id;
  float p;
};

/// The tokens still in the running. Between two stages it holds at least one, and every logit is finite: tokens at -inf have
/// been dropped. Order is the vocabulary's until a stage asks for descending(); ties go to the lower id, so the order, and with
/// it every sum and every draw, depends on the logits alone.
class Candidates {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return items_.size(); }
  [[nodiscard]] std::span<const Candidate> items() const noexcept { return items_; }

  /// The candidates, to change their logits. -inf drops one. The known order is forgotten.
  [[nodiscard]] std::span<Candidate> edit() noexcept {
    sorted_ = 0;
    return items_;
  }
  /// The same for a change that cannot reverse an order, such as scaling.
  [[nodiscard]] std::span<Candidate> edit_in_order() noexcept { return items_; }

  /// The candidate with the largest logit.
  [[nodiscard]] const Candidate& best() const noexcept {
    return sorted_ > 0 ? items_.front() : *std::min_element(items_.begin(), items_.end(), before);
  }

  /// The `count` largest (all, if there are fewer), largest first: they become the first of items(). Never sorts more than it
  /// is asked for: a heap of `count` for few, a partition and a sort of the front for many.
  std::span<const Candidate> descending(std::size_t count) noexcept {
    count = std::min(count, items_.size());
    if (count > sorted_) {
      const auto first = items_.begin() + static_cast<std::ptrdiff_t>(sorted_);
      const auto last = items_.begin() + static_cast<std::ptrdiff_t>(count);
      if (count - sorted_ <= heap_limit) {
        std::partial_sort(first, last, items_.end(), before);
      } else {
        if (last != items_.end()) std::nth_element(first, last, items_.end(), before);
        std::sort(first, last, before);
      }
      sorted_ = count;
    }
    return items_.first(count);
  }

  /// Keeps the first `count` of items() (at least one).
  void keep_first(std::size_t count) noexcept {
    items_ = items_.first(std::clamp<std::size_t>(count, 1, items_.size()));
    sorted_ = std::min(sorted_, items_.size());
  }

  /// Keeps those whose logit is at least `limit`, in their order.
  void keep_from(double limit) noexcept {
    std::size_t kept = 0, kept_sorted = 0;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (!(static_cast<double>(items_[i].logit) >= limit)) continue;
      kept_sorted += i < sorted_;
      items_[kept++] = items_[i];
    }
    items_ = items_.first(kept);
    sorted_ = kept_sorted;
  }

 private:
  friend class SamplerState;
  static constexpr std::size_t heap_limit = 256;
  static bool before(const Candidate& a, const Candidate& b) noexcept {
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
  }

  std::span<Candidate> items_;
  std::size_t sorted_ = 0;  // how many of the first are in final descending order
};

/// What the stages of one sequence's sampler share: the buffers, sized once by the vocabulary, the history and the random
/// numbers. Nothing is allocated after construction.
class SamplerState {
 public:
  SamplerState(std::size_t vocabulary, std::uint64_t seed)
      : candidates_(vocabulary),
        probabilities_(vocabulary),
        counts_(vocabulary, 0),
        groups_((vocabulary + group_size - 1) / group_size),
        random_(seed) {}

  [[nodiscard]] std::size_t vocabulary() const noexcept { return candidates_.size(); }

  /// The tokens so far, oldest first.
  [[nodiscard]] std::span<const TokenId> history() const noexcept { return history_; }
  /// One count per token of the vocabulary, for a stage to use; all zero whenever a stage begins and when it ends.
  [[nodiscard]] std::span<std::uint32_t> counts() noexcept { return counts_; }
  /// This step's random stream.
  [[nodiscard]] Random& random() noexcept { return random_; }
  /// How many tokens were chosen so far.
  [[nodiscard]] std::uint64_t step() const noexcept { return step_; }
  void seek(std::uint64_t step) noexcept { step_ = step; }

  /// Starts a step: logits [vocabulary] become candidates; -inf (a masked token) does not. `enough`, if not 0: no more than so
  /// many of the largest are going to be kept, so that most others need not become candidates.
  /// Errors: mismatch (another size), numeric (NaN, +inf, or all -inf).
  [[nodiscard]] Expected<Candidates> begin(std::span<const float> logits, std::span<const TokenId> history,
                                           std::size_t enough = 0) {
    if (logits.size() != vocabulary()) {
      return Error{ErrorCode::mismatch, concat(logits.size(), " logits for a vocabulary of ", vocabulary()),
                   place("input logits")};
    }
    history_ = history;
    random_.at(step_);
    Candidates candidates;
    std::size_t count = 0;
    if (enough > 0 && enough <= groups_.size() / 2 && find_groups(logits)) {
      count = take_groups(logits, enough);
      candidates.items_ = std::span(candidates_).first(count);
      return candidates;
    }
    for (std::size_t i = 0; i < logits.size(); ++i) {
      candidates_[count] = {static_cast<TokenId>(i), logits[i]};
      count += !(logits[i] == -infinity);  // NaN stays, to be found below
    }
    candidates.items_ = std::span(candidates_).first(count);
    NIHAO_CHECK(settle(candidates, "input logits"));
    return candidates;
  }

  /// Restores what Candidates promises after a stage: drops -inf; an Error{numeric} that names the stage if a logit is NaN or
  /// +inf, or none is left.
  [[nodiscard]] Expected<void> settle(Candidates& candidates, std::string_view stage) {
    bool odd = candidates.size() == 0;
    for (const Candidate& c : candidates.items_) odd |= !(c.logit - c.logit == 0.0f);
    if (!odd) return {};
    for (const Candidate& c : candidates.items_) {
      if (c.logit != c.logit || c.logit == infinity) {
        return Error{ErrorCode::numeric, concat("the logit of token ", c.id, c.logit == infinity ? " is +inf" : " is NaN"),
                     place(stage)};
      }
    }
    candidates.keep_from(static_cast<double>(std::numeric_limits<float>::lowest()));
    if (candidates.size() == 0) return Error{ErrorCode::numeric, "no token has a finite logit", place(stage)};
    return {};
  }

  /// The softmax over the candidates, in their order. Valid until the next step.
  std::span<const TokenProbability> normalise(const Candidates& candidates) noexcept {
    const auto max = static_cast<double>(candidates.best().logit);
    double total = 0;
    chosen_from_ = candidates.size();
    for (std::size_t i = 0; i < chosen_from_; ++i) {
      const Candidate& c = candidates.items_[i];
      const auto weight = static_cast<float>(exact_exp(static_cast<double>(c.logit) - max));
      total += static_cast<double>(weight);
      probabilities_[i] = {c.id, weight};
    }
    for (TokenProbability& t : std::span(probabilities_).first(chosen_from_))
      t.p = static_cast<float>(static_cast<double>(t.p) / total);
    return probabilities();
  }
  /// What normalise gave last.
  [[nodiscard]] std::span<const TokenProbability> probabilities() const noexcept {
    return std::span(probabilities_).first(chosen_from_);
  }

  /// Ends a step.
  void finish() noexcept { ++step_; }

 private:
  static constexpr float infinity = std::numeric_limits<float>::infinity();
  static constexpr std::uint32_t exponent = 0x7f800000;  // all of its bits are set in what is not finite
  static constexpr std::size_t group_size = 64, lanes = 16;

  // The largest logit of every group of 64 tokens. False if any logit is not finite.
  bool find_groups(std::span<const float> logits) noexcept {
    const auto not_finite = [](float x) { return (std::bit_cast<std::uint32_t>(x) & exponent) == exponent ? 1u : 0u; };
    std::uint32_t odd = 0;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const auto group = logits.subspan(g * group_size, std::min(group_size, logits.size() - g * group_size));
      float most[lanes];  // side by side, which compilers make vectors of
      for (float& m : most) m = group[0];
      std::size_t i = 0;
      for (; i + lanes <= group.size(); i += lanes)
        for (std::size_t j = 0; j < lanes; ++j) {
          const float x = group[i + j];
          most[j] = x > most[j] ? x : most[j];
          odd |= not_finite(x);
        }
      for (; i < group.size(); ++i) {
        most[0] = std::max(most[0], group[i]);
        odd |= not_finite(group[i]);
      }
      groups_[g] = {static_cast<TokenId>(g), *std::max_element(most, most + lanes)};
    }
    return odd == 0;
  }
  // The tokens of the `count` groups with the largest maxima become candidates, in the vocabulary's order: no token elsewhere is
  // among the `count` largest, for each of these maxima comes before it (of equal ones the lower group's has the lower id).
  std::size_t take_groups(std::span<const float> logits, std::size_t count) noexcept {
    Candidates order;
    order.items_ = groups_;
    order.descending(count);
    const auto chosen = std::span(groups_).first(count);
    std::sort(chosen.begin(), chosen.end(), [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
    std::size_t taken = 0;
    for (const Candidate& group : chosen) {
      const std::size_t first = static_cast<std::size_t>(group.id) * group_size;
      for (std::size_t i = first; i < std::min(first + group_size, logits.size()); ++i)
        candidates_[taken++] = {static_cast<TokenId>(i), logits[i]};
    }
    return taken;
  }

  [[nodiscard]] std::string place(std::string_view stage) const { return concat("sampling token ", step_, ", ", stage); }

  std::vector<Candidate> candidates_;            // [vocabulary]
  std::vector<TokenProbability> probabilities_;  // [vocabulary]
  std::vector<std::uint32_t> counts_;            // [vocabulary]
  std::vector<Candidate> groups_;                // [vocabulary / group_size]: a group's number and its largest logit
  std::span<const TokenId> history_;
  Random random_;
  std::uint64_t step_ = 0;
  std::size_t chosen_from_ = 0;
};

}  // namespace nihao
