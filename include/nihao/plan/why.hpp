// Why a step takes as long as it does: each station against the roofline of its own arithmetic, and what would make it cheaper.
#pragma once

#include "../base/str.hpp"
#include "../format/registry.hpp"
#include "../kernels/kv_view.hpp"
#include "roofline.hpp"
#include "station_costs.hpp"

#include <cmath>
#include <string>

namespace nihao {

/// What the stations of a step do not say of themselves.
struct StepFacts {
  int workers = 1;
  bool exact = false;          ///< CpuOptions::exact
  bool prompt = false;         ///< its rows read a prompt; else each is the next token of a sequence
  std::size_t sequences = 1;   ///< whose tokens the step has
  KvLayout keys;               ///< how a layer's keys and values are stored
  std::size_t layers = 0;      ///< of the model
  std::size_t all_seeing = 0;  ///< of those, the ones without a sliding window
  std::size_t block = 256;     ///< most values of a format's block that the rows of all matrices are whole multiples of
};

/// What holds a station back. Overhead: neither its bytes nor its operations, at the machine's peaks, explain a quarter of its
/// time.
enum class StationBound : std::uint8_t { compute, memory, overhead };

[[nodiscard]] constexpr std::string_view to_string(StationBound bound) noexcept {
  switch (bound) {
    case StationBound::compute: return "compute";
    case StationBound::memory: return "memory";
    case StationBound::overhead: return "overhead";
  }
  return "unknown";
}

/// A station of one step, the mean over the steps that were seen.
struct StationReport {
  std::string_view name;
  double seconds, share;       ///< share: of the time of all stations
  double calls;                ///< a step
  double bytes, operations;    ///< a step
  bool int8;                   ///< which peak its operations are compared with: of int8 dot products, or of f32
  double bandwidth_fraction;   ///< of the peak
  double arithmetic_fraction;  ///< of the peak
  StationBound bound;
  std::string cut;  ///< one sentence: what would cut its time

  /// How near it comes to its roofline: 1 is as fast as its bytes or its operations allow.
  [[nodiscard]] double roof_fraction() const noexcept { return std::max(bandwidth_fraction, arithmetic_fraction); }
};

/// The stations of a step, the costliest first.
struct Why {
  double step_seconds = 0;  ///< of all stations
  std::vector<StationReport> stations;
  /// Shares of the step's time that went to stations with each bound.
  double compute_share = 0, memory_share = 0, overhead_share = 0;
};

namespace detail {

/// "12.3", and "12" where the number is large.
[[nodiscard]] inline std::string rounded(double value) {
  const double scale = value < 100 ? 10 : 1;
  return concat(std::round(value * scale) / scale);
}
[[nodiscard]] inline std::string percent(double fraction) { return concat(std::llround(100 * fraction), " %"); }

[[nodiscard]] inline double bits_of(FormatId id) {
  const FormatInfo info = format_info(id);
  return 8.0 * static_cast<double>(info.block_bytes) / static_cast<double>(info.block_size);
}
/// The format that takes the most bits below `bits` a weight, if one is noticeably smaller and has blocks of at most `block`
/// values. Formats of fewer than 4.5 bits are not proposed: what they lose is seen.
[[nodiscard]] inline std::optional<FormatId> next_smaller(double bits, std::size_t block) {
  std::optional<FormatId> best;
  for (const FormatId id : {FormatId::F16, FormatId::Q8_0, FormatId::Q6_K, FormatId::Q5_1, FormatId::Q5_0, FormatId::Q5_K,
                            FormatId::Q4_1, FormatId::Q4_0, FormatId::Q4_K})
    if (format_info(id).block_size <= block && bits_of(id) < 0.97 * bits && (!best || bits_of(id) >= bits_of(*best))) best = id;
  return best;
}

/// What is known of a station when its sentence is chosen.
struct Diagnosis {
  const StationCost& cost;
  const StationReport& report;
  const MachinePeaks& peaks;
  const StepFacts& facts;

  [[nodiscard]] double rows_of_call() const { return static_cast<double>(cost.rows) / static_cast<double>(cost.calls); }
  [[nodiscard]] double micros_of_call() const { return 1e6 * cost.seconds / static_cast<double>(cost.calls); }
  [[nodiscard]] double bits() const { return 8 * static_cast<double>(cost.work.bytes) / static_cast<double>(cost.weights); }

  [[nodiscard]] std::string sentence() const {
    if (cost.name == "head" && rows_of_call() > static_cast<double>(facts.sequences) && report.bound != StationBound::overhead)
      return concat("logits of the rows that are wanted alone: it makes ", rounded(rows_of_call()), " rows of them for ",
                    facts.sequences, facts.sequences == 1 ? " sequence" : " sequences");
    if (cost.kind == StationKind::pass) return pass();
    if (report.bound == StationBound::overhead) return overhead();
    const bool memory = report.bound == StationBound::memory;
    std::string less = cost.kind == StationKind::attention ? (memory ? keys() : scores()) : (memory ? weights() : products());
    if (report.roof_fraction() >= 0.6) return less;
    return concat("a better kernel, up to ", rounded(1 / report.roof_fraction()), " times (it reaches ",
                  percent(report.roof_fraction()), memory ? " of the bandwidth" : " of the peak", "); else ", less);
  }

  // A matmul that waits for its weights.
  [[nodiscard]] std::string weights() const {
    const double ridge = (report.int8 ? peaks.int8_per_second : peaks.f32_per_second) / peaks.bytes_per_second;
    const auto enough = std::llround(std::ceil(ridge * bits() / 16));  // a row is two operations a weight
    const std::string more = concat(facts.prompt ? "more tokens of the prompt" : "more sequences", " in a step: from ", enough,
                                    " rows on (", rounded(rows_of_call()), " now) the operations take as long as the bytes");
    const auto smaller = next_smaller(bits(), facts.block);
    if (!smaller) return concat(more, "; formats of fewer than these ", rounded(bits()), " bits a weight lose much");
    return concat("fewer bytes a weight (", format_info(*smaller).name, " has ", rounded(bits_of(*smaller)), " bits, these have ",
                  rounded(bits()), ": ", percent(1 - bits_of(*smaller) / bits()), " less to read), or ", more);
  }

  // A matmul that is busy multiplying.
  [[nodiscard]] std::string products() const {
    const double gain = peaks.f32_per_second > 0 ? peaks.int8_per_second / peaks.f32_per_second : 0;
    if (!report.int8 && gain > 1.2)
      return facts.exact ? concat("int8 dot products instead of exact f32: their peak is ", rounded(gain), " times as high")
                         : concat("weights in blocks (Q8_0): they are multiplied as int8, whose peak is ", rounded(gain),
                                  " times that of f32");
    return facts.prompt ? "fewer rows (what another prompt has read already is not read again) or a smaller model"
                        : "fewer sequences in a step, or a smaller model";
  }

  // Attention that waits for keys and values.
  [[nodiscard]] std::string keys() const {
    KvLayout smaller = facts.keys;
    smaller.type = facts.keys.type == KvType::f32 ? KvType::f16 : KvType::q8_0;
    if (facts.keys.type != KvType::q8_0)
      return concat("keys and values in ", to_string(smaller.type), " instead of ", to_string(facts.keys.type), ": ",
                    percent(1 - static_cast<double>(smaller.block_bytes()) / static_cast<double>(facts.keys.block_bytes())),
                    " less to read");
    return facts.all_seeing > 0 ? concat("a sliding window in the ", facts.all_seeing, " of ", facts.layers,
                                         " layers that have none, or fewer key/value heads: q8_0 is the smallest cache")
                                : std::string("a narrower window or fewer key/value heads: q8_0 is the smallest cache");
  }

  // Attention that is busy multiplying.
  [[nodiscard]] std::string scores() const {
    return concat(
        facts.all_seeing > 0
            ? concat("a sliding window in the ", facts.all_seeing, " of ", facts.layers, " layers that have none")
            : std::string("a narrower window"),
        ", or fewer query heads: its operations are positions times query heads, which a smaller cache or fewer key/value "
        "heads leave as they are");
  }

  // A matmul or attention whose work does not explain its time.
  [[nodiscard]] std::string overhead() const {
    const double explained = micros_of_call() * report.roof_fraction();
    const std::string times =
        concat("a call takes ", rounded(micros_of_call()), " us where its work explains ", rounded(explained));
    if (facts.workers > 1 && micros_of_call() < 100)
      return concat("fewer, larger calls (more rows in a step) or fewer threads: ", times, ", the rest goes to sharing it among ",
                    facts.workers);
    return concat("a better kernel, or more rows in a step: ", times);
  }

  // A pass over activations: no weights, no keys.
  [[nodiscard]] std::string pass() const {
    const std::string calls =
        concat(rounded(report.calls), report.calls == 1 ? " call" : " calls", " of ", rounded(micros_of_call()), " us");
    if (micros_of_call() < 100)
      return concat("doing it within the matmul before or after: ", calls, " a step, with no weights to read");
    return concat("fewer rows in a step, so that they stay in the cache, or doing it within a matmul: ", calls, " over ",
                  rounded(rows_of_call()), " rows of activations");
  }
};

}  // namespace detail

/// Explains steps that `costs` has seen, on a machine with these peaks. A station's bound is memory if its bytes at the peak take
/// longer than its operations at theirs, else compute, but overhead where both explain less than a quarter of its time. Matmuls
/// of weights below 16 bits are compared with the int8 peak, unless facts.exact; everything else with that of f32.
[[nodiscard]] inline Why explain(const StationCosts& costs, const MachinePeaks& peaks, const StepFacts& facts) {
  Why why;
  if (costs.steps() == 0) return why;
  const auto steps = static_cast<double>(costs.steps());
  const double total = costs.seconds();
  why.step_seconds = total / steps;
  for (const StationCost& cost : costs.stations()) {
    const bool matmul = cost.kind == StationKind::matmul;
    const double bytes = static_cast<double>(cost.work.bytes), operations = static_cast<double>(cost.work.flops);
    const bool int8 = matmul && !facts.exact && 8 * bytes < 15.5 * static_cast<double>(cost.weights);
    const Roofline roof{cost.work, cost.seconds, peaks.bytes_per_second, int8 ? peaks.int8_per_second : peaks.f32_per_second};
    StationReport report{.name = cost.name,
                         .seconds = cost.seconds / steps,
                         .share = total > 0 ? cost.seconds / total : 0,
                         .calls = static_cast<double>(cost.calls) / steps,
                         .bytes = bytes / steps,
                         .operations = operations / steps,
                         .int8 = int8,
                         .bandwidth_fraction = roof.bandwidth_fraction(),
                         .arithmetic_fraction = roof.flops_fraction(),
                         .bound = roof.bound() == Bound::memory ? StationBound::memory : StationBound::compute,
                         .cut = {}};
    if (report.roof_fraction() < 0.25) report.bound = StationBound::overhead;
    report.cut = detail::Diagnosis{cost, report, peaks, facts}.sentence();
    (report.bound == StationBound::compute  ? why.compute_share
     : report.bound == StationBound::memory ? why.memory_share
                                            : why.overhead_share) += report.share;
    why.stations.push_back(std::move(report));
  }
  std::sort(why.stations.begin(), why.stations.end(), [](const StationReport& a, const StationReport& b) {
    return a.seconds != b.seconds ? a.seconds > b.seconds : a.name < b.name;
  });
  return why;
}

}  // namespace nihao
