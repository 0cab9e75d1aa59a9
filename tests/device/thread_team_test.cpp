#include "nihao/device/cpu.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <doctest/doctest.h>
#include <numeric>
#include <thread>
#include <vector>

using namespace nihao;

TEST_CASE("a team does every task of every job once, whether it spins or has parked") {
  for (const int workers : {1, 2, 3, 5}) {
    ThreadTeam team(workers);
    CHECK(team.workers() == workers);
    for (int job = 0; job < 2000; ++job) {
      const int count = job % 7;
      std::vector<int> done(8, 0);  // one writer each: the team must order these writes before run() returns
      team.run(count, [&](int index, int worker) {
        REQUIRE((worker >= 0 && worker < workers));
        ++done[static_cast<std::size_t>(index)];
      });
      for (int i = 0; i < 8; ++i) REQUIRE(done[static_cast<std::size_t>(i)] == (i < count ? 1 : 0));
      if (job % 500 == 499) std::this_thread::sleep_for(std::chrono::milliseconds(2));  // long enough to park
    }
  }
}

TEST_CASE("a thread that comes late to one job takes no task of the next, larger one") {
  for (const int workers : {2, 3, 5}) {
    ThreadTeam team(workers);
    // Between finding no task left and leaving the job a thread may lose its core, while the next job is set up.
    for (int job = 0; job < 200'000; ++job) {
      const std::size_t count = job % 2 ? 64 : 2;
      std::array<int, 64> done{};
      team.run(static_cast<int>(count), [&](int index, int) { ++done[static_cast<std::size_t>(index)]; });
      for (std::size_t i = 0; i < done.size(); ++i)
        if (done[i] != (i < count)) FAIL("task ", i, " of job ", job, " was done ", done[i], " times");
    }
  }
}

TEST_CASE("no worker number is in use twice at once") {
  ThreadTeam team(4);
  std::vector<std::atomic<int>> inside(4);
  std::atomic<bool> shared = false;
  for (int job = 0; job < 50; ++job)
    team.run(64, [&](int, int worker) {
      auto& mine = inside[static_cast<std::size_t>(worker)];
      if (mine.fetch_add(1) != 0) shared = true;
      for (std::atomic<int> pause = 0; pause.load() < 200;) ++pause;
      mine.fetch_sub(1);
    });
  CHECK_FALSE(shared);
}

TEST_CASE("a job sees what the one before it wrote") {
  ThreadTeam team(3);
  std::vector<std::uint64_t> values(300, 1);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::uint64_t> next(values.size());
    team.run(30, [&](int index, int) {
      for (std::size_t i = 0; i < 10; ++i) {
        const std::size_t at = static_cast<std::size_t>(index) * 10 + i;
        next[at] = values[at] + values[(at + 17) % values.size()];
      }
    });
    for (auto& v : next) v %= 1000003;
    values = std::move(next);
  }
  std::uint64_t expected = 1;  // all equal: each round doubles
  for (int round = 0; round < 200; ++round) expected = 2 * expected % 1000003;
  for (const std::uint64_t v : values) REQUIRE(v == expected);
}

TEST_CASE("two threads that use one team at once are both right") {
  ThreadTeam team(2);
  const auto user = [&](std::uint64_t& total) {
    for (int job = 0; job < 3000; ++job) {
      std::uint64_t parts[5] = {};
      team.run(5, [&](int index, int) { parts[index] += static_cast<std::uint64_t>(index + job); });
      total += std::accumulate(std::begin(parts), std::end(parts), std::uint64_t{0});
    }
  };
  std::uint64_t a = 0, b = 0;
  std::thread other([&] { user(b); });
  user(a);
  other.join();
  CHECK(a == 3000ull * 10 + 5ull * (2999ull * 3000 / 2));
  CHECK(b == a);
}

TEST_CASE("a task may use the team: the inner job runs on the thread that asks") {
  ThreadTeam team(3);
  std::atomic<int> total = 0;
  team.run(6, [&](int, int) { team.run(4, [&](int, int) { ++total; }); });
  CHECK(total == 24);
}

TEST_CASE("teams come and go quickly, used or not") {
  for (int i = 0; i < 50; ++i) {
    ThreadTeam team(3);
    if (i % 2) team.run(2, [](int, int) {});
  }
}

TEST_CASE("a Cpu takes its threads, its instruction set and its executor from the options, and refuses what cannot be") {
  CHECK(Cpu::create({.threads = 3})->workers() == 3);
  CHECK(Cpu::create()->workers() >= 1);
  CHECK(Cpu::create()->isa() == best_isa());
  CHECK(Cpu::create({.isa = Isa::portable})->isa() == Isa::portable);
  CHECK(Cpu::create({.threads = -1}).error().code == ErrorCode::invalid_argument);
  CHECK(Cpu::create({.threads = 1025}).error().code == ErrorCode::invalid_argument);
  for (const Isa isa : all_isas) {
    const auto cpu = Cpu::create({.threads = 1, .isa = isa});
    CHECK(cpu.has_value() == cpu_supports(isa));
    if (!cpu) CHECK(cpu.error().code == ErrorCode::unsupported);
    CHECK(isa_from_name(to_string(isa)) == isa);
  }

  struct Inline final : Executor {
    int workers() const noexcept override { return 1; }
    void run(int count, FunctionRef<void(int, int)> task) noexcept override {
      ++jobs;
      for (int i = count; i-- > 0;) task(i, 0);
    }
    int jobs = 0;
  };
  const auto executor = std::make_shared<Inline>();
  const Cpu cpu = *Cpu::create({.threads = 8, .executor = executor});
  CHECK(cpu.workers() == 1);
  int sum = 0;
  cpu.parallel(4, [&](int i, int) { sum = sum * 10 + i; });
  CHECK(sum == 3210);
  CHECK(executor->jobs == 1);
}
