// C14, sampling: the last position's logits become one token. A chain of stages bends the logits and drops candidates; at its end
// a selector chooses one. Read: sampling/sampler.hpp, sampling/stages.hpp, sampling/random.hpp; docs/sampling.md.
#include "station.hpp"

#include <nihao/sampling/sampler.hpp>

#include <cmath>
#include <map>

namespace {

using Probabilities = std::vector<nihao::TokenProbability>;

// What a chain leaves of the logits, likeliest first. The token that it draws along the way is not looked at.
nihao::Expected<Probabilities> left_by(std::string_view chain, std::span<const float> logits,
                                       std::span<const nihao::TokenId> history) {
  NIHAO_TRY(auto sampler, nihao::SamplerChain::parse(chain, logits.size()));
  NIHAO_TRY(const auto ignored, sampler.sample(logits, history));
  static_cast<void>(ignored);
  Probabilities left(sampler.probabilities().begin(), sampler.probabilities().end());
  std::sort(left.begin(), left.end(), [](const auto& a, const auto& b) { return a.p > b.p || (a.p == b.p && a.id < b.id); });
  return left;
}

void show(const station::Model& m, std::string_view chain, const Probabilities& left) {
  double sum = 0;
  for (const auto& token : left) sum += static_cast<double>(token.p);
  fmt::print("    {:<50} {:5} left, sum {:.4f}: ", chain.empty() ? "(nothing)" : chain, left.size(), sum);
  for (std::size_t i = 0; i < std::min<std::size_t>(4, left.size()); ++i)
    fmt::print(" [{}] {:.4f}", m.shown(left[i].id), left[i].p);
  fmt::print("{}\n", left.size() > 4 ? " ..." : "");
}

nihao::Expected<void> tell(const station::Model& m) {
  station::Kept kept;
  NIHAO_TRY(const auto logits, station::forward(m, kept));
  fmt::print("C14 sampling: what comes after \"{}\", from {} logits\n\n", station::prompt, logits.size());

  NIHAO_TRY(const auto plain, left_by("", logits, m.ids));
  const auto logit = [&](nihao::TokenId id) { return static_cast<double>(logits[static_cast<std::size_t>(id)]); };
  double total = 0;
  for (const float l : logits) total += std::exp(static_cast<double>(l) - logit(plain[0].id));
  fmt::print("1. Softmax: p = e^(logit - largest) / sum, where the sum is {:.4f} and the largest logit {:.4f}\n", total,
             logit(plain[0].id));
  for (std::size_t i = 0; i < 8; ++i)
    fmt::print("    id {:6}  {:<14} logit {:8.4f}  e^{:<8.4f} / {:.4f} = {:.4f}\n", plain[i].id, m.shown(plain[i].id),
               logit(plain[i].id), logit(plain[i].id) - logit(plain[0].id), total, plain[i].p);
  double entropy = 0;
  for (const auto& token : plain)
    if (token.p > 0) entropy -= static_cast<double>(token.p) * std::log2(static_cast<double>(token.p));
  fmt::print("   Entropy {:.2f} bits: as unsure as between {:.0f} equally likely tokens.\n\n", entropy, std::exp2(entropy));

  fmt::print("2. Stages. Each sees what the one before left; the shares are taken anew of what is left.\n");
  for (const std::string_view chain : {"", "temperature=0.5", "temperature=1.5", "top_k=5", "top_p=0.5", "min_p=0.2",
                                       "penalties=1.3", "top_k=40; top_p=0.95; min_p=0.05; temperature=0.8"}) {
    NIHAO_TRY(const auto left, left_by(chain, logits, m.ids));
    show(m, chain, left);
  }
  fmt::print(
      "   top_k keeps the k likeliest; top_p the fewest whose shares reach p; min_p those with at least p times the best share;\n"
      "   temperature divides the logits (small: sharper); penalties push down what is in the text already.\n\n");

  constexpr std::string_view usual = "top_k=40; top_p=0.95; min_p=0.05; temperature=0.8";
  NIHAO_TRY(const auto expected, left_by(usual, logits, m.ids));
  std::map<nihao::TokenId, int> drawn;
  constexpr int draws = 2000;
  NIHAO_TRY(auto sampler, nihao::SamplerChain::parse(usual, logits.size(), /*seed*/ 7));
  for (int i = 0; i < draws; ++i) {
    NIHAO_TRY(const auto id, sampler.sample(logits, m.ids));
    ++drawn[id];
  }
  fmt::print(
      "3. The draw: u in [0, 1) from a counter (seed, token number) finds its place in the summed shares. {} draws with seed "
      "7:\n",
      draws);
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double share = static_cast<double>(drawn[expected[i].id]) / draws;
    worst = std::max(worst, std::abs(share - static_cast<double>(expected[i].p)));
    if (i < 6) fmt::print("    {:<14} p = {:.4f}   drawn {:.4f}\n", m.shown(expected[i].id), expected[i].p, share);
  }
  const double p = static_cast<double>(expected[0].p);
  fmt::print(
      "   The farthest any of the {} is off: {:.4f}. (One standard deviation of the first: sqrt(p (1 - p) / {}) = {:.4f}.)\n",
      expected.size(), worst, draws, std::sqrt(p * (1 - p) / draws));
  fmt::print("   Seeds 0 to 7 draw first:");
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    NIHAO_TRY(auto one, nihao::SamplerChain::parse(usual, logits.size(), seed));
    NIHAO_TRY(const auto id, one.sample(logits, m.ids));
    fmt::print(" [{}]", m.shown(id));
  }
  NIHAO_TRY(auto greedy, nihao::Chain<nihao::Greedy>::make(logits.size(), 0, {}));
  NIHAO_TRY(const auto best, greedy.sample(logits, m.ids));
  fmt::print(" - greedy always takes [{}]\n", m.shown(best));
  if (best != plain[0].id || worst > 0.06) return nihao::Error{nihao::ErrorCode::mismatch, "the draws do not follow the shares"};
  return {};
}

}  // namespace

int main(int argc, char** argv) { return station::run(argc, argv, tell); }
