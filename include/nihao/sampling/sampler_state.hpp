// What the stages of one sequence's sampler share.
#pragma once

#include "../base/error.hpp"
#include "../base/str.hpp"
#include "candidates.hpp"
#include "exact_math.hpp"
#include "random.hpp"

#include <bit>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace nihao {

/// Which of the tokens so far a stage looks at.
enum class HistoryPart : std::uint8_t {
  both,    ///< the prompt and what was made since
  prompt,  ///< the prompt
  output,  ///< what was made since
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
        touched_(groups_.size(), 0),
        touched_groups_(groups_.size()),
        random_(seed) {}

  [[nodiscard]] std::size_t vocabulary() const noexcept { return candidates_.size(); }

  /// The tokens so far, oldest first.
  [[nodiscard]] std::span<const TokenId> history(HistoryPart part = HistoryPart::both) const noexcept {
    return part == HistoryPart::both     ? history_
           : part == HistoryPart::prompt ? history_.first(prompt_tokens_)
                                         : history_.subspan(prompt_tokens_);
  }
  /// The last `last_n` of a part; -1: all of it.
  [[nodiscard]] std::span<const TokenId> window(std::int32_t last_n, HistoryPart part = HistoryPart::both) const noexcept {
    const auto tokens = history(part);
    return last_n < 0 ? tokens : tokens.last(std::min(tokens.size(), static_cast<std::size_t>(last_n)));
  }
  /// Whether an id is one of the vocabulary: a history may also hold others, such as an image's positions.
  [[nodiscard]] bool knows(TokenId id) const noexcept { return id >= 0 && static_cast<std::size_t>(id) < vocabulary(); }
  /// One count per token of the vocabulary, for a stage to use; all zero whenever a stage begins and when it ends.
  [[nodiscard]] std::span<std::uint32_t> counts() noexcept { return counts_; }
  [[nodiscard]] std::uint32_t& count(TokenId id) noexcept { return counts_[static_cast<std::size_t>(id)]; }
  /// Room for `count` numbers, of no stated value. The only thing that allocates after construction, and only while it grows.
  [[nodiscard]] std::span<std::uint32_t> scratch(std::size_t count) {
    if (scratch_.size() < count) scratch_.resize(std::max(count, 2 * scratch_.size()));
    return std::span(scratch_).first(count);
  }
  /// This step's random stream.
  [[nodiscard]] Random& random() noexcept { return random_; }
  /// How many tokens were chosen so far.
  [[nodiscard]] std::uint64_t step() const noexcept { return step_; }
  void seek(std::uint64_t step) noexcept { step_ = step; }

  /// Starts a step of `history`, the first `prompt_tokens` of which are the prompt (all, if it has fewer).
  void begin(std::span<const TokenId> history, std::size_t prompt_tokens) noexcept {
    history_ = history;
    prompt_tokens_ = std::min(prompt_tokens, history.size());
    random_.at(step_);
  }

  /// Before candidates(): this token's logit may be changed by a stage before the first that keeps few.
  void touch(TokenId id) noexcept {
    if (!knows(id)) return;
    const std::size_t group = static_cast<std::size_t>(id) / group_size;
    if (touched_[group]) return;
    touched_[group] = 1;
    touched_groups_[touched_count_++] = static_cast<std::uint32_t>(group);
  }

  /// Logits [vocabulary] become candidates; -inf (a masked token) does not. `enough`, if not 0: no more than so many of the
  /// largest are going to be kept, of logits that differ from these in touched tokens alone, so that most others need not become
  /// candidates. Errors: mismatch (another size), numeric (NaN, +inf, or all -inf).
  [[nodiscard]] Expected<Candidates> candidates(std::span<const float> logits, std::size_t enough) {
    const std::size_t touched = std::exchange(touched_count_, 0);
    for (std::size_t i = 0; i < touched; ++i) touched_[touched_groups_[i]] = 0;
    if (logits.size() != vocabulary()) {
      return Error{ErrorCode::mismatch, concat(logits.size(), " logits for a vocabulary of ", vocabulary()),
                   place("input logits")};
    }
    Candidates candidates;
    if (enough > 0 && enough <= groups_.size() / 2 && touched <= groups_.size() / 2 && find_groups(logits)) {
      for (std::size_t i = 0; i < touched; ++i) groups_[touched_groups_[i]].logit = infinity;  // taken, whatever they hold
      candidates.items_ = std::span(candidates_).first(take_groups(logits, std::min(enough + touched, groups_.size())));
      return candidates;
    }
    std::size_t count = 0;
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
    return weigh(candidates, [max](const Candidate& c) { return exact_exp(static_cast<double>(c.logit) - max); });
  }
  /// The candidates' shares by another weight, `weight(candidate)`: not negative, and above 0 for one of them.
  template <class Weight>
  std::span<const TokenProbability> weigh(const Candidates& candidates, Weight weight) noexcept {
    double total = 0;
    chosen_from_ = candidates.size();
    for (std::size_t i = 0; i < chosen_from_; ++i) {
      const auto w = static_cast<float>(weight(candidates.items_[i]));
      total += static_cast<double>(w);
      probabilities_[i] = {candidates.items_[i].id, w};
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
  std::vector<std::uint8_t> touched_;            // [groups]: whether touch() named one of its tokens
  std::vector<std::uint32_t> touched_groups_;    // [groups]: the first touched_count_ are those groups
  std::size_t touched_count_ = 0;
  std::vector<std::uint32_t> scratch_;
  std::span<const TokenId> history_;
  std::size_t prompt_tokens_ = 0;
  Random random_;
  std::uint64_t step_ = 0;
  std::size_t chosen_from_ = 0;
};

}  // namespace nihao
