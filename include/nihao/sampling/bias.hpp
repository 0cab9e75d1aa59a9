// Stages that change the logits of given tokens.
#pragma once

#include "policy.hpp"

#include <vector>

namespace nihao {

/// What is added to a token's logit.
struct TokenBias {
  TokenId id;
  float bias;
};

/// Adds to the logits of given tokens; -inf bans one. An id that the vocabulary does not have changes nothing; of one given twice
/// the last counts.
struct LogitBias {
  static constexpr std::string_view name = "logit_bias";
  std::vector<TokenBias> biases = {};

  [[nodiscard]] Expected<void> check() const {
    for (const TokenBias& b : biases) {
      NIHAO_CHECK(detail::check_parameter(b.id >= 0, name, "an id is 0 or more", static_cast<double>(b.id)));
      NIHAO_CHECK(detail::check_parameter(b.bias < std::numeric_limits<float>::infinity(), name, "a bias is a number, or -inf",
                                          static_cast<double>(b.bias)));
    }
    return {};
  }

  void touch(SamplerState& state) const noexcept {
    for (const TokenBias& b : biases) state.touch(b.id);
  }
  void apply(Candidates& candidates, SamplerState& state) const noexcept {
    if (biases.empty()) return;
    std::uint32_t number = 0;  // one above the index in biases
    for (const TokenBias& b : biases) {
      ++number;
      if (state.knows(b.id)) state.count(b.id) = number;
    }
    for (Candidate& c : candidates.edit())
      if (const std::uint32_t n = state.count(c.id); n > 0) c.logit += biases[n - 1].bias;
    for (const TokenBias& b : biases)
      if (state.knows(b.id)) state.count(b.id) = 0;
  }
};

/// Masks the tokens that end an answer until the output has n tokens. The output is what follows the prompt in the history, so
/// the chain has to be told how long the prompt is.
struct MinTokens {
  static constexpr std::string_view name = "min_tokens";
  std::int32_t n = 0;
  std::vector<TokenId> ends = {};

  [[nodiscard]] Expected<void> check() const {
    return detail::check_parameter(n >= 0, name, "n is 0 or more", static_cast<double>(n));
  }

  void touch(SamplerState& state) const noexcept {
    for (const TokenId id : ends) state.touch(id);
  }
  void apply(Candidates& candidates, SamplerState& state) const noexcept {
    if (state.history(HistoryPart::output).size() >= static_cast<std::size_t>(n)) return;
    for (Candidate& c : candidates.edit())
      if (std::find(ends.begin(), ends.end(), c.id) != ends.end()) c.logit = -std::numeric_limits<float>::infinity();
  }
};

}  // namespace nihao
