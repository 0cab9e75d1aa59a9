// Lines from standard input, with the terminal's own editing, that a Ctrl-C can interrupt.
#pragma once

#include "interrupts.hpp"

#include <string>

namespace nihao::program {

class LineReader {
 public:
  explicit LineReader(Interrupts& interrupts) : interrupts_(interrupts) {}

  enum class Event { line, interrupted, end };
  /// Waits for a line (without its newline, into `line`), a Ctrl-C, or the end of the input.
  [[nodiscard]] Event read(std::string& line);

 private:
  Interrupts& interrupts_;
  std::string buffer_;
  bool ended_ = false;
};

}  // namespace nihao::program
