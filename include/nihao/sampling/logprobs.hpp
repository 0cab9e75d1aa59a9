// The logarithms of tokens' probabilities, as clients ask for them.
#pragma once

#include "sampler_state.hpp"

#include <cmath>

namespace nihao {

/// Which distribution a logprob is of.
enum class LogprobsOf : std::uint8_t {
  raw,    ///< the model's own: the softmax of all its logits, before any stage
  chain,  ///< the one that the token was drawn from: what the chain left, renormalised
};

constexpr std::string_view to_string(LogprobsOf of) noexcept { return of == LogprobsOf::raw ? "raw" : "chain"; }

/// A token and ln of its probability.
struct TokenLogprob {
  TokenId id;
  double logprob;
};

/// The chosen token's logprob, and those of the likeliest, largest first (of equal ones the lower id); fewer than were asked for
/// where fewer have a probability above 0, and none where none were asked for.
struct Logprobs {
  LogprobsOf of = LogprobsOf::raw;
  TokenLogprob chosen = {};
  std::vector<TokenLogprob> top = {};
};

namespace detail {
[[nodiscard]] inline std::vector<TokenLogprob> likeliest(std::vector<TokenLogprob> all, std::size_t top) {
  top = std::min(top, all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(top), all.end(),
                    [](const TokenLogprob& a, const TokenLogprob& b) {
                      return a.logprob > b.logprob || (a.logprob == b.logprob && a.id < b.id);
                    });
  all.resize(top);
  return all;
}
}  // namespace detail

/// Of the model's own distribution: logits [vocabulary], each finite or -inf. It looks at this row alone, so whatever else is in
/// a batch changes nothing. Errors: mismatch (`chosen` is not in the vocabulary), numeric (NaN, +inf, or all -inf).
[[nodiscard]] inline Expected<Logprobs> raw_logprobs(std::span<const float> logits, TokenId chosen, std::size_t top) {
  if (chosen < 0 || static_cast<std::size_t>(chosen) >= logits.size())
    return Error{ErrorCode::mismatch, concat("token ", chosen, " is not one of ", logits.size()), "logprobs"};
  double max = -std::numeric_limits<double>::infinity(), total = 0;
  for (const float x : logits) {
    if (x != x || x == std::numeric_limits<float>::infinity())
      return Error{ErrorCode::numeric, "a logit is NaN or +inf", "logprobs"};
    max = std::max(max, static_cast<double>(x));
  }
  if (!(max > -std::numeric_limits<double>::infinity()))
    return Error{ErrorCode::numeric, "no token has a finite logit", "logprobs"};
  for (const float x : logits) total += exact_exp(static_cast<double>(x) - max);
  const double shift = max + exact_log(total);
  Logprobs out{LogprobsOf::raw, {chosen, static_cast<double>(logits[static_cast<std::size_t>(chosen)]) - shift}, {}};
  if (top == 0) return out;
  std::vector<TokenLogprob> all;
  all.reserve(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (logits[i] > -std::numeric_limits<float>::infinity())
      all.push_back({static_cast<TokenId>(i), static_cast<double>(logits[i]) - shift});
  out.top = detail::likeliest(std::move(all), top);
  return out;
}

/// Of the distribution that `chosen` was drawn from, which is the chain's probabilities() after sample(). Errors: mismatch
/// (`chosen` is not among them).
[[nodiscard]] inline Expected<Logprobs> chain_logprobs(std::span<const TokenProbability> probabilities, TokenId chosen,
                                                       std::size_t top) {
  Logprobs out{LogprobsOf::chain, {chosen, 1}, {}};
  std::vector<TokenLogprob> all;
  all.reserve(probabilities.size());
  for (const TokenProbability& t : probabilities) {
    if (!(t.p > 0.0f)) continue;
    all.push_back({t.id, exact_log(static_cast<double>(t.p))});
    if (t.id == chosen) out.chosen.logprob = all.back().logprob;
  }
  if (out.chosen.logprob > 0)
    return Error{ErrorCode::mismatch, concat("token ", chosen, " was not left by the chain"), "logprobs"};
  out.top = detail::likeliest(std::move(all), top);
  return out;
}

}  // namespace nihao
