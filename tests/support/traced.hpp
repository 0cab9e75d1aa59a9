// The system calls of a piece of code: it runs in a child process, under ptrace, between two marks.
#pragma once

#include <cerrno>
#include <csignal>
#include <map>
#include <optional>

#if defined(__linux__)
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

#if defined(__linux__)
#define NIHAO_HAS_PTRACE 1

namespace nihao::test {

/// Begins and ends what is counted: a system call that nothing else in the child makes.
inline void mark() noexcept { ::syscall(SYS_getpgid, 0); }

/// Forks, runs `work` in the child, and returns how often each system call was made between the first mark() and the second, by
/// all of the child's threads. Nothing if the system does not let a process trace its child. An exit of the child before its
/// second mark gives `failed`.
struct TracedCalls {
  std::map<long, int> count;
  bool failed = false;
};
template <class F>
std::optional<TracedCalls> traced_calls(F&& work) {
  constexpr int no_ptrace = 77;
  const pid_t child = ::fork();
  if (child < 0) return std::nullopt;
  if (child == 0) {
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(no_ptrace);
    ::raise(SIGSTOP);
    work();
    ::_exit(0);
  }
  int status = 0;
  if (::waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) return std::nullopt;
  if (::ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL) != 0) {
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
    return std::nullopt;
  }
  TracedCalls result;
  int marks = 0;
  ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
  while (true) {
    const pid_t thread = ::waitpid(-1, &status, __WALL);
    if (thread < 0) {
      if (errno == EINTR) continue;
      break;
    }
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      if (thread == child) break;
      continue;
    }
    long deliver = 0;
    if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
      __ptrace_syscall_info info{};
      if (::ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info) > 0 && info.op == PTRACE_SYSCALL_INFO_ENTRY) {
        const auto number = static_cast<long>(info.entry.nr);
        if (number == SYS_getpgid) ++marks;
        else if (marks == 1) ++result.count[number];
      }
    } else if (WSTOPSIG(status) != SIGTRAP && WSTOPSIG(status) != SIGSTOP) {  // those are ptrace's own: a clone, a new thread
      deliver = WSTOPSIG(status);
    }
    ::ptrace(PTRACE_SYSCALL, thread, nullptr, deliver);
  }
  result.failed = marks != 2;
  return result;
}

}  // namespace nihao::test

#else
#define NIHAO_HAS_PTRACE 0
#endif
