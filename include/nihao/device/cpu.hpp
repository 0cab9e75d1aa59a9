// The CPU as a device: an instruction set, an executor, and whether matmuls are exact.
#pragma once

#include "../base/error.hpp"
#include "../base/str.hpp"
#include "../simd/isa.hpp"
#include "thread_team.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <thread>

namespace nihao {

struct CpuOptions {
  int threads = 0;                          ///< 0: as many as this process may run on
  std::optional<Isa> isa = {};              ///< none: the best of this machine
  bool exact = false;                       ///< dequantize and multiply in f32, instead of int8 dot products
  std::shared_ptr<Executor> executor = {};  ///< the host's own; none: a ThreadTeam of `threads`
};

/// A handle: copies share the executor. Sessions in two threads may share one too (see ThreadTeam).
class Cpu {
 public:
  static constexpr std::string_view name = "cpu";
  static constexpr int max_threads = 1024;

  /// Errors: unsupported (this machine lacks the instruction set), invalid_argument (threads out of range).
  [[nodiscard]] static Expected<Cpu> create(CpuOptions options = {}) {
    if (options.threads < 0 || options.threads > max_threads)
      return Error{ErrorCode::invalid_argument, concat("threads must be 0 to ", max_threads, ", not ", options.threads)};
    if (options.isa && !cpu_supports(*options.isa))
      return Error{ErrorCode::unsupported,
                   concat("this machine has no ", to_string(*options.isa), "; its best is ", to_string(best_isa()))};
    Cpu cpu;
    cpu.isa_ = options.isa.value_or(best_isa());
    cpu.exact_ = options.exact;
    const int threads =
        options.threads > 0 ? options.threads : std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, max_threads);
    cpu.executor_ = options.executor ? std::move(options.executor) : std::make_shared<ThreadTeam>(threads);
    return cpu;
  }

  [[nodiscard]] Isa isa() const noexcept { return isa_; }
  [[nodiscard]] bool exact() const noexcept { return exact_; }
  [[nodiscard]] int workers() const noexcept { return executor_->workers(); }
  /// "cpu, avx512, 2 threads"
  [[nodiscard]] std::string describe() const {
    return concat(name, ", ", to_string(isa_), ", ", workers(), workers() == 1 ? " thread" : " threads", exact_ ? ", exact" : "");
  }

  /// Calls `task(index, worker)` for each index in [0, count).
  void parallel(int count, FunctionRef<void(int, int)> task) const noexcept { executor_->run(count, task); }

 private:
  Cpu() = default;
  Isa isa_ = Isa::portable;
  bool exact_ = false;
  std::shared_ptr<Executor> executor_;
};

}  // namespace nihao
