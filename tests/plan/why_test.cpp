#include "nihao/plan/why.hpp"

#include "nihao/kernels/attention.hpp"

#include <doctest/doctest.h>

using namespace nihao;

namespace {

// A machine of round numbers: the ridge of int8 is at 20 operations a byte, that of f32 at 5.
constexpr MachinePeaks peaks{.bytes_per_second = 10e9, .int8_per_second = 200e9, .f32_per_second = 50e9};

StepFacts facts() { return {.keys = {KvType::f16, 2, 64}, .layers = 4, .all_seeing = 4}; }

// Steps whose stations take as long as they are told to.
class Step {
 public:
  Step() { costs_.see({"begin", -1, {}}, now_); }
  Step& station(std::string_view name, double seconds, Work work = {}, std::size_t rows = 1,
                const AttentionInputs* attention = nullptr) {
    now_ += std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
    costs_.see({name, 0, MatrixView<const float>(values_.data(), rows, 1), work, attention}, now_);
    return *this;
  }
  Step& matmul(std::string_view name, double seconds, double bits, std::uint64_t weights, std::size_t rows = 1) {
    return station(name, seconds, {static_cast<std::uint64_t>(bits * static_cast<double>(weights) / 8), 2 * weights * rows},
                   rows);
  }
  Step& attention(double seconds, Work work, std::size_t rows = 1) {
    static constexpr AttentionInputs inputs{};
    return station("attn_heads_concat", seconds, work, rows, &inputs);
  }
  [[nodiscard]] const StationCosts& costs() const { return costs_; }
  [[nodiscard]] StationReport first(const StepFacts& f) const { return explain(costs_, peaks, f).stations.at(0); }

 private:
  StationCosts costs_;
  std::chrono::steady_clock::time_point now_{};
  std::vector<float> values_ = std::vector<float>(512);
};

bool says(const StationReport& report, std::string_view part) {
  INFO(report.cut);
  const bool found = report.cut.find(part) != std::string::npos;
  CHECK_MESSAGE(found, std::string(part));
  return found;
}

}  // namespace

TEST_CASE("what one call makes is one station, summed over layers and steps, and all time is some station's") {
  Step step;
  step.station("embed", 0.001);
  for (int layer = 0; layer < 2; ++layer)
    step.station("input_norm", 0.001)
        .matmul("q_proj", 0.004, 5, 800)
        .matmul("k_proj", 0.001, 5, 80)
        .matmul("v_proj", 0.001, 5, 80)
        .station("q_before_rope", 0.001)
        .station("q_after_rope", 0.001)
        .station("hidden", 0.002);
  step.station("final_norm", 0.001).matmul("logits", 0.003, 8, 400).station("begin", 5.0).station("embed", 0.001);
  const StationCosts& costs = step.costs();
  CHECK(costs.steps() == 2);
  CHECK(costs.seconds() == doctest::Approx(0.028));  // nothing between two steps
  REQUIRE(costs.stations().size() == 5);
  const StationCost &embed = costs.stations()[0], &norm = costs.stations()[1], &qkv = costs.stations()[2];
  CHECK(embed.calls == 2);
  CHECK(norm.name == "norm");
  CHECK(norm.seconds == doctest::Approx(0.007));
  CHECK(norm.calls == 3);  // "hidden" and the norm after it follow each other
  CHECK(norm.kind == StationKind::pass);
  CHECK(qkv.name == "qkv");
  CHECK(qkv.seconds == doctest::Approx(0.012));
  CHECK(qkv.calls == 2);
  CHECK(qkv.rows == 2);
  CHECK(qkv.weights == 2 * 960);
  CHECK(qkv.work.bytes == 2 * 600);
  CHECK(qkv.kind == StationKind::matmul);
  CHECK(costs.stations()[3].name == "rope");
  CHECK(costs.stations()[4].name == "head");
  CHECK(station_of("a new layer's own") == "a new layer's own");

  const Why why = explain(costs, peaks, facts());
  CHECK(why.step_seconds == doctest::Approx(0.014));
  CHECK(why.stations[0].name == "qkv");
  CHECK(why.stations[0].seconds == doctest::Approx(0.006));
  CHECK(why.stations[0].share == doctest::Approx(12.0 / 28));
  CHECK(why.stations[0].calls == 1);
  CHECK(why.stations[0].bytes == 600);
  CHECK(why.compute_share + why.memory_share + why.overhead_share == doctest::Approx(1));
  CHECK(why.stations[1].name == "norm");
}

TEST_CASE("steps that nobody saw are explained by nothing") {
  CHECK(explain(StationCosts{}, peaks, facts()).stations.empty());
  CHECK(explain(StationCosts{}, peaks, facts()).step_seconds == 0);
}

TEST_CASE("a matmul that waits for its weights wants a smaller format or more rows, and is told how many") {
  // 1e8 weights of 5 bits: 62.5 MB, 6.25 ms at the peak; its operations 1 ms.
  const StationReport r = Step().matmul("ffn_gate", 0.008, 5, 100'000'000).first(facts());
  CHECK(r.bound == StationBound::memory);
  CHECK(r.int8);
  CHECK(r.bandwidth_fraction == doctest::Approx(0.78125));
  CHECK(r.roof_fraction() == r.bandwidth_fraction);
  says(r, "Q4_K has 4.5 bits, these have 5: 10 % less to read");
  says(r, "more sequences in a step: from 7 rows on (1 now)");  // 20 operations a byte * 0.625 bytes / 2, rounded up
  StepFacts narrow = facts();
  narrow.block = 32, narrow.prompt = true;
  const StationReport n = Step().matmul("ffn_gate", 0.008, 5, 100'000'000).first(narrow);
  says(n, "Q4_0 has 4.5 bits");
  says(n, "more tokens of the prompt in a step");
}

TEST_CASE("a matmul of the smallest format is not told to take a smaller one") {
  const StationReport r = Step().matmul("ffn_down", 0.008, 4.5, 100'000'000).first(facts());
  CHECK(r.bound == StationBound::memory);
  CHECK(r.cut.starts_with("more sequences in a step"));
  says(r, "formats of fewer than these 4.5 bits a weight lose much");
  // 5.6 ms of bytes.
  says(Step().matmul("ffn_down", 0.014, 4.5, 100'000'000).first(facts()),
       "a better kernel, up to 2.5 times (it reaches 40 % of the bandwidth); else more sequences");
}

TEST_CASE("a matmul that is busy multiplying is told how near it is to the peak, and what arithmetic would be faster") {
  StepFacts prompt = facts();
  prompt.prompt = true;
  // 512 rows, 1e6 weights: 1.024 Gop, 5.12 ms at the int8 peak.
  const StationReport slow = Step().matmul("ffn_gate", 0.01024, 5, 1'000'000, 512).first(prompt);
  CHECK(slow.bound == StationBound::compute);
  CHECK(slow.arithmetic_fraction == doctest::Approx(0.5));
  says(slow, "a better kernel, up to 2 times (it reaches 50 % of the peak)");
  says(slow, "fewer rows");
  const StationReport fast = Step().matmul("ffn_gate", 0.0064, 5, 1'000'000, 512).first(prompt);
  CHECK(fast.cut.starts_with("fewer rows"));
  const StationReport decode = Step().matmul("ffn_gate", 0.0064, 5, 1'000'000, 512).first(facts());
  CHECK(decode.cut.starts_with("fewer sequences in a step"));
  // f32: 20.48 ms at that peak.
  const StationReport floats = Step().matmul("ffn_gate", 0.03, 32, 1'000'000, 512).first(prompt);
  CHECK(!floats.int8);
  CHECK(floats.bound == StationBound::compute);
  says(floats, "weights in blocks (Q8_0): they are multiplied as int8, whose peak is 4 times that of f32");
  prompt.exact = true;
  const StationReport exact = Step().matmul("ffn_gate", 0.03, 5, 1'000'000, 512).first(prompt);
  CHECK(!exact.int8);
  says(exact, "int8 dot products instead of exact f32: their peak is 4 times as high");
}

TEST_CASE("a head that makes logits nobody wants is told so; one that does not is a matmul like others") {
  says(Step().matmul("logits", 0.01, 8.5, 2'000'000, 512).first(facts()),
       "logits of the rows that are wanted alone: it makes 512 rows");
  const StationReport one = Step().matmul("logits", 0.003, 8.5, 20'000'000).first(facts());
  CHECK(one.bound == StationBound::memory);
  says(one, "Q6_K has 6.6 bits, these have 8.5");
}

TEST_CASE("attention that waits for keys and values wants a smaller cache, or fewer positions once it is the smallest") {
  const Work work{80'000'000, 40'000'000};  // 8 ms of bytes at the peak
  StepFacts f = facts();
  const StationReport half = Step().attention(0.01, work).first(f);
  CHECK(half.bound == StationBound::memory);
  CHECK(!half.int8);
  says(half, "keys and values in q8_0 instead of f16: 47 % less to read");
  f.keys.type = KvType::f32;
  says(Step().attention(0.01, work).first(f), "keys and values in f16 instead of f32: 50 % less to read");
  f.keys.type = KvType::q8_0;
  says(Step().attention(0.01, work).first(f), "a sliding window in the 4 of 4 layers that have none, or fewer key/value heads");
  f.all_seeing = 0;
  says(Step().attention(0.01, work).first(f), "a narrower window");
}

TEST_CASE("attention that is busy multiplying wants fewer positions or query heads, not a smaller cache") {
  const Work work{10'000'000, 400'000'000};  // 8 ms of operations at the f32 peak
  StepFacts f = facts();
  f.all_seeing = 1;
  const StationReport r = Step().attention(0.01, work, 512).first(f);
  CHECK(r.bound == StationBound::compute);
  CHECK(r.arithmetic_fraction == doctest::Approx(0.8));
  says(r, "a sliding window in the 1 of 4 layers that have none, or fewer query heads");
  says(r, "a smaller cache or fewer key/value heads leave as they are");
  f.all_seeing = 0;
  CHECK(Step().attention(0.01, work, 512).first(f).cut.starts_with("a narrower window, or fewer query heads"));
}

TEST_CASE("a station whose work explains little of its time is overhead, whatever it is") {
  StepFacts f = facts();
  f.workers = 2;
  const StationReport small = Step().matmul("q_proj", 20e-6, 5, 16'000).first(f);  // 10 kB: a microsecond
  CHECK(small.bound == StationBound::overhead);
  says(small, "fewer threads: a call takes 20 us where its work explains 1, the rest goes to sharing it among 2");
  f.workers = 1;
  says(Step().matmul("q_proj", 20e-6, 5, 16'000).first(f), "a better kernel, or more rows in a step: a call takes 20 us");
  says(Step().station("input_norm", 2e-6).first(f), "within the matmul before or after: 1 call of 2 us a step");
  const StationReport large = Step().station("ffn_act", 300e-6, {}, 512).first(f);
  CHECK(large.bound == StationBound::overhead);
  CHECK(large.roof_fraction() == 0);
  says(large,
       "fewer rows in a step, so that they stay in the cache, or doing it within a matmul: 1 call of 300 us over 512 rows");
}
