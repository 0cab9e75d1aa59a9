// nihao bench: reading a prompt (pp) and making tokens (tg), as llama-bench defines the two, against what the machine can do.
#include "commands.hpp"
#include "model.hpp"
#include "speed.hpp"
#include "why.hpp"

#include <nihao/sampling/random.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <optional>

namespace nihao::program {

namespace {

struct BenchFlags {
  ModelFlags model;
  std::vector<std::size_t> prompts{512}, tokens{128}, depths{0}, batches{1};
  std::vector<int> threads;
  std::size_t repetitions = 5;
  bool why = false, json = false;
};

// pp: `count` tokens of one prompt. tg: `count` tokens one at a time, of `batch` sequences at once. Both after `depth` tokens.
struct Test {
  bool prompt;
  std::size_t count, depth, batch;

  [[nodiscard]] std::string name() const {
    std::string out = fmt::format("{}{}", prompt ? "pp" : "tg", count);
    if (depth > 0) out += fmt::format("@d{}", depth);
    if (batch > 1) out += fmt::format("@b{}", batch);
    return out;
  }
  [[nodiscard]] std::size_t all_tokens() const { return count * batch; }
};

// A context with the test's sequences at their depth, and random tokens to feed it.
class Runner {
 public:
  [[nodiscard]] static Expected<Runner> create(const AnyModel& model, const BenchFlags& flags, const Test& test) {
    Runner r;
    r.test_ = test;
    ContextOptions options = flags.model.context_options();
    options.positions = test.depth + test.count;
    options.sequences = test.batch;
    options.chunk = std::max(options.chunk, test.batch);
    NIHAO_TRY(r.context_, model.context(options));
    r.tokens_.resize(std::max(test.depth, test.count) * test.batch);
    Random random(1);
    for (TokenId& id : r.tokens_) id = static_cast<TokenId>(random.next() % model.config().vocab);
    for (std::size_t s = 0; s < test.batch && test.depth > 0; ++s)
      NIHAO_CHECK(r.context_->prefill(s, std::span(r.tokens_).first(test.depth)));
    return r;
  }

  /// Runs the test once; returns its seconds.
  [[nodiscard]] Expected<double> run(const ObserverRef* observer = nullptr) {
    for (std::size_t s = 0; s < test_.batch; ++s) context_->cache().truncate(s, test_.depth);
    const auto start = std::chrono::steady_clock::now();
    const std::size_t step = step_tokens();
    for (std::size_t done = 0; done < test_.count; done += step) {
      std::vector<SequenceTokens> batch;
      for (std::size_t s = 0; s < test_.batch; ++s) {
        const std::size_t count = std::min(step, test_.count - done);
        batch.push_back({s, std::span(tokens_).subspan(s * test_.count + done, count),
                         done + count == test_.count || !test_.prompt ? Wanted::last : Wanted::none});
      }
      NIHAO_CHECK(context_->step(batch, observer));
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  /// How many steps that is.
  [[nodiscard]] std::size_t steps() const { return ceil_div(test_.count, step_tokens()); }

 private:
  Runner() = default;
  [[nodiscard]] std::size_t step_tokens() const { return test_.prompt ? context_->chunk() : 1; }  // of each sequence

  Test test_{};
  std::shared_ptr<ModelContext> context_;
  std::vector<TokenId> tokens_;
};

struct Result {
  Test test;
  int threads;
  double median, min, max;  // tokens per second
  Work work;                // of one run
  Roofline roofline;        // at the median
  std::optional<WhyTest> why;
};

// Runs the test up to three times more, with its stations watched; tells of the run whose time is in the middle.
Expected<WhyTest> ask_why(Runner& runner, const AnyModel& model, const BenchFlags& flags, const Result& result,
                          const MachinePeaks& peaks) {
  std::vector<std::pair<double, StationCosts>> runs(std::clamp<std::size_t>(flags.repetitions, 1, 3));
  for (auto& [seconds, costs] : runs) {
    const ObserverRef observer(costs);
    NIHAO_TRY(seconds, runner.run(&observer));
  }
  std::sort(runs.begin(), runs.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto& [seconds, costs] = runs[(runs.size() - 1) / 2];
  const auto steps = static_cast<double>(runner.steps());
  const Test& test = result.test;
  return WhyTest{result.roofline.bound(), test.prompt ? ceil_div(test.count, runner.steps()) : test.batch,
                 result.roofline.seconds / steps, seconds / steps,
                 explain(costs, peaks, step_facts(model, flags.model.context_options().kv, test.prompt, test.batch))};
}

Expected<Result> measure(const AnyModel& model, const BenchFlags& flags, const Test& test, const MachinePeaks& peaks) {
  NIHAO_TRY(Runner runner, Runner::create(model, flags, test));
  WorkCounter counter;  // the first run is not timed: it warms up, and counts
  const ObserverRef observer(counter);
  NIHAO_CHECK(runner.run(&observer));
  std::vector<double> seconds;
  for (std::size_t i = 0; i < flags.repetitions; ++i) { NIHAO_TRY(seconds.emplace_back(), runner.run()); }
  std::sort(seconds.begin(), seconds.end());
  const double middle = (seconds[seconds.size() / 2] + seconds[(seconds.size() - 1) / 2]) / 2;
  const auto rate = [&](double s) { return static_cast<double>(test.all_tokens()) / s; };
  Result result{test,
                model.device().workers(),
                rate(middle),
                rate(seconds.back()),
                rate(seconds.front()),
                counter.total,
                Roofline{counter.total, middle, peaks.bytes_per_second, arithmetic_peak(model, peaks)},
                {}};
  if (flags.why) { NIHAO_TRY(result.why, ask_why(runner, model, flags, result, peaks)); }
  return result;
}

Json to_json(const Result& r, const MachinePeaks& peaks) {
  Json out{{"test", r.test.name()},
           {"threads", r.threads},
           {"tokens_per_s", {{"median", r.median}, {"min", r.min}, {"max", r.max}}},
           {"bytes_per_token", static_cast<double>(r.work.bytes) / static_cast<double>(r.test.all_tokens())},
           {"flops_per_token", static_cast<double>(r.work.flops) / static_cast<double>(r.test.all_tokens())},
           {"bandwidth_fraction", r.roofline.bandwidth_fraction()},
           {"flops_fraction", r.roofline.flops_fraction()},
           {"arithmetic_intensity", r.roofline.arithmetic_intensity()},
           {"bound", to_string(r.roofline.bound())},
           {"depth", r.test.depth},
           {"batch", r.test.batch},
           {"peaks",
            {{"read_bytes_per_s", peaks.bytes_per_second},
             {"int8_ops_per_s", peaks.int8_per_second},
             {"f32_ops_per_s", peaks.f32_per_second}}}};
  if (r.why) out["why"] = to_json(*r.why);
  return out;
}

Expected<int> bench(const BenchFlags& flags) {
  std::vector<Test> tests;
  for (const std::size_t depth : flags.depths) {
    for (const std::size_t n : flags.prompts)
      if (n > 0) tests.push_back({true, n, depth, 1});
    for (const std::size_t batch : flags.batches)
      for (const std::size_t n : flags.tokens)
        if (n > 0) tests.push_back({false, n, depth, batch});
  }
  if (tests.empty()) throw UsageError("-p and -n are 0: there is nothing to measure");
  Json out(Json::value_t::array);
  std::vector<int> threads = flags.threads;
  if (threads.empty()) threads.push_back(0);
  for (const int count : threads) {
    LoadOptions options = flags.model.load_options();
    options.cpu.threads = count;
    NIHAO_TRY(const AnyModel model, load_model(flags.model.path, options));
    NIHAO_TRY(const MachinePeaks peaks, measure_peaks(model.device()));
    const int workers = model.device().workers();
    if (!flags.json) {
      if (count == threads.front()) {
        fmt::print("{}: {}; {}{}, keys and values {}, chunk {}\n", flags.model.path, describe(model.config(), model.tensors()),
                   to_string(model.device().isa()), flags.model.exact ? ", exact" : "", to_string(flags.model.kv_type()),
                   flags.model.chunk);
        fmt::print("{:<16} {:>7} {:>10} {:>19} {:>14} {:>10} {:>11} {:>10}  {}\n", "test", "threads", "tokens/s", "min - max",
                   "bytes/token", "bandwidth", "arithmetic", "ops/byte", "bound");
      }
      fmt::print("{:<16} {:>7} {:>62} {:>11}\n", "(peaks)", workers, in_bytes(peaks.bytes_per_second) + "/s",
                 fmt::format("{:.0f} Gop/s", arithmetic_peak(model, peaks) / 1e9));
    }
    for (const Test& test : tests) {
      NIHAO_TRY(const Result r, measure(model, flags, test, peaks));
      if (flags.json) {
        out.push_back(to_json(r, peaks));
        continue;
      }
      fmt::print("{:<16} {:>7} {:>10.2f} {:>19} {:>14} {:>8.1f} % {:>9.1f} % {:>10.1f}  {}\n", test.name(), r.threads, r.median,
                 fmt::format("{:.2f} - {:.2f}", r.min, r.max),
                 in_bytes(static_cast<double>(r.work.bytes) / static_cast<double>(test.all_tokens())),
                 100 * r.roofline.bandwidth_fraction(), 100 * r.roofline.flops_fraction(), r.roofline.arithmetic_intensity(),
                 to_string(r.roofline.bound()));
      if (r.why) fmt::print("{}", to_text(*r.why));
      std::fflush(stdout);
    }
  }
  if (flags.json) print_json(out);
  return 0;
}

}  // namespace

void add_bench(Commands& commands) {
  const auto flags = std::make_shared<BenchFlags>();
  CLI::App& app = commands.add("bench", "Speed, and what bounds it", [flags] { return bench(*flags); });
  flags->model.add_common(app);
  const auto list = [&]<class T>(const char* name, std::vector<T>& values, const char* description, int least, int most) {
    add_list(app, name, "N,...", values, description, static_cast<T>(least), static_cast<T>(most));
  };
  constexpr int most_positions = 1 << 24;
  list("-p", flags->prompts, "pp: tokens of the prompt; 0: none", 0, most_positions);
  list("-n", flags->tokens, "tg: tokens to make, one after the other; 0: none", 0, most_positions);
  list("-d,--depth", flags->depths, "tokens that are in the cache before", 0, most_positions);
  list("-b,--batch", flags->batches, "tg: sequences that make tokens at once", 1, 1 << 12);
  list("-t,--threads", flags->threads, "threads (default: all)", 1, Cpu::max_threads);
  app.add_option("-r", flags->repetitions, "how often each is timed, after one run that is not")
      ->type_name("N")
      ->transform(within(1, 100000))
      ->capture_default_str();
  app.add_flag("--why", flags->why,
               "for each test, the three costliest stations of a step, what bounds each, and what would cut it");
  app.add_flag("--json", flags->json, "print one JSON document");
}

}  // namespace nihao::program
