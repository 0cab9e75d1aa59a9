// What whole layers cost, with made-up weights of published sizes.
//   nihao_bench_layers mla [THREADS=1] [DEPTH=4096]   latent attention of DeepSeek-V3 in its three ways
//   nihao_bench_layers moe [THREADS=1]                experts of Qwen3-30B-A3B beside dense feed-forwards with as many active and
//   total weights
// Matrices are Q8_0. Rounds of all kinds in turn; medians.
#include "made_up.hpp"

#include <nihao/models/any_model.hpp>
#include <nihao/models/presets.hpp>

#include <chrono>
#include <cstdlib>
#include <deque>
#include <functional>

using namespace nihao;

namespace {

constexpr std::size_t prompt = 256;

// Medians of the seconds that each of `calls` takes, called in turn.
Expected<std::vector<double>> medians(std::size_t rounds, std::span<const std::function<Expected<void>()>> calls) {
  std::vector<std::vector<double>> seconds(calls.size());
  for (std::size_t round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const auto start = std::chrono::steady_clock::now();
      NIHAO_CHECK(calls[i]());
      seconds[i].push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
  std::vector<double> result;
  for (std::vector<double>& s : seconds) {
    std::sort(s.begin(), s.end());
    result.push_back(s[s.size() / 2]);
  }
  return result;
}

// A model of one layer and next to nothing around it.
struct Subject {
  std::string name;
  AnyModel model;
  std::shared_ptr<ModelContext> context;
};
Expected<Subject> subject(std::string name, const Config& config, const station::MadeUp& made, int threads,
                          std::size_t positions) {
  NIHAO_TRY(const Cpu cpu, Cpu::create({.threads = threads}));
  NIHAO_TRY(AnyModel model, load_family<Cpu>(config, made.source(), cpu, {}, {}, "the benchmark"));
  NIHAO_TRY(auto context, model.context({.positions = positions, .sequences = 8, .chunk = prompt, .kv = KvType::f16}));
  return Subject{std::move(name), std::move(model), std::move(context)};
}

// A step of `count` tokens of each of `sequences`, which are forgotten again.
Expected<void> step(Subject& s, std::size_t sequences, std::size_t count, Random& random) {
  std::vector<TokenId> ids(sequences * count);
  for (TokenId& id : ids) id = static_cast<TokenId>(random.next() % s.model.config().vocab);
  std::vector<SequenceTokens> batch;
  for (std::size_t i = 0; i < sequences; ++i) batch.push_back({i, std::span(ids).subspan(i * count, count)});
  std::vector<std::size_t> before;
  for (std::size_t i = 0; i < sequences; ++i) before.push_back(s.context->cache().length(i));
  if (auto done = s.context->step(batch); !done) return std::move(done).error();
  for (std::size_t i = 0; i < sequences; ++i) s.context->cache().truncate(i, before[i]);
  return {};
}

// Times steps of all subjects and prints a line for each.
Expected<void> compare(std::span<Subject> subjects, std::string_view what, std::size_t sequences, std::size_t count) {
  Random random(2);
  std::vector<std::function<Expected<void>()>> calls;
  for (Subject& s : subjects) calls.emplace_back([&s, &random, sequences, count] { return step(s, sequences, count, random); });
  NIHAO_TRY(const auto seconds, medians(count > 1 ? 7 : 31, calls));
  fmt::print("{}:\n", what);
  for (std::size_t i = 0; i < subjects.size(); ++i)
    fmt::print("  {:<28}{:10.3f} ms{:8.2f} of the first\n", subjects[i].name, 1e3 * seconds[i], seconds[i] / seconds[0]);
  return {};
}

Expected<void> latent_attention(int threads, std::size_t depth) {
  Config c = find_preset("deepseek-v3")->config;
  c.layers.resize(1);
  c.d_ff = 32, c.vocab = 64;
  station::MadeUp made(1, FormatId::Q8_0, 64);
  made.ends(c).norms(c, 0).latent_attention(c, 0).dense(c, 0);
  std::vector<Subject> subjects;
  subjects.reserve(3);
  for (const auto& [name, mode] :
       {std::pair("naive", MlaMode::naive), std::pair("absorbed", MlaMode::absorbed), std::pair("merged", MlaMode::merged)}) {
    c.mla.mode = mode;
    NIHAO_TRY(Subject one, subject(name, c, made, threads, depth + prompt));
    subjects.push_back(std::move(one));
  }
  Random random(3);
  for (Subject& s : subjects) {
    std::vector<TokenId> ids(depth);
    for (TokenId& id : ids) id = static_cast<TokenId>(random.next() % c.vocab);
    if (auto read = s.context->prefill(0, ids); !read) return std::move(read).error();
  }
  fmt::print("Latent attention of DeepSeek-V3, one layer, {} threads\n", threads);
  NIHAO_CHECK(compare(subjects, concat("a token at position ", depth), 1, 1));
  NIHAO_CHECK(compare(subjects, concat(prompt, " tokens at position ", depth), 1, prompt));
  for (Subject& s : subjects) s.context->cache().truncate(0, 0);
  NIHAO_CHECK(compare(subjects, "a token at position 0", 1, 1));
  return compare(subjects, concat(prompt, " tokens at position 0"), 1, prompt);
}

Expected<void> mixture(int threads) {
  Config experts = find_preset("qwen3-30b-a3b")->config;
  experts.architecture = "llama";  // without the norms of q and k
  experts.layers.resize(1);
  experts.layers[0].kind = 0;
  experts.heads = experts.kv_heads = 1, experts.head_dim = 64, experts.vocab = 64;
  Config active = experts, total = experts;
  for (Config* dense : {&active, &total}) dense->router = {}, dense->expert_ff = 0;
  active.d_ff = experts.router.chosen * experts.expert_ff;
  total.d_ff = experts.router.experts * experts.expert_ff;
  std::vector<Subject> subjects;
  subjects.reserve(3);
  std::deque<station::MadeUp> all;
  for (const auto& [name, config] : {std::pair("dense, the active weights", &active), std::pair("experts", &experts),
                                     std::pair("dense, all weights", &total)}) {
    station::MadeUp& made = all.emplace_back(1, FormatId::Q8_0, 64);
    made.ends(*config).norms(*config, 0).grouped_attention(*config, 0);
    if (config == &experts) made.experts(*config, 0);
    else made.dense(*config, 0);
    NIHAO_TRY(Subject one, subject(name, *config, made, threads, prompt + 8));
    subjects.push_back(std::move(one));
  }
  fmt::print("{} of {} experts of Qwen3-30B-A3B, one layer, {} threads\n", experts.router.chosen, experts.router.experts,
             threads);
  NIHAO_CHECK(compare(subjects, "a token", 1, 1));
  NIHAO_CHECK(compare(subjects, "a token of each of 8 sequences", 8, 1));
  return compare(subjects, concat(prompt, " tokens"), 1, prompt);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  const auto number = [&](int i, int otherwise) { return argc > i ? std::atoi(argv[i]) : otherwise; };
  if (what != "mla" && what != "moe") return fmt::print(stderr, "usage: {} mla|moe [THREADS] [DEPTH]\n", argv[0]), 2;
  const auto done =
      what == "mla" ? latent_attention(number(2, 1), static_cast<std::size_t>(number(3, 4096))) : mixture(number(2, 1));
  if (!done) return fmt::print(stderr, "{}\n", done.error().message()), 1;
  return 0;
}
