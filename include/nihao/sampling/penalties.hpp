// Stages that make what the text holds already less likely.
#pragma once

#include "policy.hpp"

#include <vector>

namespace nihao {

/// Makes tokens that are already in the history less likely. For a token that occurs `count` times among the last `last_n` of
/// `of`: its logit is divided by `repeat` (multiplied, if not above zero: Keskar et al., CTRL, 2019), then loses
/// `count * frequency + presence`. last_n 0 switches the stage off; -1 means all of them. Two stages serve those who want
/// `repeat` over both and the other two over the output alone, as some servers have it.
struct Penalties {
  static constexpr std::string_view name = "penalties";
  float repeat = 1.0f;
  float frequency = 0.0f;
  float presence = 0.0f;
  std::int32_t last_n = 64;
  HistoryPart of = HistoryPart::both;

  [[nodiscard]] Expected<void> check() const {
    NIHAO_CHECK(detail::check_parameter(repeat > 0 && repeat < 1e6f, name, "repeat is above 0 and below 1e6",
                                        static_cast<double>(repeat)));
    NIHAO_CHECK(detail::check_parameter(frequency > -1e6f && frequency < 1e6f, name, "frequency is finite, within 1e6",
                                        static_cast<double>(frequency)));
    NIHAO_CHECK(detail::check_parameter(presence > -1e6f && presence < 1e6f, name, "presence is finite, within 1e6",
                                        static_cast<double>(presence)));
    return detail::check_parameter(last_n >= -1, name, "last_n is -1 or more", static_cast<double>(last_n));
  }

  void touch(SamplerState& state) const noexcept {
    if (off()) return;
    for (const TokenId id : state.window(last_n, of)) state.touch(id);
  }
  void apply(Candidates& candidates, SamplerState& state) const noexcept {
    const std::span<const TokenId> window = state.window(last_n, of);
    if (window.empty() || off()) return;
    for (const TokenId id : window)
      if (state.knows(id)) ++state.count(id);
    for (Candidate& c : candidates.edit()) {
      const std::uint32_t count = state.count(c.id);
      if (count == 0) continue;
      const float scaled = c.logit <= 0.0f ? c.logit * repeat : c.logit / repeat;
      // In double count * frequency is exact, so fused or not the sum has the same bits.
      const double loss = static_cast<double>(count) * static_cast<double>(frequency) + static_cast<double>(presence);
      c.logit = static_cast<float>(static_cast<double>(scaled) - loss);
    }
    for (const TokenId id : window)
      if (state.knows(id)) state.count(id) = 0;
  }

 private:
  [[nodiscard]] bool off() const noexcept { return repeat == 1.0f && frequency == 0.0f && presence == 0.0f; }
};

/// Makes a token less likely that would carry on a repetition (DRY, Weidmann, 2024): if the text ends in n tokens that stood in
/// the last `last_n` before, followed by this one, with n >= allowed_length, its logit loses
/// multiplier * base ^ (n - allowed_length), by the longest n. A breaker, a run of tokens such as a line's end, is where
/// repetitions begin: none reaches back over the last one in the window, and a breaker of one token is never made less likely.
/// last_n -1 is the whole history; multiplier 0 or base below 1 switches it off. Linear in the window.
struct Dry {
  static constexpr std::string_view name = "dry";
  float multiplier = 0.8f;
  float base = 1.75f;
  std::int32_t allowed_length = 2;
  std::int32_t last_n = -1;
  std::vector<std::vector<TokenId>> breakers = {};

  [[nodiscard]] Expected<void> check() const {
    NIHAO_CHECK(detail::check_parameter(multiplier >= 0 && multiplier < 1e6f, name, "multiplier is 0 or more, and below 1e6",
                                        static_cast<double>(multiplier)));
    NIHAO_CHECK(
        detail::check_parameter(base >= 0 && base < 1e6f, name, "base is 0 or more, and below 1e6", static_cast<double>(base)));
    NIHAO_CHECK(
        detail::check_parameter(allowed_length >= 1, name, "allowed_length is 1 or more", static_cast<double>(allowed_length)));
    for (const auto& breaker : breakers)
      NIHAO_CHECK(detail::check_parameter(!breaker.empty(), name, "a breaker has 1 token or more", 0));
    return detail::check_parameter(last_n >= -1, name, "last_n is -1 or more", static_cast<double>(last_n));
  }

  void touch(SamplerState& state) const noexcept {
    if (off()) return;
    for (const TokenId id : state.window(last_n)) state.touch(id);
  }
  void apply(Candidates& candidates, SamplerState& state) const {
    const std::span<const TokenId> window = state.window(last_n);
    const auto allowed = static_cast<std::size_t>(allowed_length);
    if (off() || window.size() <= allowed) return;
    const std::size_t limit = since_breaker(window, state);
    if (limit < allowed) return;
    longest_repeats(window, limit, state);
    for (const auto& breaker : breakers)
      if (breaker.size() == 1 && state.knows(breaker[0])) state.count(breaker[0]) = 0;
    const double log_base = exact_log(static_cast<double>(base));
    for (Candidate& c : candidates.edit()) {
      const std::size_t n = state.count(c.id);
      if (n == 0) continue;
      // What is beyond the largest float stays at it.
      const double power = exact_exp(std::min(static_cast<double>(n - allowed) * log_base, 88.7228391));
      c.logit = static_cast<float>(static_cast<double>(c.logit) - static_cast<double>(multiplier) * power);
    }
    for (const TokenId id : window)
      if (state.knows(id)) state.count(id) = 0;
  }

 private:
  [[nodiscard]] bool off() const noexcept { return multiplier == 0.0f || base < 1.0f || last_n == 0; }

  // How many tokens there are after the last breaker in the window; all of it without one.
  [[nodiscard]] std::size_t since_breaker(std::span<const TokenId> window, SamplerState& state) const noexcept {
    const auto mark = [&](std::uint32_t value) {
      for (const auto& breaker : breakers)
        if (state.knows(breaker[0])) state.count(breaker[0]) = value;
    };
    mark(1);
    std::size_t after = window.size();
    for (std::size_t at = window.size(); at-- > 0 && after == window.size();) {
      if (!state.knows(window[at]) || state.count(window[at]) == 0) continue;
      const auto rest = window.subspan(at);
      std::size_t longest = 0;
      for (const auto& breaker : breakers)
        if (breaker.size() <= rest.size() && std::equal(breaker.begin(), breaker.end(), rest.begin()))
          longest = std::max(longest, breaker.size());
      if (longest > 0) after = rest.size() - longest;
    }
    mark(0);
    return after;
  }

  // counts: by token, the longest repetition that it would carry on, if that has allowed_length or more, at most `limit`. Found
  // by the Z algorithm (Gusfield, Algorithms on Strings, Trees, and Sequences, 1997, 1.3) on the window read backwards: z[k] is
  // how far the text's end agrees with what ends k tokens before it.
  void longest_repeats(std::span<const TokenId> window, std::size_t limit, SamplerState& state) const {
    const std::size_t size = window.size();
    const auto back = [&](std::size_t i) { return window[size - 1 - i]; };
    const std::span<std::uint32_t> z = state.scratch(size);
    std::size_t from = 0, to = 0;  // back[from, to) agrees with the beginning, for the largest `to` so far
    for (std::size_t k = 1; k < size; ++k) {
      std::size_t n = k < to ? std::min<std::size_t>(to - k, z[k - from]) : 0;
      while (k + n < size && back(n) == back(k + n)) ++n;
      z[k] = static_cast<std::uint32_t>(n);
      if (k + n > to) from = k, to = k + n;
      n = std::min(n, limit);
      if (n < static_cast<std::size_t>(allowed_length) || !state.knows(back(k - 1))) continue;
      std::uint32_t& longest = state.count(back(k - 1));
      longest = std::max(longest, static_cast<std::uint32_t>(n));
    }
  }
};

}  // namespace nihao
