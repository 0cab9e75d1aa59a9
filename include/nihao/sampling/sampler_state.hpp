// What the stages of one sequence's sampler share.
#pragma once

#include "../base/error.hpp"
#include "../base/str.hpp"
#include "candidates.hpp"
#include "exact_math.hpp"
#include "random.hpp"

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
        stretches_(groups_.size()),
        is_touched_(vocabulary, 0),
        touched_(groups_.size()),
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
    if (!knows(id) || touched_count_ > touched_.size()) return;
    if (touched_count_ == touched_.size()) {  // too many to be worth it
      ++touched_count_;
      return;
    }
    if (std::exchange(is_touched_[static_cast<std::size_t>(id)], std::uint8_t{1}) == 0) touched_[touched_count_++] = id;
  }

  /// Logits [vocabulary] become candidates; -inf (a masked token) does not. `enough`, if not 0: no more than so many of the
  /// largest are going to be kept, of logits that differ from these in touched tokens alone, so that most others need not become
  /// candidates. Errors: mismatch (another size), numeric (NaN, +inf, or all -inf).
  [[nodiscard]] Expected<Candidates> candidates(std::span<const float> logits, std::size_t enough) {
    Candidates candidates;
    const bool same_size = logits.size() == vocabulary();
    const bool few =
        same_size && enough > 0 && enough <= groups_.size() / 2 && touched_count_ <= touched_.size() && find_groups(logits);
    if (few) candidates.items_ = std::span(candidates_).first(take_largest(logits, enough));
    for (const TokenId id : std::span(touched_).first(std::min(touched_count_, touched_.size())))
      is_touched_[static_cast<std::size_t>(id)] = 0;
    touched_count_ = 0;
    if (few) return candidates;
    if (!same_size) {
      return Error{ErrorCode::mismatch, concat(logits.size(), " logits for a vocabulary of ", vocabulary()),
                   place("input logits")};
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
  static constexpr std::size_t group_size = 64, lanes = 16;

  // The largest logit of every group of 64 tokens, in one look at each. False if one is not finite (or they add up to infinity):
  // no sum with such a logit is finite.
  bool find_groups(std::span<const float> logits) noexcept {
    const auto larger = [](float a, float b) { return a > b ? a : b; };
    float sums[lanes] = {};  // side by side, which compilers make vectors of
    const std::size_t whole = logits.size() / group_size;
    for (std::size_t g = 0; g < whole; ++g) {
      const float* x = logits.data() + g * group_size;
      float most[lanes];
      for (std::size_t j = 0; j < lanes; ++j) {
        most[j] = larger(larger(x[j], x[j + lanes]), larger(x[j + 2 * lanes], x[j + 3 * lanes]));
        sums[j] += (x[j] + x[j + lanes]) + (x[j + 2 * lanes] + x[j + 3 * lanes]);
      }
      for (std::size_t j = 0; j < 8; ++j) most[j] = larger(most[j], most[j + 8]);
      for (std::size_t j = 0; j < 4; ++j) most[j] = larger(most[j], most[j + 4]);
      groups_[g] = larger(larger(most[0], most[1]), larger(most[2], most[3]));
    }
    const auto rest = logits.subspan(whole * group_size);
    if (!rest.empty()) groups_[whole] = *std::max_element(rest.begin(), rest.end());
    float sum = 0;
    for (const float x : sums) sum += x;
    for (const float x : rest) sum += x;
    return sum - sum == 0.0f;
  }

  // The touched tokens and those of the others that may be among the `enough` largest become candidates, in the vocabulary's
  // order.
  std::size_t take_largest(std::span<const float> logits, std::size_t enough) noexcept {
    const auto touched = std::span(touched_).first(touched_count_);
    const auto group_of = [](TokenId id) { return static_cast<std::size_t>(id) / group_size; };
    for (const TokenId id : touched) groups_[group_of(id)] = -infinity;  // what bounds the others must not be touched itself
    const float least = bound(enough);
    for (const TokenId id : touched) groups_[group_of(id)] = infinity;
    std::size_t taken = 0;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g] < least) continue;
      for (std::size_t i = g * group_size; i < std::min((g + 1) * group_size, logits.size()); ++i) {
        candidates_[taken] = {static_cast<TokenId>(i), logits[i]};
        taken += (logits[i] >= least) | is_touched_[i];
      }
    }
    return taken;
  }
  // A logit that at least `enough` tokens reach: the `enough`-th largest of maxima over stretches of groups. A few more stretches
  // than are asked for are made, so that little more is found above it.
  [[nodiscard]] float bound(std::size_t enough) noexcept {
    const std::size_t stretch = std::max<std::size_t>(1, groups_.size() / (enough + enough / 2 + 8));
    std::size_t count = 0;
    for (std::size_t g = 0; g < groups_.size(); g += stretch) {
      float most = groups_[g];
      for (std::size_t i = g + 1; i < std::min(g + stretch, groups_.size()); ++i) most = groups_[i] > most ? groups_[i] : most;
      stretches_[count++] = most;
    }
    const auto at = stretches_.begin() + static_cast<std::ptrdiff_t>(enough - 1);
    std::nth_element(stretches_.begin(), at, stretches_.begin() + static_cast<std::ptrdiff_t>(count),
                     [](float a, float b) { return a > b; });
    return *at;
  }

  [[nodiscard]] std::string place(std::string_view stage) const { return concat("sampling token ", step_, ", ", stage); }

  std::vector<Candidate> candidates_;            // [vocabulary]
  std::vector<TokenProbability> probabilities_;  // [vocabulary]
  std::vector<std::uint32_t> counts_;            // [vocabulary]
  std::vector<float> groups_, stretches_;        // [vocabulary / group_size]: the largest logits
  std::vector<std::uint8_t> is_touched_;         // [vocabulary]: whether touch() named it
  std::vector<TokenId> touched_;                 // [vocabulary / group_size]: the first touched_count_ are those
  std::size_t touched_count_ = 0;                // one more than there is room for: too many
  std::vector<std::uint32_t> scratch_;
  std::span<const TokenId> history_;
  std::size_t prompt_tokens_ = 0;
  Random random_;
  std::uint64_t step_ = 0;
  std::size_t chosen_from_ = 0;
};

}  // namespace nihao
