// Stages and selectors by hand-made cases; those with reference numbers are in golden_test.cpp.
#include "nihao/sampling/sampler.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <numeric>

using namespace nihao;

namespace {
constexpr float never = -std::numeric_limits<float>::infinity();

std::vector<float> logits_of(std::initializer_list<double> probabilities) {
  std::vector<float> out;
  out.reserve(probabilities.size());
  for (const double p : probabilities) out.push_back(static_cast<float>(std::log(p)));
  return out;
}
std::vector<float> noise(std::size_t n, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> out(n);
  for (float& x : out) x = static_cast<float>(8 * random.uniform() + 4 * random.uniform() * random.uniform());
  return out;
}

/// The logits that a chain's stages leave, by id: -inf of those dropped. Taken from greedy's place in the chain.
struct Reads {
  static constexpr std::string_view name = "reads";
  std::vector<float>* out;
  void apply(Candidates& candidates, SamplerState& state) const {
    out->assign(state.vocabulary(), never);
    for (const Candidate& c : candidates.items()) (*out)[static_cast<std::size_t>(c.id)] = c.logit;
  }
};
template <class Stage>
std::vector<float> left_by(Stage stage, std::span<const float> logits, std::span<const TokenId> history, std::size_t prompt = 0) {
  std::vector<float> out;
  auto chain = Chain<Stage, Reads, Greedy>::make(logits.size(), 0, std::move(stage), {&out}, {}).value();
  if (!chain.sample(logits, history, prompt)) out.clear();
  return out;
}
}  // namespace

TEST_CASE("penalties look at the prompt, at the output or at both, as they are told") {
  const std::vector<float> logits{4, 4, 4, 4};
  const std::vector<TokenId> history{0, 1, 1, 2};  // 0 1 | 1 2
  const auto left = [&](HistoryPart part, std::int32_t last_n) {
    return left_by(Penalties{2, 0, 0, last_n, part}, logits, history, 2);
  };
  CHECK(left(HistoryPart::both, 64) == std::vector<float>{2, 2, 2, 4});
  CHECK(left(HistoryPart::prompt, 64) == std::vector<float>{2, 2, 4, 4});
  CHECK(left(HistoryPart::output, 64) == std::vector<float>{4, 2, 2, 4});
  CHECK(left(HistoryPart::prompt, 1) == std::vector<float>{4, 2, 4, 4});
  CHECK(left(HistoryPart::output, 1) == std::vector<float>{4, 4, 2, 4});
  // A prompt longer than the history is all of it.
  CHECK(left_by(Penalties{2, 0, 0, 64, HistoryPart::output}, logits, history, 9) == logits);
}

TEST_CASE("C42: the penalty window is the last tokens of a history longer than it") {
  std::vector<TokenId> history(100, 0);
  history.back() = 1;
  CHECK(left_by(Penalties{2, 0, 0, 1}, std::vector<float>{4, 4}, history) == std::vector<float>{4, 2});
}

TEST_CASE("C40: top-k comes first and top-p counts what it left") {
  auto chain = SamplerChain::make({.temperature = 1, .top_k = 2, .top_p = .5f, .min_p = 0}, 4).value();
  CHECK(chain.sample(logits_of({.1, .2, .3, .4}), {}).value() == 3);
  CHECK(chain.probabilities().size() == 1);
}

TEST_CASE("C73: logits that are no numbers are an error that names the step, at any temperature") {
  const std::vector<float> broken(8, std::numeric_limits<float>::quiet_NaN());
  for (const char* temperature : {"0", "0.8"}) {
    auto chain = SamplerChain::parse(concat("top_k=4;top_p=0.9;temperature=", temperature, ";dist"), 8).value();
    const auto id = chain.sample(broken, {});
    REQUIRE(!id.has_value());
    CHECK(id.error().code == ErrorCode::numeric);
    CHECK(id.error().where.find("sampling token 0") != std::string::npos);
  }
  CHECK(SamplerChain::parse("temperature=-1", 8).error().code == ErrorCode::invalid_argument);
}

TEST_CASE("DRY agrees with its definition, tried token by token, on histories with many repetitions") {
  Random random(3);
  for (int round = 0; round < 300; ++round) {
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random.next() % n); };
    const std::size_t vocabulary = 6;
    std::vector<TokenId> history(below(60));
    for (TokenId& id : history) id = static_cast<TokenId>(below(1 + below(vocabulary)));
    Dry dry{.multiplier = 0.5f, .base = 1.5f, .allowed_length = static_cast<std::int32_t>(1 + below(3)), .last_n = -1};
    if (below(2)) dry.last_n = static_cast<std::int32_t>(below(40));
    for (std::size_t b = below(3); b-- > 0;) {
      std::vector<TokenId> breaker(1 + below(2));
      for (TokenId& id : breaker) id = static_cast<TokenId>(below(vocabulary));
      dry.breakers.push_back(breaker);
    }
    const std::size_t length = dry.last_n < 0 ? history.size() : std::min(history.size(), static_cast<std::size_t>(dry.last_n));
    const std::vector<TokenId> window(history.end() - static_cast<std::ptrdiff_t>(length), history.end());
    std::size_t limit = length;  // tokens after the last breaker
    for (std::size_t at = 0; at < length; ++at) {
      std::size_t longest = 0;
      for (const auto& b : dry.breakers)
        if (at + b.size() <= length && std::equal(b.begin(), b.end(), window.begin() + static_cast<std::ptrdiff_t>(at)))
          longest = std::max(longest, b.size());
      if (longest > 0) limit = length - at - longest;
    }
    std::vector<float> expected(vocabulary, 1.0f);
    const auto allowed = static_cast<std::size_t>(dry.allowed_length);
    for (std::size_t token = 0; token < vocabulary; ++token) {
      if (std::count(dry.breakers.begin(), dry.breakers.end(), std::vector<TokenId>{static_cast<TokenId>(token)}) > 0) continue;
      std::size_t longest = 0;
      for (std::size_t end = 0; end < length; ++end) {  // window[end] is the token, what is before it agrees with the text's end
        if (window[end] != static_cast<TokenId>(token)) continue;
        std::size_t n = 0;
        while (n < end && window[end - 1 - n] == window[length - 1 - n]) ++n;
        longest = std::max(longest, std::min(n, limit));
      }
      if (longest >= allowed && length > allowed)
        expected[token] = static_cast<float>(1 - 0.5 * std::pow(1.5, static_cast<double>(longest - allowed)));
    }
    CAPTURE(round);
    const auto left = left_by(dry, std::vector<float>(vocabulary, 1.0f), history);
    REQUIRE(left.size() == vocabulary);
    for (std::size_t i = 0; i < vocabulary; ++i) CHECK(left[i] == doctest::Approx(expected[i]).epsilon(1e-6));
  }
}

TEST_CASE("DRY is linear in its window: 200 000 times the same token is no matter") {
  const std::vector<TokenId> history(200000, 1);
  const auto left = left_by(Dry{.multiplier = 1, .base = 2}, std::vector<float>{0, 0, 0}, history);
  CHECK(left[0] == 0);
  CHECK(left[1] < -1e38f);  // the exponent stops at the largest float
}

TEST_CASE("a bias is added, -inf bans, and an id that is not there changes nothing") {
  const std::vector<float> logits{1, 2, 3, 4};
  CHECK(left_by(LogitBias{{{3, never}, {0, 1.5f}, {9, 1}, {0, 0.5f}}}, logits, {}) == std::vector<float>{1.5f, 2, 3, never});
  auto chain = SamplerChain::parse("logit_bias=3:-inf 0:2.5;greedy", 4).value();
  CHECK(chain.sample(logits, {}).value() == 0);
  auto all = SamplerChain::parse("logit_bias=0:-inf 1:-inf 2:-inf 3:-inf", 4).value();
  CHECK(all.sample(logits, {}).error().message() == "sampling token 0, logit_bias: no token has a finite logit");
}

TEST_CASE("min_tokens masks the end until the output is long enough, and the prompt does not count") {
  const std::vector<float> logits{1, 2, 3};
  auto chain = SamplerChain::parse("min_tokens=2,ends=2 1;greedy", 3).value();
  const std::vector<TokenId> history{0, 0, 0, 0, 0};
  CHECK(chain.sample(logits, std::span(history).first(3), 3).value() == 0);
  CHECK(chain.sample(logits, std::span(history).first(4), 3).value() == 0);
  CHECK(chain.sample(logits, std::span(history).first(5), 3).value() == 2);
  const std::vector<TokenId> ends{2};
  auto told = SamplerChain::parse("min_tokens=2;greedy", 3, 0, ends).value();
  CHECK(told.sample(logits, {}).value() == 1);
}

TEST_CASE("stages that touch few tokens leave the speed to those behind them, and change no bit") {
  // With Reads, which touches nothing and keeps nothing, in front, all tokens become candidates.
  Random random(5);
  for (const std::size_t n : {200u, 5000u, 20001u})
    for (int round = 0; round < 40; ++round) {
      auto logits = noise(n, random.next());
      if (round % 4 == 1)
        for (float& x : logits) x = std::floor(x);
      std::vector<TokenId> history(static_cast<std::size_t>(random.next() % 90));
      for (TokenId& id : history) id = static_cast<TokenId>(random.next() % (round % 3 == 0 ? n + 5 : 64));
      // What is repeated is the likeliest, or pushed up by a penalty below 1.
      for (const TokenId id : history)
        if (static_cast<std::size_t>(id) < n) logits[static_cast<std::size_t>(id)] += 6;
      const Penalties penalties{round % 2 ? 1.5f : 0.7f, 0.5f, 0.1f, -1};
      const LogitBias bias{{{static_cast<TokenId>(random.next() % n), 20.0f}, {static_cast<TokenId>(random.next() % n), never}}};
      std::vector<float> ignored;
      auto fast = Chain<Penalties, LogitBias, Dry, TopK, Dist>::make(n, 3, penalties, bias, {}, {20}, {}).value();
      auto slow =
          Chain<Reads, Penalties, LogitBias, Dry, TopK, Dist>::make(n, 3, {&ignored}, penalties, bias, {}, {20}, {}).value();
      const auto a = fast.sample(logits, history), b = slow.sample(logits, history);
      REQUIRE(a.has_value());
      CHECK(*a == b.value());
      const auto p = fast.probabilities(), q = slow.probabilities();
      CHECK(std::equal(p.begin(), p.end(), q.begin(), q.end(), [](auto x, auto y) { return x.id == y.id && x.p == y.p; }));
    }
}

TEST_CASE("dynamic temperature is low where one token is certain and high where all are alike") {
  CHECK(left_by(DynamicTemperature{1, 0.5f, 1}, std::vector<float>{3, 3, 3}, {}) == std::vector<float>{2, 2, 2});
  const auto sure = left_by(DynamicTemperature{1, 0.5f, 1}, std::vector<float>{80, 0}, {});
  CHECK(sure[0] == doctest::Approx(160));
  // From 0 on, certain means the likeliest alone.
  CHECK(left_by(DynamicTemperature{0.5f, 0.5f, 1}, std::vector<float>{900, 0}, {}) == std::vector<float>{900, never});
}

TEST_CASE("adaptive-p weighs as llama.cpp does, and aims the other way after what it chose") {
  // Weights and choices of llama.cpp's sampler on these probabilities, target 0.3 and decay 0.8.
  struct Step {
    std::vector<double> p;
    TokenId chosen;
  };
  const std::vector<Step> steps{{{0.0288422, 0.0885046, 0.2405799, 0.5535688, 0.0885044}, 1},
                                {{0.0420615, 0.0214544, 0.2808289, 0.5381582, 0.117497}, 3},
                                {{0.0324476, 0.058156, 0.2546408, 0.5577313, 0.0970243}, 3},
                                {{0.025802, 0.1260049, 0.2261124, 0.5412225, 0.0808581}, 4}};
  auto chain = Chain<AdaptiveP>::make(5, 1, {0.3f, 0.8f}).value();
  for (const Step& step : steps) {
    double before = 0;
    for (TokenId id = 0; id < step.chosen; ++id) before += step.p[static_cast<std::size_t>(id)];
    const double middle = before + step.p[static_cast<std::size_t>(step.chosen)] / 2;
    Random random(1);
    std::uint64_t at = 0;
    for (double u = -1; std::abs(u - middle) > 1e-3; u = random.uniform()) random.at(at++);
    chain.seek(at - 1);
    CHECK(chain.sample(logits_of({.05, .5, .15, .2, .1}), {}).value() == step.chosen);
    REQUIRE(chain.probabilities().size() == 5);
    for (std::size_t i = 0; i < 5; ++i)
      CHECK(static_cast<double>(chain.probabilities()[i].p) == doctest::Approx(step.p[i]).epsilon(2e-5));
  }
}

TEST_CASE("mirostat brings the mean surprise to its target, and a copy goes on as the original does") {
  const auto logits = noise(5000, 4);
  for (const char* text : {"mirostat=4", "mirostat2=4"}) {
    auto chain = SamplerChain::parse(text, logits.size(), 9).value();
    double surprise = 0;
    constexpr int tokens = 2000;
    for (int i = 0; i < tokens; ++i) {
      const TokenId id = chain.sample(logits, {}).value();
      for (const TokenProbability& t : chain.probabilities())
        if (t.id == id) surprise -= std::log2(static_cast<double>(t.p));
    }
    CHECK(surprise / tokens == doctest::Approx(4).epsilon(0.05));
    SamplerChain copy = chain;
    for (int i = 0; i < 20; ++i) CHECK(copy.sample(logits, {}).value() == chain.sample(logits, {}).value());
  }
  // What its fit divides by may be nothing: one token, or all alike.
  CHECK(SamplerChain::parse("mirostat=3", 1).value().sample(std::vector<float>{1}, {}).value() == 0);
  CHECK(SamplerChain::parse("mirostat=3", 3).value().sample(std::vector<float>{1, 1, 1}, {}).has_value());
}

TEST_CASE("a chain as a value without a selector is an error") {
  CHECK(SamplerChain::make({TopK{4}}, std::nullopt, 8, 0).error().message() ==
        "sampler chain: ends in no selector, such as dist or greedy: something has to choose the token");
}

TEST_CASE("every name that text knows is read with all its parameters, and bad values are named with their parameter") {
  CHECK(SamplerChain::parse("penalties=1.1,frequency=0.1,presence=0.1,last_n=8,of=output;"
                            "dry=0.8,base=1.75,allowed_length=2,last_n=64,breakers=13+198 271;logit_bias=5:-inf 6:+0.5;"
                            "min_tokens=3,ends=2;top_n_sigma=1.5;top_k=40;typical=0.9,min_keep=2;tail_free=0.9;top_p=0.9;"
                            "min_p=0.1;xtc=0.5,threshold=0.1,min_keep=1;dynamic_temperature=0.8,range=0.3,exponent=1.2;temp=0.9;"
                            "adaptive_p=0.4,decay=0.5",
                            300)
            .error()
            .message() ==
        "sampler chain, logit_bias: biases: '5:-inf 6:+0.5' is not a list of id:bias, with spaces between them");
  const auto message = [](std::string_view text) { return SamplerChain::parse(text, 300).error().message(); };
  CHECK(message("penalties=1,of=all") == "sampler chain, penalties: of: 'all' is not both, prompt or output");
  CHECK(message("min_tokens=2,ends=") == "sampler chain, min_tokens: ends: '' is not a list of ids, with spaces between them");
  CHECK(message("dry=1,breakers=1+x") ==
        "sampler chain, dry: breakers: '1+x' is not a list of breakers, with spaces between them: "
        "ids, those of one breaker joined by +");
  CHECK(message("dry=1,allowed_length=0") == "dry: allowed_length is 1 or more, not 0");
  CHECK(message("xtc=2") == "xtc: probability is between 0 and 1, not 2");
  CHECK(message("logit_bias=-1:2") == "logit_bias: an id is 0 or more, not -1");
  CHECK(message("logit_bias=1:nan") == "logit_bias: a bias is a number, or -inf, not nan");
  CHECK(message("mirostat=5,m=1") == "mirostat: m is from 2 to 1048576, not 1");
  CHECK(message("mirostat2=5,m=100") == "sampler chain, mirostat2: has no parameter 'm'; it has tau, eta");
  CHECK(message("adaptive_p=1.5") == "adaptive_p: target is between 0 and 1, not 1.5");
  CHECK(message("mirostat=5;top_k=3") == "sampler chain, top_k: nothing can follow the selector");
  auto chain =
      SamplerChain::parse("dry=0.8,breakers=13+198 271;logit_bias=5:-inf 6:0.5;typical=0.9;mirostat=5,eta=0.2,m=50", 300);
  REQUIRE(chain.has_value());
  CHECK(chain->names() == "dry logit_bias typical mirostat");
}
