#include "goldens.hpp"

#include <doctest/doctest.h>

using namespace nihao;
using nihao::test::dense;
using nihao::test::difference;
using nlohmann::json;

namespace {

Penalties penalties(const json& q) { return {q.at("repeat"), q.at("frequency"), q.at("presence"), q.at("last_n")}; }

Dry dry(const json& q) {
  return {q.at("multiplier"), q.at("base"), q.at("allowed_length"), q.at("last_n"),
          q.at("breakers").get<std::vector<std::vector<TokenId>>>()};
}
Xtc xtc(const json& q) { return {q.at("probability"), q.at("threshold"), q.at("min_keep")}; }

/// A seed whose first number, xtc's draw, decides as the golden's `chance` does.
std::uint64_t seed_for(const json& q) {
  const double probability = q.at("probability"), chance = q.at("chance");
  std::uint64_t seed = 0;
  while ((Random(seed).uniform() > probability) != (chance > probability)) ++seed;
  return seed;
}
/// A step of `seed` whose first number is `random`, but for what cannot change a choice: no golden is within 1e-4 of a border.
std::uint64_t step_for(std::uint64_t seed, double random) {
  Random stream(seed);
  for (std::uint64_t step = 0;; ++step) {
    stream.at(step);
    if (std::abs(stream.uniform() - random) < 5e-5) return step;
  }
}

/// Runs each of the 20 rows of a golden through what `make(parameters, n)` gives; the worst difference of probabilities.
template <class Make>
double worst_of(const test::SamplerGoldens& g, const std::string& sampler, Make make) {
  double worst = 0;
  for (const std::size_t n : {32u, 512u}) {
    const std::string name = concat(sampler, ".n", n);
    for (std::size_t i = 0; i < 20; ++i) {
      const json& q = g.json.at("cases").at(name).at(i);
      auto chain = make(q, n);
      REQUIRE(chain.has_value());
      const json& with_history = q.contains("penalties") ? q.at("penalties") : q;
      const auto history = with_history.value("history", std::vector<TokenId>{});
      REQUIRE(chain->sample(g.row(concat("n", n, ".logits"), i, n), history).has_value());
      worst = std::max(worst, difference(dense(chain->probabilities(), n), g.row(name + ".probs", i, n)));
    }
  }
  return worst;
}

}  // namespace

TEST_CASE("each stage gives the probabilities of the reference") {
  const auto g = test::SamplerGoldens::open();
  if (!g) NIHAO_SKIP("golden/samplers");
  const auto worst = [&](const std::string& sampler, auto stage) {
    return worst_of(*g, sampler, [&](const json& q, std::size_t n) {
      const std::uint64_t seed = q.contains("chance") ? seed_for(q) : 1;
      return Chain<decltype(stage(q)), Dist>::make(n, seed, stage(q), {});
    });
  };
  CHECK(worst("top_k", [](const json& q) { return TopK{q.at("k")}; }) < 1e-6);
  CHECK(worst("top_p", [](const json& q) { return TopP{q.at("p"), q.at("min_keep")}; }) < 1e-6);
  CHECK(worst("min_p", [](const json& q) { return MinP{q.at("p"), q.at("min_keep")}; }) < 1e-6);
  CHECK(worst("typical", [](const json& q) { return Typical{q.at("p"), q.at("min_keep")}; }) < 1e-6);
  CHECK(worst("tail_free", [](const json& q) { return TailFree{q.at("z"), q.at("min_keep")}; }) < 1e-6);
  CHECK(worst("top_n_sigma", [](const json& q) { return TopNSigma{q.at("n")}; }) < 1e-6);
  CHECK(worst("xtc", xtc) < 1e-6);
  CHECK(worst("temperature", [](const json& q) { return Temperature{q.at("temp")}; }) < 1e-6);
  CHECK(worst("dynamic_temperature",
              [](const json& q) { return DynamicTemperature{q.at("temp"), q.at("delta"), q.at("exponent")}; }) < 1e-6);
  CHECK(worst("penalties", penalties) < 1e-6);
  CHECK(worst("dry", dry) < 1e-6);
}

TEST_CASE("the whole chain of the reference gives its probabilities") {
  const auto g = test::SamplerGoldens::open();
  if (!g) NIHAO_SKIP("golden/samplers");
  using Whole = Chain<Penalties, Dry, TopNSigma, TopK, Typical, TopP, MinP, Xtc, Temperature, Dist>;
  const double worst = worst_of(*g, "chain", [](const json& q, std::size_t n) {
    const json& t = q.at("typical");
    return Whole::make(
        n, seed_for(q.at("xtc")), penalties(q.at("penalties")), dry(q.at("dry")), {q.at("top_n_sigma").at("n")},
        {q.at("top_k").at("k")}, {t.at("p"), t.at("min_keep")}, {q.at("top_p").at("p"), q.at("top_p").at("min_keep")},
        {q.at("min_p").at("p"), q.at("min_p").at("min_keep")}, xtc(q.at("xtc")), {q.at("temperature").at("temp")}, {});
  });
  CHECK(worst < 1e-6);
}

TEST_CASE("both kinds of mirostat keep, choose and learn what the reference does, step after step") {
  const auto g = test::SamplerGoldens::open();
  if (!g) NIHAO_SKIP("golden/samplers");
  const auto follow = [&](const std::string& name, auto selector) {
    for (const std::size_t n : {32u, 512u})
      for (const json& q : g->json.at("cases").at(concat(name, ".n", n))) {
        auto chain = Chain<decltype(selector(q))>::make(n, 1, selector(q)).value();
        for (const json& step : q.at("steps")) {
          chain.seek(step_for(1, step.at("random")));
          const auto id = chain.sample(g->row(concat("n", n, ".logits"), step.at("row"), n), {});
          REQUIRE(id.has_value());
          CHECK(*id == step.at("token").get<TokenId>());
          CHECK(chain.probabilities().size() == step.at("kept").get<std::size_t>());
          const auto probability = dense(chain.probabilities(), n)[static_cast<std::size_t>(*id)];
          CHECK(std::abs(static_cast<double>(probability) - step.at("probability").get<double>()) < 1e-6);
        }
      }
  };
  follow("mirostat_v1", [](const json& q) { return Mirostat{q.at("tau"), q.at("eta"), q.at("m")}; });
  follow("mirostat_v2", [](const json& q) { return Mirostat2{q.at("tau"), q.at("eta")}; });
}

TEST_CASE("a chain from text does what the same chain as a type does") {
  const auto g = test::SamplerGoldens::open();
  if (!g) NIHAO_SKIP("golden/samplers");
  auto typed = Chain<Penalties, TopK, TopP, MinP, Temperature, Dist>::make(512, 5, {1.1f, 0.2f, 0.1f, 16}, {40}, {0.95f}, {0.01f},
                                                                           {0.8f}, {});
  auto value = SamplerChain::parse(
      "penalties=1.1,frequency=0.2,presence=0.1,last_n=16; top_k=40; top_p=0.95; min_p=0.01; temp=0.8", 512, 5);
  auto params = SamplerChain::make({.min_p = 0.01f,
                                    .repeat_penalty = 1.1f,
                                    .frequency_penalty = 0.2f,
                                    .presence_penalty = 0.1f,
                                    .penalty_last_n = 16,
                                    .seed = 5},
                                   512);
  REQUIRE(typed.has_value());
  REQUIRE(value.has_value());
  REQUIRE(params.has_value());
  std::vector<TokenId> history{7, 7, 8};
  for (std::size_t step = 0; step < 200; ++step) {
    const auto logits = g->row("n512.logits", step % 20, 512);
    const TokenId id = typed->sample(logits, history).value();
    CHECK(value->sample(logits, history).value() == id);
    CHECK(params->sample(logits, history).value() == id);
    CHECK(difference(dense(typed->probabilities(), 512), dense(value->probabilities(), 512)) == 0);
    history.push_back(id);
  }
}
