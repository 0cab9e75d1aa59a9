// Station C14, sampling: from the logits of the last position to one token. A chain is a type, when the program knows its
// stages (`Chain<TopK, Temperature, Dist>`), or a value, when a person states them ("top_k=40;temperature=0.8").
#pragma once

#include "params.hpp"
#include "parse_chain.hpp"
#include "stages.hpp"

#include <tuple>
#include <utility>
#include <variant>

namespace nihao {

namespace detail {
template <class... Policies>
inline constexpr bool ends_in_selector = false;
template <class First, class... Rest>
inline constexpr bool ends_in_selector<First, Rest...> = ends_in_selector<Rest...>;
template <class Last>
inline constexpr bool ends_in_selector<Last> = TokenSelector<Last>;

template <class... Policies>
inline constexpr bool begins_in_stages = true;
template <class First, class Second, class... Rest>
inline constexpr bool begins_in_stages<First, Second, Rest...> = SamplerStage<First> && begins_in_stages<Second, Rest...>;
}  // namespace detail

/// A sampler whose stages the compiler knows; they run in the order written, and the last one chooses. One object serves one
/// sequence: it owns the buffers and the random numbers. Allocates when it is made, never after.
///
///     auto sampler = nihao::Chain<nihao::TopK, nihao::Temperature, nihao::Dist>::make(vocabulary, seed, {40}, {0.8f}).value();
///     nihao::TokenId next = sampler.sample(logits, history).value();
template <class... Policies>
class Chain {
  static_assert(detail::ends_in_selector<Policies...>,
                "nihao: a sampler chain ends in a selector, nihao::Greedy or nihao::Dist: something has to choose the token.");
  static_assert(detail::begins_in_stages<Policies...>,
                "nihao: every policy of a sampler chain but its selector needs a static `name` and `void apply(Candidates&, "
                "SamplerState&)`.");

 public:
  /// For logits [vocabulary]. Errors: invalid_argument, naming the stage whose parameter has no meaning.
  [[nodiscard]] static Expected<Chain> make(std::size_t vocabulary, std::uint64_t seed, Policies... policies) {
    Expected<void> good;
    ((good.has_value() ? static_cast<void>(good = detail::check_policy(policies)) : void()), ...);
    if (!good) return std::move(good).error();
    return Chain(vocabulary, seed, std::move(policies)...);
  }

  /// The next token. `logits` [vocabulary]: any finite value or -inf (not to be chosen); `history`: the tokens so far, oldest
  /// first, the first `prompt_tokens` of them the prompt (stages that look at the prompt or the output alone ask for it). Errors:
  /// mismatch (size), numeric (NaN, +inf, or nothing left; `where` names the token's number and the stage).
  [[nodiscard]] Expected<TokenId> sample(std::span<const float> logits, std::span<const TokenId> history,
                                         std::size_t prompt_tokens = 0) {
    state_.begin(history, prompt_tokens);
    std::size_t enough = 0;
    std::apply([&](const Policies&... p) { static_cast<void>((detail::look_ahead(p, state_, enough) && ...)); }, policies_);
    NIHAO_TRY(Candidates candidates, state_.candidates(logits, enough));
    NIHAO_CHECK(run(candidates, std::make_index_sequence<sizeof...(Policies) - 1>{}));
    const TokenId id = std::get<sizeof...(Policies) - 1>(policies_).select(candidates, state_);
    state_.finish();
    return id;
  }

  /// The distribution that the last token was drawn from: the candidates left, in no stated order. Valid until the next sample.
  [[nodiscard]] std::span<const TokenProbability> probabilities() const noexcept { return state_.probabilities(); }

  /// Continues as if `step` tokens had been chosen: the draws of token `step` onward are what they would have been. What a
  /// selector has learnt from its choices (mirostat's bound, adaptive-p's mean) stays: a copy of the chain keeps it.
  void seek(std::uint64_t step) noexcept { state_.seek(step); }

 private:
  Chain(std::size_t vocabulary, std::uint64_t seed, Policies... policies)
      : state_(vocabulary, seed), policies_(std::move(policies)...) {}

  template <std::size_t... Index>
  [[nodiscard]] Expected<void> run(Candidates& candidates, std::index_sequence<Index...>) {
    Expected<void> good;
    (step<Index>(candidates, good), ...);
    return good;
  }
  template <std::size_t Index>
  void step(Candidates& candidates, Expected<void>& good) {
    if (!good) return;
    auto& policy = std::get<Index>(policies_);
    policy.apply(candidates, state_);
    good = state_.settle(candidates, policy.name);
  }

  SamplerState state_;
  std::tuple<Policies...> policies_;
};

/// A sampler chain stated at run time. The same stages and the same results as Chain.
class SamplerChain {
 public:
  /// From the usual knobs; stages that would do nothing are left out. Errors: invalid_argument, naming the stage.
  [[nodiscard]] static Expected<SamplerChain> make(const SamplingParams& params, std::size_t vocabulary) {
    std::vector<AnyStage> stages;
    const Penalties penalties{params.repeat_penalty, params.frequency_penalty, params.presence_penalty, params.penalty_last_n};
    if (params.repeat_penalty != 1 || params.frequency_penalty != 0 || params.presence_penalty != 0)
      stages.emplace_back(penalties);
    if (params.temperature == 0) return make(std::move(stages), Greedy{}, vocabulary, params.seed);
    if (params.top_k > 0) stages.emplace_back(TopK{params.top_k});
    if (params.top_p != 1) stages.emplace_back(TopP{.p = params.top_p});
    if (params.min_p != 0) stages.emplace_back(MinP{.p = params.min_p});
    if (params.temperature != 1) stages.emplace_back(Temperature{params.temperature});
    return make(std::move(stages), Dist{}, vocabulary, params.seed);
  }

  /// From text: stages separated by `;`, each `name=value`, more parameters after commas:
  ///
  ///     penalties=1.1,frequency=0.2,presence=0,last_n=64; top_k=40; top_p=0.95,min_keep=1; min_p=0.05; temperature=0.8
  ///
  /// They run in the order written. A selector may end it; without one it ends in `dist`. `ends`: the tokens that min_tokens
  /// masks where the text names none, such as the model's end tokens. Errors: invalid_argument, naming the stage and what was
  /// wrong.
  [[nodiscard]] static Expected<SamplerChain> parse(std::string_view text, std::size_t vocabulary, std::uint64_t seed = 0,
                                                    std::span<const TokenId> ends = {}) {
    NIHAO_TRY(ChainPlan plan, parse_chain(text));
    for (AnyStage& stage : plan.stages)
      if (auto* least = std::get_if<MinTokens>(&stage); least != nullptr && least->ends.empty())
        least->ends.assign(ends.begin(), ends.end());
    if (!plan.selector) plan.selector = Dist{};
    return make(std::move(plan.stages), plan.selector, vocabulary, seed);
  }

  /// From stages and a selector. Errors: invalid_argument, naming the stage, or saying that there is no selector.
  [[nodiscard]] static Expected<SamplerChain> make(std::vector<AnyStage> stages, std::optional<AnySelector> selector,
                                                   std::size_t vocabulary, std::uint64_t seed) {
    const auto check = [](const auto& policy) { return detail::check_policy(policy); };
    for (const AnyStage& stage : stages) NIHAO_CHECK(std::visit(check, stage));
    if (!selector) {
      return Error{ErrorCode::invalid_argument, "ends in no selector, such as dist or greedy: something has to choose the token",
                   "sampler chain"};
    }
    NIHAO_CHECK(std::visit(check, *selector));
    return SamplerChain(std::move(stages), *selector, vocabulary, seed);
  }

  /// As Chain::sample.
  [[nodiscard]] Expected<TokenId> sample(std::span<const float> logits, std::span<const TokenId> history,
                                         std::size_t prompt_tokens = 0) {
    state_.begin(history, prompt_tokens);
    std::size_t enough = 0;
    const auto look = [&](const auto& policy) { return detail::look_ahead(policy, state_, enough); };
    if (std::all_of(stages_.begin(), stages_.end(), [&](const AnyStage& s) { return std::visit(look, s); })) {
      static_cast<void>(std::visit(look, selector_));
    }
    NIHAO_TRY(Candidates candidates, state_.candidates(logits, enough));
    for (AnyStage& stage : stages_) {
      NIHAO_CHECK(std::visit(
          [&](auto& s) {
            s.apply(candidates, state_);
            return state_.settle(candidates, s.name);
          },
          stage));
    }
    const TokenId id = std::visit([&](auto& s) { return s.select(candidates, state_); }, selector_);
    state_.finish();
    return id;
  }

  [[nodiscard]] std::span<const TokenProbability> probabilities() const noexcept { return state_.probabilities(); }
  void seek(std::uint64_t step) noexcept { state_.seek(step); }

  /// The chain's stages in order, the selector last: "top_k top_p dist".
  [[nodiscard]] std::string names() const {
    std::string out;
    for (const AnyStage& stage : stages_) (out += std::visit([](const auto& s) { return s.name; }, stage)) += ' ';
    return out += std::visit([](const auto& s) { return s.name; }, selector_);
  }

 private:
  SamplerChain(std::vector<AnyStage> stages, AnySelector selector, std::size_t vocabulary, std::uint64_t seed)
      : state_(vocabulary, seed), stages_(std::move(stages)), selector_(selector) {}

  SamplerState state_;
  std::vector<AnyStage> stages_;
  AnySelector selector_;
};

}  // namespace nihao
