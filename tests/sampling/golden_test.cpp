#include "goldens.hpp"

#include <doctest/doctest.h>

using namespace nihao;
using nihao::test::dense;
using nihao::test::difference;
using nlohmann::json;

namespace {

Penalties penalties(const json& q) { return {q.at("repeat"), q.at("frequency"), q.at("presence"), q.at("last_n")}; }

// The golden's whole chain has four stages that a host could write itself; here they are, as a host would write them.
struct TopNSigma {
  static constexpr std::string_view name = "top_n_sigma";
  double n;
  void apply(Candidates& c, SamplerState&) const {
    double sum = 0, squares = 0;
    for (const Candidate& x : c.items()) sum += static_cast<double>(x.logit);
    const double mean = sum / static_cast<double>(c.size());
    for (const Candidate& x : c.items()) squares += (static_cast<double>(x.logit) - mean) * (static_cast<double>(x.logit) - mean);
    if (n > 0) c.keep_from(static_cast<double>(c.best().logit) - n * std::sqrt(squares / static_cast<double>(c.size())));
  }
};

struct Typical {
  static constexpr std::string_view name = "typical";
  double p;
  std::size_t min_keep;
  void apply(Candidates& c, SamplerState& state) const {
    c.descending(c.size());
    const auto q = state.normalise(c);
    double entropy = 0;
    for (const auto& t : q) entropy -= static_cast<double>(t.p) * std::log(static_cast<double>(t.p));
    std::vector<std::size_t> order(q.size());
    std::iota(order.begin(), order.end(), 0u);
    const auto distance = [&](std::size_t i) { return std::abs(-std::log(static_cast<double>(q[i].p)) - entropy); };
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return distance(a) < distance(b); });
    double mass = 0;
    std::vector<char> stays(q.size(), 0);
    for (std::size_t i = 0; i < order.size(); ++i) {
      stays[order[i]] = 1;
      mass += static_cast<double>(q[order[i]].p);
      if (mass > p && (min_keep == 0 || i + 1 >= min_keep)) break;
    }
    const auto items = c.edit();
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (!stays[i]) items[i].logit = -std::numeric_limits<float>::infinity();
    }
  }
};

struct Xtc {
  static constexpr std::string_view name = "xtc";
  double probability, threshold, chance;
  std::size_t min_keep;
  void apply(Candidates& c, SamplerState& state) const {
    if (probability <= 0 || threshold > 0.5 || c.size() < 2 || chance > probability) return;
    c.descending(c.size());
    std::size_t above = 0;
    for (const auto& t : state.normalise(c)) above += static_cast<double>(t.p) >= threshold;
    if (above < 2 || c.size() - (above - 1) < min_keep) return;
    const auto items = c.edit();
    for (std::size_t i = 0; i + 1 < above; ++i) items[i].logit = -std::numeric_limits<float>::infinity();
  }
};

struct Dry {
  static constexpr std::string_view name = "dry";
  double multiplier, base;
  int allowed_length, last_n;
  void apply(Candidates& c, SamplerState& state) const {
    const auto history = state.history();
    const auto window = history.last(std::min(history.size(), static_cast<std::size_t>(last_n)));
    const int size = static_cast<int>(window.size());
    const auto back = [&](int i) { return window[static_cast<std::size_t>(size - 1 - i)]; };
    std::vector<int> longest(state.vocabulary(), 0);
    for (int k = 1; k < size; ++k) {
      int n = 0;
      while (n + k < size && back(n) == back(n + k)) ++n;
      int& known = longest[static_cast<std::size_t>(back(k - 1))];
      if (n >= allowed_length) known = std::max(known, n);
    }
    for (Candidate& x : c.edit()) {
      const int n = longest[static_cast<std::size_t>(x.id)];
      if (n > 0) x.logit -= static_cast<float>(multiplier * std::pow(base, n - allowed_length));
    }
  }
};

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
  const auto k = [](const json& q, std::size_t n) { return Chain<TopK, Dist>::make(n, 1, {q.at("k")}, {}); };
  const auto top_p = [](const json& q, std::size_t n) {
    return Chain<TopP, Dist>::make(n, 1, {q.at("p"), q.at("min_keep")}, {});
  };
  const auto min_p = [](const json& q, std::size_t n) {
    return Chain<MinP, Dist>::make(n, 1, {q.at("p"), q.at("min_keep")}, {});
  };
  const auto temp = [](const json& q, std::size_t n) { return Chain<Temperature, Dist>::make(n, 1, {q.at("temp")}, {}); };
  const auto repeat = [](const json& q, std::size_t n) { return Chain<Penalties, Dist>::make(n, 1, penalties(q), {}); };
  CHECK(worst_of(*g, "top_k", k) < 1e-6);
  CHECK(worst_of(*g, "top_p", top_p) < 1e-6);
  CHECK(worst_of(*g, "min_p", min_p) < 1e-6);
  CHECK(worst_of(*g, "temperature", temp) < 1e-6);
  CHECK(worst_of(*g, "penalties", repeat) < 1e-6);
}

TEST_CASE("the whole chain of the reference, with four stages of a host's own, gives its probabilities") {
  const auto g = test::SamplerGoldens::open();
  if (!g) NIHAO_SKIP("golden/samplers");
  using Whole = Chain<Penalties, Dry, TopNSigma, TopK, Typical, TopP, MinP, Xtc, Temperature, Dist>;
  const double worst = worst_of(*g, "chain", [](const json& q, std::size_t n) {
    const json &d = q.at("dry"), &t = q.at("typical"), &x = q.at("xtc");
    return Whole::make(
        n, 1, penalties(q.at("penalties")), {d.at("multiplier"), d.at("base"), d.at("allowed_length"), d.at("last_n")},
        {q.at("top_n_sigma").at("n")}, {q.at("top_k").at("k")}, {t.at("p"), t.at("min_keep")},
        {q.at("top_p").at("p"), q.at("top_p").at("min_keep")}, {q.at("min_p").at("p"), q.at("min_p").at("min_keep")},
        {x.at("probability"), x.at("threshold"), x.at("chance"), x.at("min_keep")}, {q.at("temperature").at("temp")}, {});
  });
  CHECK(worst < 1e-6);
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
