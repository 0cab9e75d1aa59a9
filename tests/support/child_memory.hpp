// How much memory a piece of code takes at its peak: it runs in a child process, which starts with what its parent has.
#pragma once

#include "nihao/base/platform.hpp"

#include <optional>

#include <sys/wait.h>
#include <unistd.h>

namespace nihao::test {

/// Bytes by which a child's largest resident size grows while it runs `work`, which returns whether it went well. Nothing if it
/// did not.
template <class F>
std::optional<std::uint64_t> peak_growth(F&& work) {
  int pipe[2];
  if (::pipe(pipe) != 0) return std::nullopt;
  const pid_t child = ::fork();
  if (child == 0) {
    const std::uint64_t before = peak_rss_bytes();
    const bool good = work();
    const std::uint64_t growth = peak_rss_bytes() - before;
    ::_exit(good && ::write(pipe[1], &growth, sizeof growth) == sizeof growth ? 0 : 1);
  }
  ::close(pipe[1]);
  std::uint64_t growth = 0;
  const bool read = child > 0 && ::read(pipe[0], &growth, sizeof growth) == sizeof growth;
  ::close(pipe[0]);
  int status = 1;
  if (child > 0) ::waitpid(child, &status, 0);
  if (!read || status != 0) return std::nullopt;
  return growth;
}

}  // namespace nihao::test
