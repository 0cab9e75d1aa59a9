// Writing a file so that nobody meets half of one: under a temporary name, renamed when it is complete. Devices and FIFOs are
// written as they are.
#pragma once

#include "../base/error.hpp"
#include "../base/platform.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <utility>

namespace nihao {

/// New content for `path`, written beside it and renamed to it by commit(); without that it is removed, and what was there
/// stays. What is there and is no regular file (a device, a FIFO) is written in place. Links are followed (base/platform.hpp).
class OutputFile {
 public:
  /// Errors: io.
  [[nodiscard]] static Expected<OutputFile> create(const std::string& path) {
    OutputFile out;
    NIHAO_TRY(out.out_, open_output(path));
    out.path_ = path;
    return out;
  }

  OutputFile(OutputFile&& other) noexcept { swap(other); }
  OutputFile& operator=(OutputFile&& other) noexcept { return swap(other), *this; }
  ~OutputFile() {
    if (out_.stream == nullptr) return;
    std::fclose(out_.stream);
    remove_temporary();
  }

  /// Bytes written so far.
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

  /// Errors: io.
  [[nodiscard]] Expected<void> write(std::span<const std::byte> bytes) {
    if (!bytes.empty() && std::fwrite(bytes.data(), 1, bytes.size(), out_.stream) != bytes.size()) return failed();
    size_ += bytes.size();
    return {};
  }

  /// Zeros up to a multiple of `unit`. Errors: io.
  [[nodiscard]] Expected<void> pad(std::uint64_t unit) {
    static constexpr std::byte zeros[64]{};
    for (std::uint64_t left = (unit - size_ % unit) % unit; left != 0;) {
      const auto part = std::span(zeros).first(static_cast<std::size_t>(std::min<std::uint64_t>(left, sizeof zeros)));
      NIHAO_CHECK(write(part));
      left -= part.size();
    }
    return {};
  }

  /// Errors: io.
  [[nodiscard]] Expected<void> commit() && {
    const bool closed = std::fclose(std::exchange(out_.stream, nullptr)) == 0;  // the last of it is written here
    if (closed && (out_.target.empty() || std::rename(out_.path.c_str(), out_.target.c_str()) == 0)) return {};
    Error error = failed();
    remove_temporary();
    return error;
  }

 private:
  OutputFile() = default;
  void swap(OutputFile& other) noexcept {
    std::swap(out_, other.out_);
    std::swap(path_, other.path_);
    std::swap(size_, other.size_);
  }
  void remove_temporary() const noexcept {
    if (!out_.target.empty()) std::remove(out_.path.c_str());
  }
  [[nodiscard]] Error failed() const { return Error{ErrorCode::io, std::strerror(errno), path_}; }

  OutputStream out_;
  std::string path_;
  std::uint64_t size_ = 0;
};

}  // namespace nihao
