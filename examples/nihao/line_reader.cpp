#include "line_reader.hpp"

#include <cerrno>
#include <poll.h>
#include <unistd.h>

namespace nihao::program {

LineReader::Event LineReader::read(std::string& line) {
  for (;;) {
    if (const auto end = buffer_.find('\n'); end != std::string::npos) {
      line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      if (!line.empty() && line.back() == '\r') line.pop_back();
      return Event::line;
    }
    if (ended_) {
      if (buffer_.empty()) return Event::end;
      line = std::move(buffer_);
      buffer_.clear();
      return Event::line;
    }
    pollfd waiting[] = {{STDIN_FILENO, POLLIN, 0}, {interrupts_.fd(), POLLIN, 0}};
    if (::poll(waiting, 2, -1) < 0 && errno != EINTR) return Event::end;
    if ((waiting[1].revents & POLLIN) != 0) {
      interrupts_.take();
      buffer_.clear();  // as a shell does: what was typed is dropped
      return Event::interrupted;
    }
    if (waiting[0].revents == 0) continue;
    char bytes[4096];
    const ssize_t count = ::read(STDIN_FILENO, bytes, sizeof bytes);
    if (count > 0) buffer_.append(bytes, static_cast<std::size_t>(count));
    else if (count == 0 || errno != EINTR) ended_ = true;
  }
}

}  // namespace nihao::program
