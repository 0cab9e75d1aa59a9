// The CPU's kernels one by one: what a call reads and computes, how fast, and how near that is to what the machine can do.
//   nihao_bench_kernels [--benchmark_filter=matmul/Q4_K] [THREADS...]      (default: 1, and as many as there are)
//
// Counters of one call: `bytes` it reads and writes (weights as packed, keys and values as stored), `ops` (a multiply-add is two;
// of what is no multiply-add: per value 4 for a norm, 3 for a rotation, 24 for a gate with its exponential, 6 for rounding to
// int8), their rates, and `roofline` = max(bytes / bandwidth, ops / peak) / time. The peaks are measured at the start with the
// same threads (plan/roofline.hpp), the int8 one for weights that are multiplied as integers, the f32 one for all else. Bytes
// that stay in the last-level cache from call to call are no memory's: there the roofline is that of the operations alone.
// Nothing is timed cold but `repack`, which fills memory that the system has just given, as loading does.
#include <nihao/cache/kv_cache.hpp>
#include <nihao/kernels/cpu/ops.hpp>
#include <nihao/plan/roofline.hpp>

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>

using namespace nihao;

namespace {

/// What is read in turn to come from memory: a virtual machine may have a larger cache than it says.
constexpr std::size_t beyond_caches = std::size_t{512} << 20;

/// A device and what it can do.
struct Machine {
  Cpu cpu;
  MachinePeaks peaks;
};

/// The best of three: a peak that somebody disturbed would flatter every kernel.
Expected<MachinePeaks> best_peaks(const Cpu& cpu) {
  MachinePeaks best;
  for (int i = 0; i < 3; ++i) {
    NIHAO_TRY(const MachinePeaks peaks, measure_peaks(cpu, 2 * beyond_caches));
    best.bytes_per_second = std::max(best.bytes_per_second, peaks.bytes_per_second);
    best.int8_per_second = std::max(best.int8_per_second, peaks.int8_per_second);
    best.f32_per_second = std::max(best.f32_per_second, peaks.f32_per_second);
  }
  return best;
}

enum class Kind { integers, floats };

/// Times `call(i)` and writes the counters. `streams`: the bytes come from memory, not from a cache.
template <class F>
void time_calls(benchmark::State& state, const Machine& m, Work work, Kind kind, bool streams, const F& call) {
  std::size_t i = 0;
  call(i++);  // pages, and what is made at the first call
  const auto start = std::chrono::steady_clock::now();
  for (auto _ : state) call(i++);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / static_cast<double>(state.iterations());
  const double bytes = static_cast<double>(work.bytes), ops = static_cast<double>(work.flops);
  const double computing = ops / (kind == Kind::integers ? m.peaks.int8_per_second : m.peaks.f32_per_second);
  const double reading = streams ? bytes / m.peaks.bytes_per_second : 0;
  state.counters["bytes"] = bytes;
  state.counters["ops"] = ops;
  state.counters["GB/s"] = bytes / seconds * 1e-9;
  state.counters["Gop/s"] = ops / seconds * 1e-9;
  state.counters["roofline"] = std::max(reading, computing) / seconds;
}

/// Memory that was written, so that it is memory; as floats of any width these bytes are small and normal.
template <class T>
std::vector<T> filled(std::size_t n) {
  std::vector<T> values(n);
  std::memset(values.data(), 0x11, n * sizeof(T));
  return values;
}
MatrixView<float> view(std::vector<float>& values, std::size_t rows) { return {values.data(), rows, values.size() / rows}; }

// --- matmul ------------------------------------------------------------------------------------------------------------------

/// The weight of the last benchmark, for the next: Google Benchmark calls a function again and again until it has its time.
struct Weights {
  Arena arena;
  CpuWeight weight;
  const CpuWeight& get(const Cpu& cpu, FormatId format, std::uint32_t rows, std::uint32_t cols) {
    if (weight.tiles == nullptr || weight.format != format || weight.rows != rows || weight.cols != cols) {
      weight = {}, arena = {};
      const auto stored = filled<std::byte>(rows * row_bytes(format, cols));
      weight = pack_weight(cpu, format, rows, cols, stored, arena).value();
      weight.stored = {};
    }
    return weight;
  }
};

struct MatmulCase {
  const char* name;
  std::size_t tokens;
  std::uint32_t rows, cols;  ///< rows 0: as many as no cache holds
};
constexpr MatmulCase matmul_cases[] = {{"gemv_memory", 1, 0, 4096}, {"gemv_cache", 1, 256, 1024}, {"batch2", 2, 0, 4096},
                                       {"batch4", 4, 0, 4096},      {"batch8", 8, 0, 4096},       {"batch16", 16, 0, 4096},
                                       {"gemm32", 32, 4096, 4096},  {"gemm512", 512, 4096, 4096}};

void matmul(benchmark::State& state, const Machine& m, Weights& weights, FormatId format, const MatmulCase& c) {
  const std::size_t tile = packed_bytes(format, tile_rows, c.cols);
  const auto rows = c.rows > 0 ? c.rows : static_cast<std::uint32_t>(ceil_div(beyond_caches, tile) * tile_rows);
  const CpuWeight& weight = weights.get(m.cpu, format, rows, c.cols);
  const CpuScratch scratch = CpuScratch::create(m.cpu, {c.tokens, c.cols, 16, 1, 16}).value();
  auto x = filled<float>(c.tokens * c.cols), y = filled<float>(c.tokens * rows);
  const Ops<Cpu>::Job job{&weight, view(y, c.tokens)};
  const std::size_t bytes = packed_bytes(format, rows, c.cols);
  const Kind kind = format_info(format).as_floats ? Kind::floats : Kind::integers;
  time_calls(state, m, {bytes + 4 * (x.size() + y.size()), 2ull * c.tokens * rows * c.cols}, kind, c.rows == 0,
             [&](std::size_t) { Ops<Cpu>::linear<Quant<Any>>(m.cpu, scratch, view(x, c.tokens), std::span(&job, 1)); });
}

// --- attention ---------------------------------------------------------------------------------------------------------------

struct AttentionCase {
  const char* name;
  std::size_t tokens, before;  ///< new positions, and those that the cache holds
};
constexpr AttentionCase attention_cases[] = {{"decode_at_512", 1, 511},
                                             {"decode_at_4096", 1, 4095},
                                             {"decode_at_16384", 1, 16383},
                                             {"prefill_512", 512, 0},
                                             {"prefill_512_at_4096", 512, 3584}};

void attention(benchmark::State& state, const Machine& m, KvType type, std::uint32_t head_dim, const AttentionCase& c) {
  const AttentionShape shape{2048 / head_dim, 512 / head_dim, head_dim, 0.1f};
  const std::size_t positions = c.tokens + c.before, width = 2048;
  // A decode step finds none of its keys in a cache: between two steps of a layer the other layers are read.
  const std::size_t layer_bytes = KvLayout{type, shape.kv_heads, head_dim}.block_bytes() * ceil_div(positions, kv_block);
  const std::size_t layers = c.tokens == 1 ? ceil_div(beyond_caches, layer_bytes) : 1;
  const std::vector<CacheSpec> specs(layers, {shape.kv_heads, head_dim});
  const KvCache cache = KvCache::create(specs, type, positions).value();
  std::memset(cache.data(0), 0x11, cache.bytes());
  const CpuScratch scratch = CpuScratch::create(m.cpu, {c.tokens, 16, head_dim, shape.heads, positions}).value();
  std::vector<std::int32_t> at(c.tokens);
  std::iota(at.begin(), at.end(), static_cast<std::int32_t>(c.before));
  const SequenceRows rows{0, static_cast<std::uint32_t>(c.tokens), cache.blocks(0)};
  const BatchView batch{at, std::span(&rows, 1)};
  auto q = filled<float>(c.tokens * width), out = filled<float>(c.tokens * width);
  std::uint64_t seen = 0;
  for (const std::int32_t p : at) seen += static_cast<std::uint64_t>(p) + 1;
  time_calls(state, m, {layer_bytes + 8 * q.size(), seen * 4 * width}, Kind::floats, layers > 1, [&](std::size_t i) {
    Ops<Cpu>::attention(m.cpu, scratch, shape, cache.layout(i % layers), cache.data(i % layers), batch, view(q, c.tokens),
                        view(out, c.tokens));
  });
}

// --- value by value ----------------------------------------------------------------------------------------------------------

enum class Elementwise { rms_norm, quantize, rope, gated };
constexpr struct {
  const char* name;
  Elementwise kind;
  std::uint64_t bytes, ops;  ///< of one value
} elementwise_cases[] = {{"rms_norm", Elementwise::rms_norm, 8, 4},
                         {"quantize_row", Elementwise::quantize, 5, 6},
                         {"rope", Elementwise::rope, 8, 3},
                         {"gated", Elementwise::gated, 12, 24}};

void elementwise(benchmark::State& state, const Machine& m, Elementwise kind, std::size_t rows, Work of_value) {
  constexpr std::size_t width = 4096, head_dim = 128;
  auto x = filled<float>(rows * width), y = filled<float>(rows * width), weight = filled<float>(width),
       angles = filled<float>(rows * head_dim / 2);
  const CpuScratch scratch = CpuScratch::create(m.cpu, {rows, width, 16, 1, 16}).value();
  const QuantizedRows quantized = scratch.quantized(rows, width);
  const Work work{of_value.bytes * x.size(), of_value.flops * x.size()};
  time_calls(state, m, work, Kind::floats, false, [&](std::size_t) {
    switch (kind) {
      case Elementwise::rms_norm: return Ops<Cpu>::rms_norm(m.cpu, view(x, rows), weight, 1e-5f, view(y, rows));
      case Elementwise::quantize:  // one thread: what `linear` does for each row
        for (std::size_t t = 0; t < rows; ++t) NIHAO_ON_ISA(m.cpu.isa(), quantize_row(x.data() + t * width, width, quantized, t));
        return;
      case Elementwise::rope:
        return Ops<Cpu>::rope(m.cpu, view(x, rows), head_dim, view(angles, rows), view(angles, rows), RopeStyle::halves);
      case Elementwise::gated: return Ops<Cpu>::gated<SiLU>(m.cpu, view(x, rows), view(y, rows));
    }
  });
}

// --- packing -----------------------------------------------------------------------------------------------------------------

void repack(benchmark::State& state, const Machine& m, FormatId format) {
  constexpr std::uint32_t cols = 4096;
  const auto rows = static_cast<std::uint32_t>((std::size_t{64} << 20) / row_bytes(format, cols));
  const auto stored = filled<std::byte>(rows * row_bytes(format, cols));
  time_calls(state, m, {stored.size() + packed_bytes(format, rows, cols), 0}, Kind::integers, true, [&](std::size_t) {
    Arena arena;
    benchmark::DoNotOptimize(pack_weight(m.cpu, format, rows, cols, stored, arena));
  });
  state.counters["stored GB/s"] = state.counters["GB/s"].value * static_cast<double>(stored.size()) /
                                  static_cast<double>(stored.size() + packed_bytes(format, rows, cols));
}

// --- all of them -------------------------------------------------------------------------------------------------------------

template <class F>
void add(const std::string& name, const F& run) {
  benchmark::RegisterBenchmark(name.c_str(), run)->UseRealTime()->Unit(benchmark::kMicrosecond);
}

void add_all(const Machine& m, Weights& weights) {
  const std::string threads = concat("/threads:", m.cpu.workers());
  for (const FormatId format : all_formats)
    for (const MatmulCase& c : matmul_cases)
      add(concat("matmul/", format_info(format).name, "/", c.name, threads),
          [&m, &weights, format, &c](benchmark::State& state) { matmul(state, m, weights, format, c); });
  for (const KvType type : {KvType::f32, KvType::f16, KvType::bf16, KvType::q8_0})
    for (const std::uint32_t head_dim : {64u, 128u, 256u})
      for (const AttentionCase& c : attention_cases)
        add(concat("attention/", to_string(type), "/head_dim:", head_dim, "/", c.name, threads),
            [&m, type, head_dim, &c](benchmark::State& state) { attention(state, m, type, head_dim, c); });
  for (const auto& c : elementwise_cases)
    for (const std::size_t rows : {std::size_t{1}, std::size_t{512}})
      add(concat(c.name, "/", rows, "x4096", threads),
          [&m, &c, rows](benchmark::State& state) { elementwise(state, m, c.kind, rows, {c.bytes, c.ops}); });
  for (const FormatId format : all_formats)
    add(concat("repack/", format_info(format).name, threads),
        [&m, format](benchmark::State& state) { repack(state, m, format); });
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  std::vector<int> threads;
  for (int i = 1; i < argc; ++i) threads.push_back(std::atoi(argv[i]));
  if (threads.empty()) {
    threads = {1};
    if (const int all = Cpu::create().value().workers(); all > 1) threads.push_back(all);
  }
  Weights weights;
  std::vector<std::unique_ptr<Machine>> machines;
  for (const int count : threads) {
    auto cpu = Cpu::create({.threads = count});
    auto peaks = cpu ? best_peaks(*cpu) : Expected<MachinePeaks>(cpu.error());
    if (!peaks) {
      std::fprintf(stderr, "%s\nusage: %s [--benchmark_...] [THREADS...]\n", peaks.error().message().c_str(), argv[0]);
      return 2;
    }
    benchmark::AddCustomContext(cpu->describe(),
                                concat("reads ", peaks->bytes_per_second * 1e-9, " GB/s, int8 ", peaks->int8_per_second * 1e-9,
                                       " Gop/s, f32 ", peaks->f32_per_second * 1e-9, " Gop/s"));
    machines.push_back(std::make_unique<Machine>(Machine{*cpu, *peaks}));
  }
  for (const auto& machine : machines) add_all(*machine, weights);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
