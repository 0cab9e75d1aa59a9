// The default executor: threads made once, that spin briefly for the next operation and then park.
#pragma once

#include "../base/platform.hpp"
#include "executor.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace nihao {

/// A team of `workers` threads, the caller being one of them. An operation costs two hand-overs of a cache line while the team
/// spins (about 20 microseconds after the last operation), a futex wake after that. A worker that wakes late simply finds no task
/// left: the caller never waits for a thread that has not started one.
///
/// Two threads that use the same team at once are both right: the second finds it busy and runs its tasks alone.
class ThreadTeam final : public Executor {
 public:
  explicit ThreadTeam(int workers) {
    members_ = std::make_unique<Member[]>(static_cast<std::size_t>(workers));
    threads_.reserve(static_cast<std::size_t>(workers));
    for (int i = 1; i < workers; ++i) {
      members_[static_cast<std::size_t>(i)] = {this, i};
      Thread thread(&ThreadTeam::enter, &members_[static_cast<std::size_t>(i)]);
      if (thread.running()) threads_.push_back(std::move(thread));  // fewer threads give the same results, later
    }
  }
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;
  ~ThreadTeam() override {
    stop_.store(true, std::memory_order_relaxed);
    ticket_.fetch_add(one_job, std::memory_order_release);
    ticket_.notify_all();
  }

  [[nodiscard]] int workers() const noexcept override { return static_cast<int>(threads_.size()) + 1; }

  void run(int count, FunctionRef<void(int, int)> task) noexcept override {
    if (count <= 1 || threads_.empty() || busy_.exchange(true, std::memory_order_acquire)) {
      for (int i = 0; i < count; ++i) task(i, 0);
      return;
    }
    task_ = task;
    count_ = static_cast<std::uint32_t>(count);
    done_.store(0, std::memory_order_relaxed);
    const std::uint64_t job = (ticket_.load(std::memory_order_relaxed) & ~left_mask) + one_job;
    ticket_.store(job | count_, std::memory_order_seq_cst);
    if (parked_.load(std::memory_order_seq_cst) > 0) ticket_.notify_all();
    work(job, 0);
    for (int spins = 0; done_.load(std::memory_order_acquire) != static_cast<std::uint32_t>(count); ++spins) relax(spins);
    busy_.store(false, std::memory_order_release);
  }

 private:
  struct Member {
    ThreadTeam* team = nullptr;
    int worker = 0;
  };
  // The ticket: the job's number in the upper half, how many of its tasks nobody has taken in the lower. Taking a task is a
  // compare-and-swap of both, so nobody can take a task of a job that is over. What else belongs to the job may be read only by
  // who has taken a task of it: with none taken, the next job's may be there already.
  static constexpr std::uint64_t one_job = std::uint64_t{1} << 32;
  static constexpr std::uint64_t left_mask = one_job - 1;
  static constexpr int spins_before_parking = 2000;

  static void relax(int spins) noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
    if (spins > 20000) ::sched_yield();  // somebody else needs this core to get their task done
  }

  void work(std::uint64_t job, int worker) noexcept {
    for (std::uint64_t seen = ticket_.load(std::memory_order_acquire); (seen & ~left_mask) == job && (seen & left_mask) != 0;) {
      if (!ticket_.compare_exchange_weak(seen, seen - 1, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
      task_(static_cast<int>(count_ - static_cast<std::uint32_t>(seen & left_mask)), worker);
      done_.fetch_add(1, std::memory_order_acq_rel);
      seen = ticket_.load(std::memory_order_acquire);
    }
  }

  static void* enter(void* argument) noexcept {
    const Member& member = *static_cast<Member*>(argument);
    member.team->serve(member.worker);
    return nullptr;
  }

  void serve(int worker) noexcept {
    std::uint64_t last = 0;
    while (true) {
      std::uint64_t seen = ticket_.load(std::memory_order_acquire);
      for (int spins = 0; (seen & ~left_mask) == last && spins < spins_before_parking; ++spins) {
        relax(spins);
        seen = ticket_.load(std::memory_order_acquire);
      }
      if ((seen & ~left_mask) == last) {
        parked_.fetch_add(1, std::memory_order_seq_cst);
        ticket_.wait(seen, std::memory_order_seq_cst);  // returns at once if a job came in between
        parked_.fetch_sub(1, std::memory_order_relaxed);
        continue;
      }
      if (stop_.load(std::memory_order_relaxed)) return;
      last = seen & ~left_mask;
      work(last, worker);
    }
  }

  FunctionRef<void(int, int)> task_;
  alignas(64) std::atomic<std::uint64_t> ticket_{0};
  std::uint32_t count_ = 0;
  alignas(64) std::atomic<std::uint32_t> done_{0};
  alignas(64) std::atomic<int> parked_{0};
  std::atomic<bool> busy_{false}, stop_{false};
  std::unique_ptr<Member[]> members_;
  std::vector<Thread> threads_;  // last: joined before the rest goes
};

}  // namespace nihao
