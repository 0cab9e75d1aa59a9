// The one file that talks to the operating system: files mapped into memory and written, large aligned allocations, process
// figures, and what the system knows of the processor.
#pragma once

#include "error.hpp"
#include "str.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
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
#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace nihao {

/// A file mapped read-only. Pages come from the page cache on first touch, and can be given back by `release`.
class MappedFile {
 public:
  /// Errors: io (no such file, no permission, an empty file, and what is no regular file: a folder, a FIFO, a device).
  [[nodiscard]] static Expected<MappedFile> open(const std::string& path) {
    if (path.empty()) return Error{ErrorCode::io, "the name of the file is empty"};
    // Without O_NONBLOCK the open of a FIFO waits for somebody who writes into it.
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return Error{ErrorCode::io, std::strerror(errno), path};
    MappedFile file;
    struct stat info{};
    std::string trouble;
    if (::fstat(fd, &info) != 0) trouble = std::strerror(errno);
    else if (S_ISDIR(info.st_mode)) trouble = "a folder, not a file";
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

/// A stream to what is to be a file's content.
struct OutputStream {
  std::FILE* stream = nullptr;
  std::string path = {};    ///< what it writes to
  std::string target = {};  ///< the file that `path` is to be renamed to; empty where it is written in place
};

namespace detail {
/// The name at the end of a chain of symbolic links; the path itself where it is none. Nothing for a loop, and for a name that
/// stands for something open rather than for a file (/dev/stdout leads to one).
[[nodiscard]] inline std::string follow_links(std::string path) {
  for (int links = 0; links < 40; ++links) {
    if (path.starts_with("/proc/")) return {};
    char to[4096];
    const ssize_t size = ::readlink(path.c_str(), to, sizeof to);
    if (size <= 0 || static_cast<std::size_t>(size) == sizeof to) return path;
    if (to[0] == '/') path.clear();
    else path.resize(path.rfind('/') + 1);  // a relative link starts at its own folder; npos + 1 is 0
    path.append(to, static_cast<std::size_t>(size));
  }
  return {};
}
}  // namespace detail

/// Opens `path` to give it new content. A regular file, or one that is not there yet, is written under a temporary name beside
/// it, which a rename then gives it: links are followed first, so that the file is replaced and not the link to it, and its
/// permissions stay. What exists and is something else (a device, a FIFO) is written in place: a rename would put a file where
/// it was. Errors: io.
[[nodiscard]] inline Expected<OutputStream> open_output(const std::string& path) {
  const auto failed = [&](int why) { return Error{ErrorCode::io, std::strerror(why), path}; };
  if (path.empty()) return Error{ErrorCode::io, "the name of the file is empty"};
  struct stat info{};
  const bool exists = ::stat(path.c_str(), &info) == 0;
  if (!exists && errno != ENOENT) return failed(errno);
  if (exists && ::access(path.c_str(), W_OK) != 0) return failed(errno);  // a rename would not ask the file
  OutputStream out;
  if (!exists || S_ISREG(info.st_mode)) out.target = detail::follow_links(path);
  int fd = -1;
  if (out.target.empty()) {
    out.path = path;
    fd = ::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY);
  } else {
    constexpr int most = 100;  // a name that is taken is somebody else's, or was left by a program that was killed
    for (int n = 0; n < most; ++n) {
      out.path = n == 0 ? concat(out.target, ".part") : concat(out.target, ".part", n);
      fd = ::open(out.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (fd >= 0 || errno != EEXIST) break;
    }
  }
  if (fd < 0) return failed(errno);
  if (exists && !out.target.empty()) {
    // As far as the system lets us: who may not give files away makes one of their own.
    const bool kept = ::fchown(fd, info.st_uid, info.st_gid) == 0;
    static_cast<void>(::fchmod(fd, info.st_mode & (kept ? 07777u : 0777u)));
  }
  out.stream = ::fdopen(fd, "wb");
  if (out.stream != nullptr) return out;
  const int why = errno;
  ::close(fd);
  if (!out.target.empty()) ::unlink(out.path.c_str());
  return failed(why);
}

/// What a PageBuffer lies on. A huge page is 2 MiB of memory as soon as one byte of it is written: for what is written densely.
enum class Pages : std::uint8_t { huge, small };

/// Zeroed memory straight from the system, aligned to a page, on huge pages where the system has them: weights and caches.
/// (Weights on 4 KB pages cost up to a fifth of the read bandwidth: docs/performance.md.)
class PageBuffer {
 public:
  /// Errors: out_of_memory.
  [[nodiscard]] static Expected<PageBuffer> allocate(std::size_t size, Pages pages = Pages::huge) {
    PageBuffer buffer;
    if (size == 0) return buffer;
    constexpr std::size_t huge = std::size_t{2} << 20;
    const std::size_t padded = pages == Pages::huge && size >= huge ? (size + huge - 1) / huge * huge + huge : size;
    void* data = padded < size ? MAP_FAILED : ::mmap(nullptr, padded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) return Error{ErrorCode::out_of_memory, concat("cannot allocate ", size, " bytes")};
    buffer.mapping_ = data;
    buffer.mapped_ = padded;
    buffer.size_ = size;
    buffer.data_ = static_cast<std::byte*>(data);
    if (pages == Pages::huge && size >= huge) {
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

#if defined(__aarch64__)
/// True if this machine's processor has the dot products of bytes (sdot) that came with Armv8.2.
[[nodiscard]] inline bool cpu_has_arm_dotprod() noexcept {
#if defined(__linux__)
  constexpr unsigned long asimddp = 1ul << 20;  // HWCAP_ASIMDDP of <asm/hwcap.h>: part of the kernel's contract
  return (::getauxval(AT_HWCAP) & asimddp) != 0;
#elif defined(__APPLE__)
  return true;  // every Mac of this architecture has them
#else
  return false;
#endif
}
#endif

}  // namespace nihao
