// What a host may hand in: where log lines go, who is told of progress, and when to stop. The library has no globals.
#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string_view>

namespace nihao {

enum class LogLevel : std::uint8_t { debug, info, warning };

/// Receives log lines. The default of every interface is no logger: nothing is printed.
class Logger {
 public:
  virtual ~Logger() = default;
  virtual void log(LogLevel level, std::string_view line) = 0;
};

/// Told how far a long piece of work is. `done` grows to `total`; both are in the unit the stage says (bytes, tokens).
class ProgressSink {
 public:
  virtual ~ProgressSink() = default;
  virtual void progress(std::string_view stage, std::uint64_t done, std::uint64_t total) = 0;
};

/// Passed to calls that take long. Everything in it may be left out.
struct Hooks {
  std::shared_ptr<Logger> logger = {};
  std::shared_ptr<ProgressSink> progress = {};
  std::stop_token stop = {};

  void log(LogLevel level, std::string_view line) const {
    if (logger) logger->log(level, line);
  }
  void report(std::string_view stage, std::uint64_t done, std::uint64_t total) const {
    if (progress) progress->progress(stage, done, total);
  }
};

}  // namespace nihao
