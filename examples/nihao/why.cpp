#include "why.hpp"

#include <nihao/models/shape.hpp>

#include <fmt/core.h>

#include <algorithm>

namespace nihao::program {

namespace {

constexpr std::size_t told = 3;  // stations of a step

// "24.1 GB/s, 87 % of the bandwidth", by what binds the station; of overhead the larger share.
std::string reached(const StationReport& s) {
  if (s.bytes == 0 && s.operations == 0) return "no weights or keys read";
  if (s.bound == StationBound::memory || (s.bound == StationBound::overhead && s.bandwidth_fraction > s.arithmetic_fraction))
    return fmt::format("{:.1f} GB/s, {:.0f} % of the bandwidth{}", s.bytes / s.seconds / 1e9, 100 * s.bandwidth_fraction,
                       s.bandwidth_fraction > 1.05 ? " (some comes from a cache)" : "");
  return fmt::format("{:.0f} {}, {:.0f} % of the {} peak", s.operations / s.seconds / 1e9, s.int8 ? "Gop/s" : "GFLOP/s",
                     100 * s.arithmetic_fraction, s.int8 ? "int8" : "f32");
}

}  // namespace

StepFacts step_facts(const AnyModel& model, KvType kv, bool prompt, std::size_t sequences) {
  const Config& c = model.config();
  std::size_t all_seeing = 0;
  for (const LayerConfig& layer : c.layers) all_seeing += layer.window == 0 ? 1 : 0;
  const bool wide = c.d_model % 256 == 0 && c.d_ff % 256 == 0 && c.heads * c.head_dim % 256 == 0;
  return {.workers = model.device().workers(),
          .exact = model.device().exact(),
          .prompt = prompt,
          .sequences = sequences,
          .keys = cache_layout(c, kv),
          .layers = c.layers.size(),
          .all_seeing = all_seeing,
          .block = wide ? 256u : 32u};
}

std::string to_text(const WhyTest& test) {
  const Why& why = test.why;
  std::string out = fmt::format(
      "    bound by {}. A step of {} {} takes {:.3f} ms; with its stations timed, nothing fused, {:.3f} ms, and they sum up to "
      "{:.3f}:\n"
      "    {:.0f} % is bound by compute, {:.0f} % by memory, {:.0f} % is overhead. The costliest, and what would cut each:\n",
      to_string(test.bound), test.rows, test.rows == 1 ? "row" : "rows", 1e3 * test.step_seconds,
      1e3 * test.observed_step_seconds, 1e3 * why.step_seconds, 100 * why.compute_share, 100 * why.memory_share,
      100 * why.overhead_share);
  for (std::size_t i = 0; i < std::min(told, why.stations.size()); ++i) {
    const StationReport& s = why.stations[i];
    out += fmt::format("      {:<10} {:>5.1f} %  {:>9.3f} ms  {:<9} {}\n                 {}\n", s.name, 100 * s.share,
                       1e3 * s.seconds, to_string(s.bound), reached(s), s.cut);
  }
  return out;
}

Json to_json(const WhyTest& test) {
  const Why& why = test.why;
  Json stations(Json::value_t::array);
  for (std::size_t i = 0; i < std::min(told, why.stations.size()); ++i) {
    const StationReport& s = why.stations[i];
    stations.push_back({{"station", std::string(s.name)},
                        {"share", s.share},
                        {"ms", 1e3 * s.seconds},
                        {"calls", s.calls},
                        {"bytes", s.bytes},
                        {"ops", s.operations},
                        {"gb_per_s", s.bytes / s.seconds / 1e9},
                        {"gop_per_s", s.operations / s.seconds / 1e9},
                        {"bandwidth_fraction", s.bandwidth_fraction},
                        {"flops_fraction", s.arithmetic_fraction},
                        {"peak", s.int8 ? "int8" : "f32"},
                        {"bound", to_string(s.bound)},
                        {"cut", s.cut}});
  }
  return {{"bound", to_string(test.bound)},
          {"rows", test.rows},
          {"step_ms", 1e3 * test.step_seconds},
          {"observed_step_ms", 1e3 * test.observed_step_seconds},
          {"stations_ms", 1e3 * why.step_seconds},
          {"share_by_bound", {{"compute", why.compute_share}, {"memory", why.memory_share}, {"overhead", why.overhead_share}}},
          {"stations", std::move(stations)}};
}

}  // namespace nihao::program
