// The program as a child process: its arguments, its input a piece at a time, its output as it comes, its exit status.
#pragma once

#include <doctest/doctest.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace nihao::test {

/// The program under test: `nihao` in the folder of the test's own program.
inline std::string program() { return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "nihao").string(); }

/// Where a child's input comes from and its output goes. `no_input`: pipes, and standard input is closed.
enum class Attached { pipes, no_input, terminal };

/// How a child starts.
struct Start {
  Attached attached = Attached::pipes;
  bool interrupted = false;    ///< with a Ctrl-C that nobody has taken yet
  unsigned short columns = 0;  ///< of the terminal
};

/// A running program. Waits are bounded: a program that hangs fails its test. On a terminal, what it writes to either output is
/// out(), with what was typed among it.
class Child {
 public:
  explicit Child(std::vector<std::string> arguments, Start start = {}) : start_(start) {
    arguments.insert(arguments.begin(), program());
    std::vector<char*> argv;
    for (std::string& a : arguments) argv.push_back(a.data());
    argv.push_back(nullptr);
    if (start.attached == Attached::terminal) start_on_terminal(argv);
    else start_on_pipes(argv);
    ::signal(SIGPIPE, SIG_IGN);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    if (in_ == pipes_[0]) in_ = -1;
    for (const int fd : {in_, pipes_[0], pipes_[1]})
      if (fd >= 0) ::close(fd);
  }

  void write(const std::string& text) { CHECK(::write(in_, text.data(), text.size()) == static_cast<ssize_t>(text.size())); }
  void close_input() {
    if (in_ != pipes_[0]) ::close(in_);
    else write("\x04");  // Ctrl-D
    in_ = -1;
  }
  void interrupt() { ::kill(pid_, SIGINT); }
  /// Its largest resident size, once it has ended.
  [[nodiscard]] std::uint64_t peak_rss_bytes() const { return peak_rss_bytes_; }

  [[nodiscard]] const std::string& out() const { return text_[0]; }
  [[nodiscard]] const std::string& err() const { return text_[1]; }

  /// Reads until `text` has come on standard output (or, `on_error`, on standard error), from `from` on. False: it did not in
  /// time.
  bool wait_for(const std::string& text, bool on_error = false, std::size_t from = 0) {
    const std::string& got = text_[on_error ? 1 : 0];
    while (got.find(text, from) == std::string::npos)
      if (!read_more()) return false;
    return true;
  }

  /// Closes the input and waits for the end, as wait_for_end().
  int finish() {
    if (in_ >= 0) close_input();
    return wait_for_end();
  }
  /// Reads the rest and returns the exit status (128 + the signal that ended it).
  int wait_for_end() {
    while (read_more()) {}
    if (pipes_[0] >= 0 || pipes_[1] >= 0) ::kill(pid_, SIGKILL);  // it hangs
    int status = 0;
    rusage used{};
    ::wait4(pid_, &status, 0, &used);
    pid_ = -1;
    peak_rss_bytes_ = static_cast<std::uint64_t>(used.ru_maxrss) * 1024;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  void start_on_pipes(std::vector<char*>& argv) {
    int in[2], out[2], err[2];
    REQUIRE(::pipe2(in, O_CLOEXEC) == 0);
    REQUIRE(::pipe2(out, O_CLOEXEC) == 0);
    REQUIRE(::pipe2(err, O_CLOEXEC) == 0);
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      ::dup2(in[0], 0), ::dup2(out[1], 1), ::dup2(err[1], 2);
      if (start_.attached == Attached::no_input) ::close(0);
      if (start_.interrupted) {
        sigset_t set;
        ::sigemptyset(&set), ::sigaddset(&set, SIGINT);
        ::sigprocmask(SIG_BLOCK, &set, nullptr);
        ::raise(SIGINT);  // waits, also through the exec
      }
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    ::close(in[0]), ::close(out[1]), ::close(err[1]);
    in_ = in[1], pipes_[0] = out[0], pipes_[1] = err[0];
  }
  void start_on_terminal(std::vector<char*>& argv) {
    const int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    REQUIRE(master >= 0);
    REQUIRE(::grantpt(master) == 0);
    REQUIRE(::unlockpt(master) == 0);
    const std::string name = ::ptsname(master);
    const winsize size{24, start_.columns, 0, 0};
    if (start_.columns > 0) REQUIRE(::ioctl(master, TIOCSWINSZ, &size) == 0);
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      ::setsid();
      const int slave = ::open(name.c_str(), O_RDWR);  // of a session without a terminal the first one opened becomes its own
      ::dup2(slave, 0), ::dup2(slave, 1), ::dup2(slave, 2);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    in_ = pipes_[0] = master;
  }

  static constexpr int patience_ms = 120'000;  // a sanitizer's build on a busy machine

  bool read_more() {
    pollfd waiting[2] = {{pipes_[0], POLLIN, 0}, {pipes_[1], POLLIN, 0}};
    const int ready = ::poll(waiting, 2, patience_ms);
    if (ready < 0) return errno == EINTR;
    if (ready == 0) return false;
    bool any = false;
    for (int i = 0; i < 2; ++i) {
      if (waiting[i].revents == 0) continue;
      char buffer[4096];
      const ssize_t count = ::read(pipes_[i], buffer, sizeof buffer);
      if (count > 0) text_[i].append(buffer, static_cast<std::size_t>(count)), any = true;
      else {
        if (in_ == pipes_[i]) in_ = -1;  // a terminal is both
        ::close(std::exchange(pipes_[i], -1));
        any = true;
      }
    }
    return any && (pipes_[0] >= 0 || pipes_[1] >= 0);
  }

  Start start_;
  std::uint64_t peak_rss_bytes_ = 0;
  pid_t pid_ = -1;
  int in_ = -1, pipes_[2] = {-1, -1};
  std::string text_[2];
};

/// What a run of the program came to.
struct Finished {
  int status;
  std::string out, err;
};
inline Finished run(std::vector<std::string> arguments, const std::string& input = "", Start start = {}) {
  Child child(std::move(arguments), start);
  if (!input.empty()) child.write(input);
  const int status = child.finish();
  return {status, child.out(), child.err()};
}

}  // namespace nihao::test
