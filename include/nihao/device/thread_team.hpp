// The default executor: threads made once, that spin briefly for the next operation and then park.
#pragma once

#include "../base/platform.hpp"
#include "executor.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace nihao {

/// A team of `workers` threads, the caller being one of them. Each starts with an equal share of an operation's tasks in its own
/// cache line, and takes from the others' ends when it is done: while nobody has to help, no line is written by two. A worker
/// that wakes late finds its share taken: the caller never waits for a thread that has not started a task.
///
/// Two threads that use the same team at once are both right: the second finds it busy and runs its tasks alone.
class ThreadTeam final : public Executor {
 public:
  explicit ThreadTeam(int workers) {
    const auto wanted = static_cast<std::size_t>(workers < 1 ? 1 : workers);
    members_ = std::make_unique<Member[]>(wanted);
    threads_.reserve(wanted);
    for (std::size_t i = 1; i < wanted; ++i) {
      members_[i].team = this, members_[i].worker = static_cast<int>(i);
      Thread thread(&ThreadTeam::enter, &members_[i]);
      if (!thread.running()) break;  // fewer threads give the same results, later
      threads_.push_back(std::move(thread));
    }
  }
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;
  ~ThreadTeam() override {
    stop_.store(true, std::memory_order_relaxed);
    publish(0);
  }

  [[nodiscard]] int workers() const noexcept override { return static_cast<int>(threads_.size()) + 1; }

  void run(int count, FunctionRef<void(int, int)> task) noexcept override {
    if (count <= 1 || threads_.empty() || busy_.exchange(true, std::memory_order_acquire)) {
      for (int i = 0; i < count; ++i) task(i, 0);
      return;
    }
    task_ = task;
    count_ = static_cast<std::uint32_t>(count);
    unit_ = (count_ + most_units - 1) / most_units;
    const std::uint32_t units = (count_ + unit_ - 1) / unit_;
    done_.store(0, std::memory_order_relaxed);
    publish(units);
    work(job_, 0);
    for (int spins = 0; done_.load(std::memory_order_acquire) != units; ++spins) relax(spins);
    busy_.store(false, std::memory_order_release);
  }

 private:
  // What a worker has left of a job, in one word: the job's number, the first unit, the end. A unit is one task (more only where
  // a job has more tasks than the fields can count). Taking one is a compare-and-swap of the word, so nobody can take one of a
  // job that is over. What else belongs to a job may be read only by who has taken a unit of it.
  struct Share {
    std::uint32_t job;
    std::uint16_t first, end;
    explicit Share(std::uint64_t word) noexcept
        : job(static_cast<std::uint32_t>(word >> 32)),
          first(static_cast<std::uint16_t>(word >> 16)),
          end(static_cast<std::uint16_t>(word)) {}
    Share(std::uint32_t j, std::uint32_t f, std::uint32_t e) noexcept
        : job(j), first(static_cast<std::uint16_t>(f)), end(static_cast<std::uint16_t>(e)) {}
    [[nodiscard]] std::uint64_t word() const noexcept {
      return std::uint64_t{job} << 32 | std::uint64_t{first} << 16 | std::uint64_t{end};
    }
  };
  struct alignas(64) Member {
    std::atomic<std::uint64_t> share{0};
    ThreadTeam* team = nullptr;
    int worker = 0;
  };
  static constexpr std::uint32_t most_units = 65535;
  static constexpr int spins_before_parking = 2000;  // some 20 microseconds

  static void relax(int spins) noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
    if (spins > 20000) ::sched_yield();  // somebody else needs this core to get their task done
  }

  // Deals a new job's units out, to the threads first.
  void publish(std::uint32_t units) noexcept {
    ++job_;
    const auto all = static_cast<std::uint32_t>(workers());
    for (std::uint32_t i = all; i-- > 0;) {
      const auto first = static_cast<std::uint32_t>(std::uint64_t{units} * i / all);
      const auto end = static_cast<std::uint32_t>(std::uint64_t{units} * (i + 1) / all);
      members_[i].share.store(Share(job_, first, end).word(), std::memory_order_seq_cst);
    }
    if (parked_.load(std::memory_order_seq_cst) > 0)
      for (std::uint32_t i = 1; i < all; ++i) members_[i].share.notify_one();
  }

  // The number of the next unit of this member's share, or -1.
  static std::int32_t take(Member& member, std::uint32_t job, bool own) noexcept {
    std::uint64_t seen = member.share.load(std::memory_order_acquire);
    while (true) {
      Share left(seen);
      if (left.job != job || left.first == left.end) return -1;
      const std::int32_t taken = own ? left.first++ : --left.end;
      if (member.share.compare_exchange_weak(seen, left.word(), std::memory_order_acq_rel, std::memory_order_acquire))
        return taken;
    }
  }

  void work(std::uint32_t job, int worker) noexcept {
    std::uint32_t finished = 0;
    const auto all = static_cast<std::size_t>(workers());
    for (std::size_t i = 0; i < all; ++i) {
      Member& from = members_[(static_cast<std::size_t>(worker) + i) % all];
      for (std::int32_t unit; (unit = take(from, job, i == 0)) >= 0; ++finished) {
        const std::uint32_t first = static_cast<std::uint32_t>(unit) * unit_;
        const std::uint32_t end = first + unit_ < count_ ? first + unit_ : count_;
        for (std::uint32_t task = first; task < end; ++task) task_(static_cast<int>(task), worker);
      }
    }
    if (finished > 0) done_.fetch_add(finished, std::memory_order_acq_rel);
  }

  static void* enter(void* argument) noexcept {
    Member& member = *static_cast<Member*>(argument);
    member.team->serve(member);
    return nullptr;
  }

  void serve(Member& member) noexcept {
    for (std::uint32_t last = 0;;) {
      std::uint64_t seen = member.share.load(std::memory_order_acquire);
      for (int spins = 0; Share(seen).job == last && spins < spins_before_parking; ++spins) {
        relax(spins);
        seen = member.share.load(std::memory_order_acquire);
      }
      if (Share(seen).job == last) {
        parked_.fetch_add(1, std::memory_order_seq_cst);
        member.share.wait(seen, std::memory_order_seq_cst);  // returns at once if a job came in between
        parked_.fetch_sub(1, std::memory_order_relaxed);
        continue;
      }
      if (stop_.load(std::memory_order_relaxed)) return;
      last = Share(seen).job;
      work(last, member.worker);
    }
  }

  FunctionRef<void(int, int)> task_;
  std::uint32_t job_ = 0, count_ = 0, unit_ = 1;
  alignas(64) std::atomic<std::uint32_t> done_{0};
  alignas(64) std::atomic<int> parked_{0};
  std::atomic<bool> busy_{false}, stop_{false};
  std::unique_ptr<Member[]> members_;
  std::vector<Thread> threads_;  // last: joined before the rest goes
};

}  // namespace nihao
