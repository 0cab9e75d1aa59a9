// Logprobs, and the strategies that go by them: against brute force on a made-up model.
#include "nihao/sampling/strategies.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>

using namespace nihao;

namespace {
constexpr std::size_t tokens = 4;
constexpr TokenId the_end = 3;

/// Logits that depend on the last two tokens of a sequence alone.
struct TableModel {
  std::vector<float> row = std::vector<float>(tokens);
  std::size_t calls = 0;
  Expected<std::span<const float>> operator()(std::span<const TokenId> ids) {
    ++calls;
    if (ids.empty()) return Error{ErrorCode::invalid_argument, "nothing to continue"};
    const auto last = static_cast<std::uint64_t>(ids.back()),
               before = ids.size() > 1 ? static_cast<std::uint64_t>(ids[ids.size() - 2]) : 9;
    Random random(last * 10 + before);
    for (float& x : row) x = static_cast<float>(4 * random.uniform());
    return std::span<const float>(row);
  }
};

/// All continuations of at most `most` tokens that end in the end token or have all of them.
void each_continuation(const std::vector<TokenId>& prompt, std::size_t most, Continuation so_far,
                       std::vector<Continuation>& out) {
  if (so_far.ended || so_far.ids.size() == most) {
    out.push_back(std::move(so_far));
    return;
  }
  std::vector<TokenId> sequence = prompt;
  sequence.insert(sequence.end(), so_far.ids.begin(), so_far.ids.end());
  TableModel model;
  const auto row = model(sequence).value();
  double total = 0;
  for (const float x : row) total += std::exp(static_cast<double>(x));
  for (std::size_t i = 0; i < tokens; ++i) {
    Continuation longer = so_far;
    longer.ids.push_back(static_cast<TokenId>(i));
    longer.logprob += static_cast<double>(row[i]) - std::log(total);
    longer.ended = static_cast<TokenId>(i) == the_end;
    each_continuation(prompt, most, std::move(longer), out);
  }
}
}  // namespace

TEST_CASE("a beam as wide as there are continuations finds what trying all of them finds, in order") {
  const std::vector<TokenId> prompt{1};
  std::vector<Continuation> all;
  each_continuation(prompt, 4, {}, all);
  for (const float penalty : {0.0f, 1.0f}) {
    const auto score = [&](const Continuation& c) { return penalty == 0 ? c.logprob : c.mean_logprob(); };
    std::sort(all.begin(), all.end(),
              [&](const auto& a, const auto& b) { return score(a) > score(b) || (score(a) == score(b) && a.ids < b.ids); });
    TableModel model;
    const auto beams = beam_search(model, prompt, {all.size(), 4, {the_end}, penalty}).value();
    REQUIRE(beams.size() == all.size());
    for (std::size_t i = 0; i < beams.size(); ++i) {
      CHECK(score(beams[i]) == doctest::Approx(score(all[i])).epsilon(1e-9));
      CHECK(beams[i].ended == (beams[i].ids.back() == the_end));
    }
    CHECK(beams.front().ids == all.front().ids);
  }
}

TEST_CASE("a beam of one is greedy, and no beam is an error") {
  const std::vector<TokenId> prompt{2, 1};
  TableModel model;
  const auto beams = beam_search(model, prompt, {1, 6, {}, 1.0f}).value();
  REQUIRE(beams.size() == 1);
  auto chain = SamplerChain::parse("greedy", tokens).value();
  std::vector<TokenId> sequence = prompt;
  for (int i = 0; i < 6; ++i) sequence.push_back(chain.sample(model(sequence).value(), sequence).value());
  CHECK(beams[0].ids == std::vector<TokenId>(sequence.begin() + 2, sequence.end()));
  CHECK(beam_search(model, prompt, {.width = 0}).error().code == ErrorCode::invalid_argument);
  CHECK(beam_search(model, {}, {}).error().message() == "nothing to continue");
  CHECK(beam_search(model, prompt, {.max_tokens = 0}).value().front().ids.empty());
}

TEST_CASE("best of n is the best of what the seeds draw one by one") {
  const std::vector<TokenId> prompt{1};
  const auto make = [](std::uint64_t seed) { return SamplerChain::parse("temperature=1.2", tokens, seed); };
  TableModel model;
  Continuation expected;
  for (std::uint64_t seed = 5; seed < 13; ++seed) {
    const auto one = best_of(model, make, prompt, 1, 8, {the_end}, seed).value();
    auto chain = make(seed).value();
    std::vector<TokenId> sequence = prompt;
    for (std::size_t i = 0; i < one.ids.size(); ++i)
      sequence.push_back(chain.sample(model(sequence).value(), sequence, 1).value());
    CHECK(std::equal(one.ids.begin(), one.ids.end(), sequence.begin() + 1));
    if (expected.ids.empty() || one.mean_logprob() > expected.mean_logprob()) expected = one;
  }
  const auto best = best_of(model, make, prompt, 8, 8, {the_end}, 5).value();
  CHECK(best.ids == expected.ids);
  CHECK(best.logprob == expected.logprob);
  CHECK(best_of(model, make, prompt, 0, 8, {}).error().code == ErrorCode::invalid_argument);
}

TEST_CASE("raw logprobs are the model's own, whatever a chain did, and those of a chain are what it drew from") {
  std::vector<float> logits{std::log(.1f), std::log(.2f), std::log(.3f), std::log(.4f)};
  auto chain = SamplerChain::parse("top_k=2;greedy", 4).value();
  const TokenId id = chain.sample(logits, {}).value();
  const Logprobs raw = raw_logprobs(logits, id, 3).value();
  CHECK(raw.of == LogprobsOf::raw);
  CHECK(raw.chosen.logprob == doctest::Approx(std::log(.4)).epsilon(1e-6));
  REQUIRE(raw.top.size() == 3);
  CHECK((raw.top[0].id == 3 && raw.top[1].id == 2 && raw.top[2].id == 1));
  CHECK(raw.top[2].logprob == doctest::Approx(std::log(.2)).epsilon(1e-6));
  const Logprobs processed = chain_logprobs(chain.probabilities(), id, 3).value();
  CHECK(processed.of == LogprobsOf::chain);
  CHECK(processed.chosen.logprob == 0);  // greedy's distribution is its choice
  CHECK(processed.top.size() == 1);
  CHECK(chain_logprobs(chain.probabilities(), 0, 3).error().code == ErrorCode::mismatch);
  logits[0] = -std::numeric_limits<float>::infinity();
  CHECK(raw_logprobs(logits, 3, 9).value().top.size() == 3);
  CHECK(raw_logprobs(logits, 4, 1).error().code == ErrorCode::mismatch);
  CHECK(raw_logprobs(std::vector<float>(4, -std::numeric_limits<float>::infinity()), 0, 1).error().code == ErrorCode::numeric);
  CHECK(raw_logprobs(std::vector<float>(4, std::numeric_limits<float>::quiet_NaN()), 0, 1).error().code == ErrorCode::numeric);
}

TEST_CASE("C46: logprobs with none of the likeliest give the chosen token's and an empty list") {
  const Logprobs made = raw_logprobs(std::vector<float>{1, 2}, 0, 0).value();
  CHECK(made.top.empty());
  CHECK(made.chosen.logprob == doctest::Approx(-1.3132617));
}

TEST_CASE("C47: one request's logprobs do not depend on what its batch mates ask for") {
  const std::vector<float> batch{1, 2, 3, 4, 4, 3, 2, 1};  // two rows
  const std::span<const float> first = std::span(batch).first(4), second = std::span(batch).last(4);
  const Logprobs alone = raw_logprobs(second, 1, 4).value();
  static_cast<void>(raw_logprobs(first, 0, 0).value());
  const Logprobs beside = raw_logprobs(second, 1, 4).value();
  REQUIRE(beside.top.size() == alone.top.size());
  for (std::size_t i = 0; i < alone.top.size(); ++i) {
    CHECK(std::isfinite(beside.top[i].logprob));
    CHECK(beside.top[i].logprob == alone.top[i].logprob);
  }
}
