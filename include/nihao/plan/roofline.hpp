// Station C27, the roofline: how fast a machine can be at some work, and what holds it back (Williams, Waterman and Patterson
// 2009, doi:10.1145/1498765.1498785).
#pragma once

#include "../device/cpu.hpp"
#include "../device/observer.hpp"
#include "../simd/lanes.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <string_view>

namespace nihao {

/// What a device reaches when it does one thing alone.
struct MachinePeaks {
  double bytes_per_second = 0;  ///< reading memory
  double int8_per_second = 0;   ///< operations of int8 dot products; a multiply-add is two
  double f32_per_second = 0;    ///< the same of f32 multiply-adds
};

/// An observer that adds up what all stations read and computed.
struct WorkCounter {
  static constexpr bool active = true;
  Work total = {};
  void see(const Seen& seen) noexcept { total.bytes += seen.work.bytes, total.flops += seen.work.flops; }
};

/// What holds a piece of work back.
enum class Bound : std::uint8_t { compute, memory };

[[nodiscard]] constexpr std::string_view to_string(Bound bound) noexcept {
  return bound == Bound::compute ? "compute" : "memory";
}

/// Work that took some time, on a device that can do so much.
struct Roofline {
  Work work;
  double seconds;
  double peak_bytes_per_second, peak_ops_per_second;

  /// Operations per byte read.
  [[nodiscard]] double arithmetic_intensity() const noexcept {
    return ratio(static_cast<double>(work.flops), static_cast<double>(work.bytes));
  }
  /// Share of the read bandwidth, and of the arithmetic, that was used.
  [[nodiscard]] double bandwidth_fraction() const noexcept {
    return ratio(static_cast<double>(work.bytes), seconds * peak_bytes_per_second);
  }
  [[nodiscard]] double flops_fraction() const noexcept {
    return ratio(static_cast<double>(work.flops), seconds * peak_ops_per_second);
  }
  /// The rule: memory, if reading the bytes at the peak takes longer than the operations at theirs; else compute.
  [[nodiscard]] Bound bound() const noexcept {
    const double reading = ratio(static_cast<double>(work.bytes), peak_bytes_per_second);
    return reading > ratio(static_cast<double>(work.flops), peak_ops_per_second) ? Bound::memory : Bound::compute;
  }

 private:
  [[nodiscard]] static double ratio(double a, double b) noexcept { return b > 0 ? a / b : 0; }
};

}  // namespace nihao

#define NIHAO_KERNEL_FILE "../plan/peaks.inl"
#define NIHAO_KERNEL_DOTS
#include "../simd/foreach_isa.inl"

namespace nihao {

namespace detail {
/// The shortest of five runs of `work` on all of cpu's workers, in seconds.
template <class F>
[[nodiscard]] double best_time(const Cpu& cpu, int tasks, const F& work) {
  double best = 0;
  for (int run = 0; run < 5; ++run) {
    const auto start = std::chrono::steady_clock::now();
    cpu.parallel(tasks, [&](int task, int) { work(task); });
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (run == 0 || seconds < best) best = seconds;
  }
  return best;
}
}  // namespace detail

/// Measures `cpu` with its threads and its instruction set. `buffer` bytes are read: to be memory's speed they must not fit the
/// caches. Takes about 0.3 s for 256 MiB on a slow core. Errors: out_of_memory.
[[nodiscard]] inline Expected<MachinePeaks> measure_peaks(const Cpu& cpu, std::size_t buffer = std::size_t{256} << 20) {
  constexpr std::size_t piece = std::size_t{1} << 18;  // floats
  const std::size_t pieces = std::max<std::size_t>(1, buffer / (piece * sizeof(float)));
  NIHAO_TRY(const PageBuffer memory, PageBuffer::allocate(pieces * piece * sizeof(float)));
  auto* floats = reinterpret_cast<float*>(memory.data());
  cpu.parallel(static_cast<int>(pieces), [&](int i, int) {
    std::fill_n(floats + static_cast<std::size_t>(i) * piece, piece, 1.0f);  // a page that nobody wrote is no memory
  });
  std::array<std::atomic<float>, 3> results{};  // so that nothing is computed for nobody
  MachinePeaks peaks;
  const double read = detail::best_time(cpu, static_cast<int>(pieces), [&](int i) {
    results[0] = NIHAO_ON_ISA(cpu.isa(), read_floats(floats + static_cast<std::size_t>(i) * piece, piece));
  });
  peaks.bytes_per_second = static_cast<double>(pieces * piece * sizeof(float)) / read;

  alignas(64) std::array<std::uint8_t, 2048> weights;
  alignas(64) std::array<std::int8_t, 12 * 128> tokens;
  alignas(64) std::array<float, 512> float_weights;
  alignas(64) std::array<float, 12 * 32> float_tokens;
  weights.fill(3), tokens.fill(2), float_weights.fill(0.5f), float_tokens.fill(0.25f);
  const int tasks = 16 * cpu.workers();
  const std::size_t rounds = cpu.isa() == Isa::portable ? 1 << 10 : 1 << 13;
  const double multiply_adds = static_cast<double>(rounds * NIHAO_ON_ISA(cpu.isa(), int8_round())) * tasks;
  const double int8 = detail::best_time(
      cpu, tasks, [&](int) { results[1] = NIHAO_ON_ISA(cpu.isa(), int8_dots(weights.data(), tokens.data(), rounds)); });
  peaks.int8_per_second = 2 * multiply_adds / int8;
  const double f32 = detail::best_time(cpu, tasks, [&](int) {
    results[2] = NIHAO_ON_ISA(cpu.isa(), float_dots(float_weights.data(), float_tokens.data(), 4 * rounds));
  });
  peaks.f32_per_second = 2 * (multiply_adds / 4) / f32;
  return peaks;
}

}  // namespace nihao
