// Loading tokenizers and encoding text with them.
//   nihao_bench_tokenizer FILE.gguf... TEXT
// Bytes are of the text; CPU time of one thread. The first encode is not timed: it fills in which tokens are words of their own.
#include <nihao/files/gguf.hpp>
#include <nihao/text/tokenizer.hpp>

#include <benchmark/benchmark.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s [--benchmark_...] FILE.gguf... TEXT\n", argv[0]);
    return 2;
  }
  std::ifstream in(argv[argc - 1], std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  for (int i = 1; i + 1 < argc; ++i) {
    const std::string path = argv[i];
    const std::string name = path.substr(path.rfind('/') + 1);
    benchmark::RegisterBenchmark(("load/" + name).c_str(), [path](benchmark::State& state) {
      const auto file = nihao::Gguf::open(path);
      if (!file) return state.SkipWithError(file.error().message().c_str());
      for (auto _ : state) {
        auto tokenizer = nihao::Tokenizer::from_gguf(*file);
        if (!tokenizer) return state.SkipWithError(tokenizer.error().message().c_str());
        benchmark::DoNotOptimize(tokenizer);
      }
    })->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(("encode/" + name).c_str(), [path, &text](benchmark::State& state) {
      const auto file = nihao::Gguf::open(path);
      if (!file) return state.SkipWithError(file.error().message().c_str());
      const auto tokenizer = nihao::Tokenizer::from_gguf(*file);
      if (!tokenizer) return state.SkipWithError(tokenizer.error().message().c_str());
      std::size_t tokens = tokenizer->encode(text, {.add_special = false})->size();
      for (auto _ : state) {
        auto ids = tokenizer->encode(text, {.add_special = false});
        benchmark::DoNotOptimize(ids);
      }
      state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * static_cast<std::int64_t>(text.size()));
      state.counters["tokens"] = static_cast<double>(tokens);
    })->Unit(benchmark::kMillisecond);
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
