// Strategies above a sampler: they look at several continuations of a prompt. The model is a callback, so that a table, one
// context or a whole engine can serve: `logits(ids)` gives Expected<std::span<const float>> [vocabulary], the logits after `ids`,
// valid until the next call. A callback over a context keeps what two sequences have in common in its cache.
#pragma once

#include "logprobs.hpp"
#include "sampler.hpp"

#include <utility>
#include <vector>

namespace nihao {

/// A continuation, and how likely the model finds it.
struct Continuation {
  std::vector<TokenId> ids = {};  ///< without the prompt; an end token is its last
  double logprob = 0;             ///< the sum of the tokens' logprobs, raw
  bool ended = false;             ///< in an end token, not in `max_tokens`

  /// A mean per token; 0 if there is none.
  [[nodiscard]] double mean_logprob() const noexcept { return ids.empty() ? 0 : logprob / static_cast<double>(ids.size()); }
};

struct BeamSearchOptions {
  std::size_t width = 4;  ///< how many continuations are kept from one token to the next, ended ones counted
  std::size_t max_tokens = 64;
  std::vector<TokenId> ends = {};  ///< tokens that end a continuation
  float length_penalty = 1.0f;     ///< the score is logprob / length ^ this: 0 the sum, 1 the mean
};

namespace detail {
[[nodiscard]] inline bool is_end(const std::vector<TokenId>& ends, TokenId id) noexcept {
  return std::find(ends.begin(), ends.end(), id) != ends.end();
}
}  // namespace detail

/// Beam search (Graves, Sequence Transduction with Recurrent Neural Networks, 2012): the `width` continuations with the best
/// scores after each token; returned best first. Ties go to the earlier beam, then to the likelier token. Errors:
/// invalid_argument (width 0), and what `logits` says.
template <class Logits>
[[nodiscard]] Expected<std::vector<Continuation>> beam_search(Logits&& logits, std::span<const TokenId> prompt,
                                                              const BeamSearchOptions& options) {
  if (options.width == 0) return Error{ErrorCode::invalid_argument, "width is 1 or more", "beam search"};
  const auto score = [&](const Continuation& c) {
    if (c.ids.empty()) return 0.0;
    return c.logprob / exact_exp(static_cast<double>(options.length_penalty) * exact_log(static_cast<double>(c.ids.size())));
  };
  std::vector<Continuation> beams(1), next;
  std::vector<TokenId> sequence;
  for (std::size_t made = 0; made < options.max_tokens; ++made) {
    if (std::all_of(beams.begin(), beams.end(), [](const Continuation& c) { return c.ended; })) break;
    next.clear();
    next.reserve(beams.size() * options.width);
    for (const Continuation& beam : beams) {
      if (beam.ended) {
        next.push_back(beam);
        continue;
      }
      sequence.assign(prompt.begin(), prompt.end());
      sequence.insert(sequence.end(), beam.ids.begin(), beam.ids.end());
      NIHAO_TRY(const std::span<const float> row, logits(std::span<const TokenId>(sequence)));
      NIHAO_TRY(const Logprobs likeliest, raw_logprobs(row, 0, options.width));  // no other can be among the next `width`
      for (const TokenLogprob& t : likeliest.top) {
        Continuation& longer = next.emplace_back(beam);
        longer.ids.push_back(t.id);
        longer.logprob += t.logprob;
        longer.ended = detail::is_end(options.ends, t.id);
      }
    }
    std::vector<std::pair<double, std::size_t>> order(next.size());  // less score, place
    for (std::size_t i = 0; i < next.size(); ++i) order[i] = {-score(next[i]), i};
    std::sort(order.begin(), order.end());
    order.resize(std::min(order.size(), options.width));
    beams.clear();
    beams.reserve(order.size());
    for (const auto& place : order) beams.push_back(std::move(next[place.second]));
  }
  return beams;
}

/// Best of n: `samples` continuations drawn by the chain `make_chain(seed)` gives (Expected<SamplerChain> or of a Chain), for
/// seeds `seed`, `seed` + 1, ...; the one with the largest mean raw logprob, the earlier of equal ones. Errors: invalid_argument
/// (samples 0), and what the chains and `logits` say.
template <class Logits, class MakeChain>
[[nodiscard]] Expected<Continuation> best_of(Logits&& logits, MakeChain&& make_chain, std::span<const TokenId> prompt,
                                             std::size_t samples, std::size_t max_tokens, const std::vector<TokenId>& ends,
                                             std::uint64_t seed = 0) {
  if (samples == 0) return Error{ErrorCode::invalid_argument, "samples is 1 or more", "best of n"};
  Continuation best;
  std::vector<TokenId> sequence;
  for (std::size_t i = 0; i < samples; ++i) {
    NIHAO_TRY(auto chain, make_chain(seed + i));
    Continuation drawn;
    sequence.assign(prompt.begin(), prompt.end());
    while (drawn.ids.size() < max_tokens && !drawn.ended) {
      NIHAO_TRY(const std::span<const float> row, logits(std::span<const TokenId>(sequence)));
      NIHAO_TRY(const TokenId id, chain.sample(row, sequence, prompt.size()));
      NIHAO_TRY(const Logprobs of, raw_logprobs(row, id, 0));
      drawn.ids.push_back(id);
      drawn.logprob += of.chosen.logprob;
      drawn.ended = detail::is_end(ends, id);
      sequence.push_back(id);
    }
    if (i == 0 || drawn.mean_logprob() > best.mean_logprob()) best = std::move(drawn);
  }
  return best;
}

}  // namespace nihao
