// Ctrl-C. SIGINT is blocked in every thread; one thread waits for it and tells whoever is at work, so that nothing runs inside a
// signal handler.
#pragma once

#include <mutex>
#include <stop_token>
#include <thread>

namespace nihao::program {

/// Make one before any other thread: threads inherit what is blocked. Only one at a time.
class Interrupts {
 public:
  Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  ~Interrupts();

  /// Begins a piece of work that a Ctrl-C stops, through the token. The first has begun with the object, so that no Ctrl-C falls
  /// between.
  [[nodiscard]] std::stop_token work();
  /// Ends it: from now on a Ctrl-C makes fd() readable instead.
  void idle();

  /// Readable when Ctrl-C came and nobody was at work.
  [[nodiscard]] int fd() const noexcept { return pipe_[0]; }
  /// Takes what made it readable.
  void take();

 private:
  void wait();

  std::mutex mutex_;  // of working_ and source_
  bool working_ = true;
  std::stop_source source_;
  int pipe_[2] = {-1, -1};
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace nihao::program
