// Counts the program's allocations, so that a test can state that there are none. Include it in one source of a test program:
// it replaces operator new.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace nihao::test {
inline std::atomic<std::size_t> allocations = 0;
}

// Out of line, or g++ sees free() meet its own idea of new.
__attribute__((noinline)) void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++nihao::test::allocations;
  return std::malloc(size ? size : 1);
}
__attribute__((noinline)) void* operator new(std::size_t size) {
  if (void* p = operator new(size, std::nothrow)) return p;
  throw std::bad_alloc();
}
__attribute__((noinline)) void operator delete(void* p) noexcept { std::free(p); }
__attribute__((noinline)) void operator delete(void* p, std::size_t) noexcept { std::free(p); }
