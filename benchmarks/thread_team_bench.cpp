// What handing a job to threads costs: the library's team, and OpenMP where the compiler has it.
//   nihao_bench_thread_team [SECONDS]            (for each figure, default: 0.5)
//
// A job is 16 tasks (or none) of a given length, and its time is that from the call to its end. Tasks count rounds, not the
// clock: who has no core does no work. The least time of a job is 16 / threads times a task's length. What is printed is the
// median in microseconds, and in brackets the mean, which has the jobs in which a thread was without a core. "OpenMP barrier" is
// one region in which each job is an equal share for every thread and a barrier: llama.cpp's default build runs a graph's
// operations like that. "Busy": a foreign process wants a core all the time, so that with as many threads as cores somebody must
// share.
#include <nihao/device/cpu.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace {

constexpr int tasks = 16;
using Clock = std::chrono::steady_clock;

double microseconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::micro>(to - from).count();
}

/// Works for some microseconds; 0: returns at once. Counted in rounds, not by the clock: a thread without a core does no work.
struct Task {
  static inline double rounds_per_microsecond = 0;  // NOLINT: calibrated once by main
  static void spin(long rounds) {
    for (long i = 0; i < rounds; ++i) __asm__ volatile("" : : "r"(i));
  }
  long rounds = 0;
  explicit Task(double us) : rounds(static_cast<long>(us * rounds_per_microsecond)) {}
  void operator()() const { spin(rounds); }
  static void calibrate() {
    constexpr long rounds = 10'000'000;
    double best = 1e30;
    for (int i = 0; i < 5; ++i) {
      const auto start = Clock::now();
      spin(rounds);
      best = std::min(best, microseconds(start, Clock::now()));
    }
    rounds_per_microsecond = static_cast<double>(rounds) / best;
  }
};

std::string median(std::vector<double>& times) {
  std::sort(times.begin(), times.end());
  char text[64];
  std::snprintf(text, sizeof text, "%.2f (%.1f)", times[times.size() / 2],
                std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size()));
  return text;
}

template <class F>
std::string time_jobs(int samples, const F& job) {
  std::vector<double> times;
  for (int i = 0; i < samples + samples / 10; ++i) {
    const auto start = Clock::now();
    job();
    if (i >= samples / 10) times.push_back(microseconds(start, Clock::now()));
  }
  return median(times);
}

std::string team(int threads, int samples, const Task& task, int count) {
  nihao::ThreadTeam workers(threads);
  return time_jobs(samples, [&] { workers.run(count, [&](int, int) { task(); }); });
}

#if defined(_OPENMP)
std::string omp_static(int threads, int samples, const Task& task, int count) {
  return time_jobs(samples, [&] {
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int i = 0; i < count; ++i) task();
  });
}
std::string omp_dynamic(int threads, int samples, const Task& task, int count) {
  return time_jobs(samples, [&] {
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (int i = 0; i < count; ++i) task();
  });
}
std::string omp_barrier(int threads, int samples, const Task& task, int count) {
  std::vector<double> times;
#pragma omp parallel num_threads(threads)
  {
    const int here = omp_get_thread_num(), all = omp_get_num_threads();
    auto start = Clock::now();
    for (int i = 0; i < samples + samples / 10; ++i) {
      for (int j = count * here / all; j < count * (here + 1) / all; ++j) task();
#pragma omp barrier
      if (here == 0) {
        const auto end = Clock::now();
        if (i >= samples / 10) times.push_back(microseconds(start, end));
        start = end;
      }
    }
  }
  return median(times);
}
#else
std::string omp_static(int, int, const Task&, int) { return "-"; }
std::string omp_dynamic(int, int, const Task&, int) { return "-"; }
std::string omp_barrier(int, int, const Task&, int) { return "-"; }
#endif

/// A process that does nothing but want a core.
class BusyProcess {
 public:
  BusyProcess() : pid_(::fork()) {
    if (pid_ == 0)
      while (true) Task::spin(1'000'000);
  }
  BusyProcess(const BusyProcess&) = delete;
  BusyProcess& operator=(const BusyProcess&) = delete;
  ~BusyProcess() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_;
};

void print_rows(int threads, double seconds, const char* state) {
  for (const double us : {0.0, 1.0, 5.0, 20.0, 100.0}) {
    const Task task(us);
    const double least = us * tasks / threads + 1;  // of a job, in microseconds
    const int here = std::clamp(static_cast<int>(seconds * 1e6 / least), 100, 50'000);
    std::printf("| %d | %s | %s | %s | %s | %s | %s |\n", threads, state,
                us > 0 ? nihao::concat(tasks, " of ", us, " us").c_str() : nihao::concat(tasks, " empty").c_str(),
                team(threads, here, task, tasks).c_str(), omp_barrier(threads, here, task, tasks).c_str(),
                omp_static(threads, here, task, tasks).c_str(), omp_dynamic(threads, here, task, tasks).c_str());
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 0.5;
  const int all = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  Task::calibrate();
  std::printf(
      "| threads | cores | tasks | team | OpenMP barrier | OpenMP static | OpenMP dynamic |\n|---|---|---|---|---|---|---|\n");
  for (int threads = 1; threads <= all; threads = threads < all && 2 * threads > all ? all : 2 * threads)
    print_rows(threads, seconds, "quiet");
  const BusyProcess busy;
  print_rows(all, seconds, "busy");
  return 0;
}
