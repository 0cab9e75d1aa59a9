// Writing a file so that nobody meets half of one: under a temporary name, renamed when it is complete.
#pragma once

#include "../base/error.hpp"
#include "../base/str.hpp"

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

/// A file being written to `path`.part. commit() gives it its name; without that it is removed.
class OutputFile {
 public:
  /// Errors: io.
  [[nodiscard]] static Expected<OutputFile> create(const std::string& path) {
    OutputFile out;
    out.path_ = path;
    out.file_ = std::fopen(out.temporary().c_str(), "wb");
    if (out.file_ == nullptr) return Error{ErrorCode::io, std::strerror(errno), path};
    return out;
  }

  OutputFile(OutputFile&& other) noexcept
      : file_(std::exchange(other.file_, nullptr)), path_(std::move(other.path_)), size_(other.size_) {}
  OutputFile& operator=(OutputFile&& other) noexcept {
    std::swap(file_, other.file_);
    std::swap(path_, other.path_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~OutputFile() {
    if (file_ == nullptr) return;
    std::fclose(file_);
    std::remove(temporary().c_str());
  }

  /// Bytes written so far.
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

  /// Errors: io.
  [[nodiscard]] Expected<void> write(std::span<const std::byte> bytes) {
    if (!bytes.empty() && std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) return failed();
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
    const bool closed = std::fclose(std::exchange(file_, nullptr)) == 0;
    if (closed && std::rename(temporary().c_str(), path_.c_str()) == 0) return {};
    Error error = failed();
    std::remove(temporary().c_str());
    return error;
  }

 private:
  OutputFile() = default;
  [[nodiscard]] std::string temporary() const { return path_ + ".part"; }
  [[nodiscard]] Error failed() const { return Error{ErrorCode::io, std::strerror(errno), path_}; }

  std::FILE* file_ = nullptr;
  std::string path_;
  std::uint64_t size_ = 0;
};

}  // namespace nihao
