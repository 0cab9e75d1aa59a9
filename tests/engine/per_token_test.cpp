// What decoding a token does not do: system calls, allocations, locks (a contended lock is a futex call, and would be seen).
#include "nihao/engine/session.hpp"

#include <doctest/doctest.h>

#include "engine/generate.hpp"
#include "engine/models.hpp"
#include "support/build_kind.hpp"
#include "support/count_allocations.hpp"
#include "support/traced.hpp"

#include <algorithm>
#include <atomic>

using namespace nihao;

namespace {

constexpr const char* formats[] = {"F32", "Q8_0", "Q4_K"};

/// Steps of one token, greedily, from `id`; the last id, or -1.
TokenId decode(ModelContext& context, TokenId id, int steps) {
  for (int i = 0; i < steps; ++i) {
    const SequenceTokens next{0, std::span(&id, 1), Wanted::last};
    const auto logits = context.step(std::span(&next, 1));
    if (!logits) return -1;
    const auto row = logits->row(0);
    id = static_cast<TokenId>(std::max_element(row.begin(), row.end()) - row.begin());
  }
  return id;
}

#if NIHAO_HAS_PTRACE
/// Runs jobs until every thread of the team has started: what a thread calls at its start is none of the decoder's.
void wake(const Cpu& cpu) {
  std::atomic<std::uint32_t> seen = 0;
  while (seen != (1u << cpu.workers()) - 1)
    cpu.parallel(64, [&](int, int worker) {
      seen |= 1u << worker;
      for (std::atomic<int> pause = 0; pause.load() < 2000;) ++pause;
    });
}

/// The system calls of 24 decode steps.
std::optional<test::TracedCalls> calls_of_decoding(const std::string& path, int threads) {
  return test::traced_calls([&] {
    const auto model = load(path, {.cpu = {.threads = threads}});
    if (!model) return;
    const auto context = model->context({.positions = 64});
    const TokenId prompt[] = {5, 6, 7};
    if (!context || !(*context)->prefill(0, prompt)) return;
    wake(model->device());
    const TokenId id = decode(**context, 1, 2);
    test::mark();
    if (decode(**context, id, 24) < 0) return;
    test::mark();
  });
}
#endif

}  // namespace

TEST_CASE("a step of one token allocates nothing, on one thread and on two") {
  for (const char* format : formats)
    for (const int threads : {1, 2}) {
      const auto model = test::tiny_model(threads, false, format);
      if (!model) NIHAO_SKIP("golden/quant/gguf");
      const auto context = *model->context({.positions = 64});
      const TokenId prompt[] = {5, 6, 7};
      REQUIRE(context->prefill(0, prompt).has_value());
      const TokenId id = decode(*context, 1, 1);
      const std::size_t before = test::allocations;
      const TokenId last = decode(*context, id, 32);
      const std::size_t after = test::allocations;
      CHECK(last >= 0);
      CHECK(after == before);
    }
}

TEST_CASE("a session allocates nothing from its second token on") {
  const auto model = test::tiny_model(1, false, "Q4_K");
  if (!model) NIHAO_SKIP("golden/quant/gguf/Q4_K.gguf");
  Session session(*model);
  std::size_t tokens = 0, before = 0, after = 0;
  for (const std::string_view piece : session.complete("abc", test::greedy(50))) {
    static_cast<void>(piece);
    if (++tokens == 1) before = test::allocations;
    after = test::allocations;
  }
  CHECK(tokens > 10);
  CHECK(after == before);
}

#if NIHAO_HAS_PTRACE
TEST_CASE("on one thread decoding makes no system call") {
  if (test::sanitized) return;  // a sanitizer's runtime makes calls of its own
  for (const char* format : formats) {
    const auto path = test::data(concat("golden/quant/gguf/", format, ".gguf"));
    if (!path) NIHAO_SKIP("golden/quant/gguf");
    const auto calls = calls_of_decoding(path->string(), 1);
    if (!calls) NIHAO_SKIP("a count of system calls: this system does not let a process trace its child");
    CHECK_FALSE(calls->failed);
    for (const auto& [number, count] : calls->count) FAIL_CHECK("system call ", number, ", ", count, " times");
  }
}

TEST_CASE("on two threads decoding calls the system only to park and to wake a thread that lost its core") {
  if (test::sanitized) return;
  const auto path = test::data("golden/quant/gguf/Q4_K.gguf");
  if (!path) NIHAO_SKIP("golden/quant/gguf/Q4_K.gguf");
  const auto calls = calls_of_decoding(path->string(), 2);
  if (!calls) NIHAO_SKIP("a count of system calls: this system does not let a process trace its child");
  CHECK_FALSE(calls->failed);
  // A thread that has spun some microseconds without work parks (futex), and one that waits for a task of a thread without a core
  // yields its own (sched_yield). How often depends on who else wants the cores: only what is called can be said.
  for (const auto& [number, count] : calls->count) {
    MESSAGE("system call ", number, ", ", count, " times in 24 tokens");
    CHECK((number == SYS_futex || number == SYS_sched_yield));
  }
}

TEST_CASE("a session's tokens make no system call, if reading the clock is none") {
  if (test::sanitized) return;
  const auto path = test::data("golden/quant/gguf/Q4_K.gguf");
  if (!path) NIHAO_SKIP("golden/quant/gguf/Q4_K.gguf");
  const auto calls = test::traced_calls([&] {
    auto model = load(path->string(), {.cpu = {.threads = 1}});
    if (!model) return;
    Session session(*std::move(model));
    int tokens = 0;
    for (const std::string_view piece : session.complete("abc", test::greedy(50))) {
      static_cast<void>(piece);
      if (++tokens == 2) test::mark();
      if (tokens == 20) test::mark();
    }
  });
  if (!calls) NIHAO_SKIP("a count of system calls: this system does not let a process trace its child");
  CHECK_FALSE(calls->failed);
  for (const auto& [number, count] : calls->count)
    if (number != SYS_clock_gettime) FAIL_CHECK("system call ", number, ", ", count, " times");  // where the vDSO has no clock
}
#endif
