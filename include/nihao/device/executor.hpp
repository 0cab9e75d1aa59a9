// Who runs the tasks of an operation: a concept-sized interface, so that a host can bring its own thread pool.
#pragma once

#include "../base/function_ref.hpp"

namespace nihao {

/// Runs tasks in parallel. Operations cut their work by output, so neither the number of workers nor the order of tasks changes a
/// result: an executor may run them all on the calling thread.
class Executor {
 public:
  virtual ~Executor() = default;

  /// The most workers that `run` uses at once, the caller included; at least 1.
  [[nodiscard]] virtual int workers() const noexcept = 0;

  /// Calls `task(index, worker)` once for each index in [0, count), with worker in [0, workers()) and no worker number in use by
  /// two calls at once. Returns when all are done.
  virtual void run(int count, FunctionRef<void(int index, int worker)> task) noexcept = 0;
};

}  // namespace nihao
