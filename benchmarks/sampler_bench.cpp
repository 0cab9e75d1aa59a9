// One token from a vocabulary's logits, by the usual chain and by parts of it, on one thread.
//   nihao_bench_sampler [--benchmark_...]
// The logits are made up, as spread as a model's; each iteration takes the next of several rows, so that none is in the caches
// closest to the core.
#include <nihao/sampling/sampler.hpp>

#include <benchmark/benchmark.h>

#include <cmath>
#include <string>
#include <vector>

namespace {

constexpr std::size_t rows = 8;

// [rows, vocabulary]: normal with deviation 2.5, and a few tokens well above, as after a text.
std::vector<std::vector<float>> made_up_logits(std::size_t vocabulary) {
  nihao::Random random(1);
  std::vector<std::vector<float>> out(rows, std::vector<float>(vocabulary));
  for (auto& row : out) {
    for (float& x : row)
      x = static_cast<float>(2.5 * std::sqrt(-2 * std::log(1 - random.uniform())) *
                             std::cos(6.283185307179586 * random.uniform()));
    for (int i = 0; i < 40; ++i) row[random.next() % vocabulary] += static_cast<float>(12 * random.uniform());
  }
  return out;
}

void sample(benchmark::State& state, std::size_t vocabulary, const std::string& chain) {
  const auto logits = made_up_logits(vocabulary);
  nihao::Random random(2);
  std::vector<nihao::TokenId> history(512);
  for (nihao::TokenId& id : history) id = static_cast<nihao::TokenId>(random.next() % vocabulary);
  auto sampler = nihao::SamplerChain::parse(chain, vocabulary, 7).value();
  std::size_t row = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(sampler.sample(logits[row], history, 256).value());
    row = (row + 1) % rows;
  }
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const std::string usual = "top_k=40;top_p=0.95;min_p=0.05;temperature=0.8";
  for (const std::string& chain : {std::string("greedy"), usual, "penalties=1.1,frequency=0.1;" + usual,
                                   "penalties=1.1,last_n=512;dry=0.8;" + usual, std::string("top_p=0.95;temperature=0.8"),
                                   std::string("min_p=0.05;temperature=0.8"), std::string("mirostat2=5"), std::string("dist")})
    for (const std::size_t vocabulary : {std::size_t{32000}, std::size_t{131072}, std::size_t{262144}})
      benchmark::RegisterBenchmark((std::to_string(vocabulary) + "/" + chain).c_str(), [=](benchmark::State& state) {
        sample(state, vocabulary, chain);
      })->Unit(benchmark::kMicrosecond);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
