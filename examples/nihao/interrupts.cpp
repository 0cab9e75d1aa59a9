#include "interrupts.hpp"

#include <csignal>
#include <fcntl.h>
#include <unistd.h>

namespace nihao::program {

namespace {
sigset_t interrupt_signal() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGINT);
  return set;
}
}  // namespace

Interrupts::Interrupts() {
  const sigset_t set = interrupt_signal();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  if (::pipe2(pipe_, O_CLOEXEC | O_NONBLOCK) != 0) pipe_[0] = pipe_[1] = -1;  // then only work can be interrupted
  sigset_t pending;
  int signal = 0;
  if (::sigpending(&pending) == 0 && ::sigismember(&pending, SIGINT) == 1 && ::sigwait(&set, &signal) == 0)
    source_.request_stop();  // it came before us, while it was blocked
  thread_ = std::thread([this] { wait(); });
}

Interrupts::~Interrupts() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  ::pthread_kill(thread_.native_handle(), SIGINT);
  thread_.join();
  for (const int end : pipe_)
    if (end >= 0) ::close(end);
}

std::stop_token Interrupts::work() {
  const std::lock_guard lock(mutex_);
  if (!working_) source_ = std::stop_source();
  working_ = true;
  return source_.get_token();
}

void Interrupts::idle() {
  const std::lock_guard lock(mutex_);
  working_ = false;
}

void Interrupts::take() {
  char bytes[64];
  while (::read(pipe_[0], bytes, sizeof bytes) > 0) {}
}

void Interrupts::wait() {
  const sigset_t set = interrupt_signal();
  for (;;) {
    int signal = 0;
    if (::sigwait(&set, &signal) != 0) return;
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    if (working_) source_.request_stop();
    else if (::write(pipe_[1], "!", 1) < 0) continue;  // the pipe is full of them already
  }
}

}  // namespace nihao::program
