#include "goldens.hpp"
#include "support/count_allocations.hpp"

#include <array>
#include <cmath>
#include <doctest/doctest.h>

using namespace nihao;

namespace {
constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float no_number = std::numeric_limits<float>::quiet_NaN();

std::vector<float> logs(std::initializer_list<double> probabilities) {
  std::vector<float> out;
  for (const double p : probabilities) out.push_back(static_cast<float>(std::log(p)));
  return out;
}

/// Logits of a vocabulary: reproducible, roughly normal, without the tests' own random library.
std::vector<float> random_logits(std::size_t n, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> out(n);
  for (float& x : out) {
    double sum = -2;
    for (int i = 0; i < 4; ++i) sum += random.uniform();
    x = static_cast<float>(sum * 4);
  }
  return out;
}

struct Breaks {
  static constexpr std::string_view name = "breaks";
  float value;
  void apply(Candidates& c, SamplerState&) const {
    for (Candidate& x : c.edit()) x.logit = value;
  }
};

/// TopK and Greedy that do not say how many they keep, and so are given every token.
struct TopKOfAll {
  static constexpr std::string_view name = "top_k";
  std::int32_t k;
  void apply(Candidates& candidates, SamplerState& state) const { TopK{k}.apply(candidates, state); }
};
struct GreedyOfAll {
  static constexpr std::string_view name = "greedy";
  TokenId select(Candidates& candidates, SamplerState& state) const { return Greedy{}.select(candidates, state); }
};
}  // namespace

TEST_CASE("top-p counts its mass among what top-k has left") {
  // p = .1 .2 .3 .4: the two largest renormalise to .43 and .57, so a nucleus of .5 is the largest alone.
  auto chain = SamplerChain::parse("top_k=2;top_p=0.5", 4).value();
  CHECK(chain.sample(logs({.1, .2, .3, .4}), {}).value() == 3);
  CHECK(chain.probabilities().size() == 1);
  auto params = SamplerChain::make({.temperature = 1, .top_k = 2, .top_p = 0.5f, .min_p = 0}, 4).value();
  CHECK(params.names() == "top_k top_p dist");
  CHECK(params.sample(logs({.1, .2, .3, .4}), {}).value() == 3);
  CHECK(params.probabilities().size() == 1);
}

TEST_CASE("penalties look at the last tokens of the history, not the first") {
  const std::vector<TokenId> history{0, 0, 0, 1, 2};
  auto chain = SamplerChain::parse("penalties=2,last_n=2;greedy", 4).value();
  CHECK(chain.sample(std::vector<float>{5, 6, 7, 1}, history).value() == 0);  // 1 and 2 are halved, 0 is forgotten
  auto all = SamplerChain::parse("penalties=10,last_n=-1;greedy", 4).value();
  CHECK(all.sample(std::vector<float>{5, 6, 7, 1}, history).value() == 3);
  auto none = SamplerChain::parse("penalties=10,last_n=0;greedy", 4).value();
  CHECK(none.sample(std::vector<float>{5, 6, 7, 1}, history).value() == 2);
  // A history may hold what is no token of the text vocabulary: image positions, say.
  CHECK(chain.sample(std::vector<float>{5, 6, 7, 1}, std::vector<TokenId>{-1, 2, 4}).value() == 1);
}

TEST_CASE("temperature 0 is greedy, and a tie goes to the lower id") {
  auto chain = SamplerChain::make({.temperature = 0, .repeat_penalty = 1.5f}, 5).value();
  CHECK(chain.names() == "penalties greedy");
  CHECK(chain.sample(std::vector<float>{1, 3, 2, 3, -inf}, {}).value() == 1);
  REQUIRE(chain.probabilities().size() == 1);
  CHECK(chain.probabilities().front().p == 1);
  auto stage = SamplerChain::parse("temperature=0", 5).value();
  CHECK(stage.sample(std::vector<float>{1, 3, 2, 3, -inf}, {}).value() == 1);
}

TEST_CASE("a masked token is never chosen") {
  auto chain = SamplerChain::make({.temperature = 5, .top_k = 0, .top_p = 1, .min_p = 0}, 4).value();
  for (int i = 0; i < 200; ++i) {
    const TokenId id = chain.sample(std::vector<float>{1, -inf, 1, -inf}, {}).value();
    CHECK((id == 0 || id == 2));
  }
  CHECK(chain.sample(std::vector<float>{-inf, -inf, -88, -inf}, {}).value() == 2);
}

TEST_CASE("logits that are no numbers give an error that names the token's number and the stage, never a token") {
  for (const char* text : {"top_k=4;top_p=0.9;temperature=0.8", "temperature=0", "greedy", ""}) {
    auto chain = SamplerChain::parse(text, 8).value();
    for (const float odd : {no_number, inf}) {
      CHECK(chain.sample(std::vector<float>(8, odd), {}).error().code == ErrorCode::numeric);
      std::vector<float> one(8, 0.5f);
      one[5] = odd;
      CHECK(chain.sample(one, {}).error().code == ErrorCode::numeric);
    }
    const Error masked = chain.sample(std::vector<float>(8, -inf), {}).error();
    CHECK(masked.message() == "sampling token 0, input logits: no token has a finite logit");
  }
  auto chain = SamplerChain::parse("greedy", 3).value();
  CHECK(chain.sample(std::vector<float>{0, 1, 2}, {}).has_value());
  CHECK(chain.sample(std::vector<float>{0, no_number, 2}, {}).error().message() ==
        "sampling token 1, input logits: the logit of token 1 is NaN");
  CHECK(chain.sample(std::vector<float>{0, 1}, {}).error().code == ErrorCode::mismatch);

  auto breaks = Chain<TopK, Breaks, Dist>::make(3, 0, {2}, {no_number}, {}).value();
  CHECK(breaks.sample(std::vector<float>{0, 1, 2}, {}).error().message() ==
        "sampling token 0, breaks: the logit of token 2 is NaN");
  auto empties = Chain<Breaks, Greedy>::make(3, 0, {-inf}, {}).value();
  CHECK(empties.sample(std::vector<float>{0, 1, 2}, {}).error().message() ==
        "sampling token 0, breaks: no token has a finite logit");
  // The division of a large logit by a small temperature leaves the floats.
  auto overflow = SamplerChain::parse("temperature=1e-30", 2).value();
  CHECK(overflow.sample(std::vector<float>{1e20f, 0}, {}).error().code == ErrorCode::numeric);
}

TEST_CASE("draws follow the distribution") {
  const std::vector<double> p{.05, .5, .15, .2, .1};
  auto chain = SamplerChain::parse("dist", 5, 42).value();
  std::array<double, 5> seen{};
  constexpr int draws = 100000;
  for (int i = 0; i < draws; ++i) seen[static_cast<std::size_t>(chain.sample(logs({.05, .5, .15, .2, .1}), {}).value())] += 1;
  double chi_squared = 0;
  for (std::size_t i = 0; i < 5; ++i) chi_squared += (seen[i] - draws * p[i]) * (seen[i] - draws * p[i]) / (draws * p[i]);
  CHECK(chi_squared < 18.5);  // 4 degrees of freedom: passed with probability 0.999, and the seed is fixed
}

TEST_CASE("a seed gives the same tokens on every platform, from any step") {
  const auto logits = random_logits(1000, 3);
  auto chain = SamplerChain::make({.seed = 7}, 1000).value();
  std::vector<TokenId> first;
  for (int i = 0; i < 16; ++i) first.push_back(chain.sample(logits, {}).value());
  CHECK(first == std::vector<TokenId>{842, 693, 773, 773, 773, 693, 589, 589, 693, 693, 309, 538, 693, 773, 693, 773});
  chain.seek(5);
  for (std::size_t i = 5; i < 16; ++i) CHECK(chain.sample(logits, {}).value() == first[i]);
  auto other = SamplerChain::make({.seed = 8}, 1000).value();
  std::vector<TokenId> second;
  for (int i = 0; i < 16; ++i) second.push_back(other.sample(logits, {}).value());
  CHECK(first != second);
  Random random(0);
  CHECK(random.next() == 2558736989570252433u);
}

TEST_CASE("nothing is allocated after construction") {
  const auto logits = random_logits(5000, 1);
  std::vector<TokenId> history(300, 17);
  auto chain = SamplerChain::make({.repeat_penalty = 1.2f}, logits.size()).value();
  auto flat = SamplerChain::parse("top_p=0.99;min_p=0.0001,min_keep=600", logits.size()).value();
  const std::size_t before = test::allocations;
  for (int i = 0; i < 20; ++i) {
    const bool good = chain.sample(logits, history).has_value() && flat.sample(logits, history).has_value();
    if (!good) FAIL("a sample failed");
  }
  CHECK(test::allocations == before);
}

TEST_CASE("stages on a large vocabulary agree with a full sort") {
  const std::size_t n = 50000;
  const auto logits = random_logits(n, 9);
  std::vector<TokenId> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)]; });
  double total = 0, mass = 0;
  for (const float x : logits) total += std::exp(static_cast<double>(x));
  std::size_t nucleus = 0;
  while (mass < 0.9 * total) mass += std::exp(static_cast<double>(logits[static_cast<std::size_t>(order[nucleus++])]));
  struct Case {
    const char* text;
    std::size_t kept;
  };
  for (const Case& c :
       {Case{"top_p=0.9", nucleus}, Case{"top_k=300", 300}, Case{"top_k=7", 7}, Case{"min_p=1,min_keep=777", 777}}) {
    auto chain = SamplerChain::parse(c.text, n).value();
    REQUIRE(chain.sample(logits, {}).has_value());
    const auto left = chain.probabilities();
    REQUIRE(left.size() == c.kept);
    bool same = true;
    for (std::size_t i = 0; i < c.kept; ++i) same = same && left[i].id == order[i];
    CHECK_MESSAGE(same, c.text);
  }
}

TEST_CASE(
    "a first stage that keeps few is given few candidates, and leaves what it would leave of all: ids, order, probabilities") {
  const auto same = [](std::span<const TokenProbability> a, std::span<const TokenProbability> b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const TokenProbability& x, const TokenProbability& y) { return x.id == y.id && x.p == y.p; });
  };
  for (const std::size_t n : {1u, 63u, 129u, 1000u, 12805u})
    for (int kind = 0; kind < 6; ++kind) {
      auto logits = random_logits(n, n);
      Random random(n);
      for (std::size_t i = 0; i < n; ++i) {
        if (kind == 1) logits[i] = std::floor(logits[i]);                          // ties within groups and between them
        if (kind == 2) logits[i] = 0.0f;                                           // nothing but ties
        if (kind == 3) logits[i] = static_cast<float>(i);                          // the largest all in the last group
        if (kind == 4) logits[i] = -static_cast<float>(i);                         // ... in the first
        if (kind == 5 && random.uniform() < 0.3) logits[i] = i % 2 ? 0.0f : -inf;  // masked tokens among the others
      }
      for (const std::int32_t k : {1, 2, 40, 100, 300}) {
        const std::string what = concat(n, " tokens, kind ", kind, ", k ", k);
        CAPTURE(what);
        auto few = Chain<TopK, Dist>::make(n, 5, {k}, {}).value();
        auto all = Chain<TopKOfAll, Dist>::make(n, 5, {k}, {}).value();
        const auto id = few.sample(logits, {}), expected = all.sample(logits, {});
        CHECK(id.has_value() == expected.has_value());  // n = 1 may be masked
        if (!id || !expected) continue;
        CHECK(*id == *expected);
        CHECK(same(few.probabilities(), all.probabilities()));
      }
      auto few = Chain<Greedy>::make(n, 5, {}).value();
      auto all = Chain<GreedyOfAll>::make(n, 5, {}).value();
      const auto id = few.sample(logits, {}), expected = all.sample(logits, {});
      CHECK(id.has_value() == expected.has_value());
      if (id && expected) CHECK(*id == *expected);
    }
  // What is no number is found wherever it stands, and no group of small logits hides it.
  for (const std::size_t at : {0u, 63u, 64u, 700u, 12799u, 12804u})
    for (const float odd : {no_number, -no_number, inf}) {
      auto logits = random_logits(12805, 1);
      logits[at] = odd;
      for (const char* text : {"top_k=40", "greedy", "temperature=0"}) {
        auto chain = SamplerChain::parse(text, logits.size()).value();
        CHECK(chain.sample(logits, {}).error().message() ==
              concat("sampling token 0, input logits: the logit of token ", at, odd == inf ? " is +inf" : " is NaN"));
      }
    }
}

TEST_CASE("a chain text that makes no sense is refused, and the error names the stage") {
  const auto message = [](std::string_view text) { return SamplerChain::parse(text, 8).error().message(); };
  CHECK(
      message("top_k=40;topp=0.9") ==
      "sampler chain, topp: is not a stage; the stages are penalties, dry, logit_bias, min_tokens, top_k, top_p, min_p, typical, "
      "top_n_sigma, tail_free, xtc, temperature, dynamic_temperature, and one of dist, greedy, mirostat, mirostat2, adaptive_p "
      "at "
      "the end");
  CHECK(message("top_k") == "sampler chain, top_k: needs a value: top_k=...");
  CHECK(message("top_k=") == "sampler chain, top_k: needs a value: top_k=...");
  CHECK(message("top_k=4.5") == "sampler chain, top_k: k: '4.5' is not a number that fits");
  CHECK(message("top_k=99999999999") == "sampler chain, top_k: k: '99999999999' is not a number that fits");
  CHECK(message("top_p=0.9,keep=2") == "sampler chain, top_p: has no parameter 'keep'; it has p, min_keep");
  CHECK(message("top_p=0.9,min_keep") == "sampler chain, top_p: min_keep: '' is not a number that fits");
  CHECK(message("top_p=1.5") == "top_p: p is between 0 and 1, not 1.5");
  CHECK(message("min_p=nan") == "min_p: p is between 0 and 1, not nan");
  CHECK(message("temperature=-1") == "temperature: a temperature is 0 or more, and below 1e6, not -1");
  CHECK(message("penalties=0") == "penalties: repeat is above 0 and below 1e6, not 0");
  CHECK(message("penalties=1.1,last_n=-2") == "penalties: last_n is -1 or more, not -2");
  CHECK(message("greedy;top_k=4") == "sampler chain, top_k: nothing can follow the selector");
  CHECK(message("dist=1") == "sampler chain, dist: takes no value");
  CHECK(SamplerChain::make({.top_p = -1}, 8).error().message() == "top_p: p is between 0 and 1, not -1");
  CHECK((Chain<Temperature, Dist>::make(8, 0, {no_number}, {}).error().code == ErrorCode::invalid_argument));
  CHECK(SamplerChain::parse(" ; top_k = 4 ;\n temperature = 0.5 ; dist ; ", 8).value().names() == "top_k temperature dist");
}

TEST_CASE("exp and log are exact to the last bits") {
  Random random(1);
  double worst = 0;
  for (int i = 0; i < 100000; ++i) {
    const double x = -700 * random.uniform();
    worst = std::max(worst, std::abs(exact_exp(x) / std::exp(x) - 1));
    const double p = 1 - random.uniform();
    worst = std::max(worst, std::abs(exact_log(p) - std::log(p)) / std::max(1.0, std::abs(std::log(p))));
  }
  CHECK(worst < 5e-16);
  CHECK(exact_exp(0) == 1);
  CHECK(exact_exp(-1e300) == 0);
  CHECK(exact_log(1) == 0);
}
