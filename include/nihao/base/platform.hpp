// The one file that talks to the operating system: files mapped into memory, large aligned allocations, process figures.
#pragma once

#include "error.hpp"
#include "str.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace nihao {

/// A file mapped read-only. Pages come from the page cache on first touch, and can be given back by `release`.
class MappedFile {
 public:
  /// Errors: io (no such file, no permission, a folder, an empty file).
  [[nodiscard]] static Expected<MappedFile> open(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return Error{ErrorCode::io, std::strerror(errno), path};
    MappedFile file;
    struct stat info{};
    std::string trouble;
    if (::fstat(fd, &info) != 0) trouble = std::strerror(errno);
    else if (!S_ISREG(info.st_mode)) trouble = "not a regular file";
    else if (info.st_size == 0) trouble = "the file is empty";
    else {
      file.size_ = static_cast<std::size_t>(info.st_size);
      void* data = ::mmap(nullptr, file.size_, PROT_READ, MAP_PRIVATE, fd, 0);
      if (data == MAP_FAILED) trouble = std::strerror(errno);
      else file.data_ = static_cast<const std::byte*>(data);
    }
    ::close(fd);
    if (!trouble.empty()) return Error{ErrorCode::io, std::move(trouble), path};
    return file;
  }

  MappedFile() noexcept = default;
  MappedFile(MappedFile&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~MappedFile() {
    if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
  }

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }

  /// Lets the system drop the whole pages inside `part` from this process; a later read brings them back from the file.
  static void release(std::span<const std::byte> part) noexcept {
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto first = (reinterpret_cast<std::uintptr_t>(part.data()) + page - 1) / page * page;
    const auto last = (reinterpret_cast<std::uintptr_t>(part.data()) + part.size()) / page * page;
    if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
  }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Zeroed memory straight from the system, aligned to a page, on huge pages where the system has them: weights and caches.
/// (Weights on 4 KB pages cost up to a fifth of the read bandwidth: docs/numbers.md.)
class PageBuffer {
 public:
  /// Errors: out_of_memory.
  [[nodiscard]] static Expected<PageBuffer> allocate(std::size_t size) {
    PageBuffer buffer;
    if (size == 0) return buffer;
    constexpr std::size_t huge = std::size_t{2} << 20;
    const std::size_t padded = size >= huge ? (size + huge - 1) / huge * huge + huge : size;
    void* data = padded < size ? MAP_FAILED : ::mmap(nullptr, padded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) return Error{ErrorCode::out_of_memory, concat("cannot allocate ", size, " bytes")};
    buffer.mapping_ = data;
    buffer.mapped_ = padded;
    buffer.size_ = size;
    buffer.data_ = static_cast<std::byte*>(data);
    if (size >= huge) {
      const auto address = reinterpret_cast<std::uintptr_t>(data);
      buffer.data_ += (address + huge - 1) / huge * huge - address;
      ::madvise(buffer.data_, padded - huge, MADV_HUGEPAGE);
    }
    return buffer;
  }

  PageBuffer() noexcept = default;
  PageBuffer(PageBuffer&& other) noexcept { swap(other); }
  PageBuffer& operator=(PageBuffer&& other) noexcept { return swap(other), *this; }
  ~PageBuffer() {
    if (mapping_ != nullptr) ::munmap(mapping_, mapped_);
  }

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  void swap(PageBuffer& other) noexcept {
    std::swap(mapping_, other.mapping_);
    std::swap(mapped_, other.mapped_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }
  void* mapping_ = nullptr;
  std::size_t mapped_ = 0;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// A thread that says whether it could be started, where std::thread would throw. Joined on destruction.
class Thread {
 public:
  Thread() noexcept = default;
  /// Runs `entry(argument)`. False from `running()` if the system refused.
  Thread(void* (*entry)(void*), void* argument) noexcept { running_ = ::pthread_create(&thread_, nullptr, entry, argument) == 0; }
  Thread(Thread&& other) noexcept : thread_(other.thread_), running_(std::exchange(other.running_, false)) {}
  Thread& operator=(Thread&& other) noexcept {
    std::swap(thread_, other.thread_);
    std::swap(running_, other.running_);
    return *this;
  }
  ~Thread() {
    if (running_) ::pthread_join(thread_, nullptr);
  }
  [[nodiscard]] bool running() const noexcept { return running_; }

 private:
  pthread_t thread_{};
  bool running_ = false;
};

/// The largest resident size this process has had, in bytes.
[[nodiscard]] inline std::uint64_t peak_rss_bytes() noexcept {
  struct rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
#if defined(__APPLE__)
  return static_cast<std::uint64_t>(usage.ru_maxrss);
#else
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
#endif
}

}  // namespace nihao
