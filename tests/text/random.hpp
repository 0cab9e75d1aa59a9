// Numbers for property tests, the same on every machine.
#pragma once

#include <cstdint>

namespace nihao::test {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  /// 0 to bound - 1.
  unsigned below(unsigned bound) {  // splitmix64
    state_ += 0x9E3779B97F4A7C15u;
    std::uint64_t z = state_;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return static_cast<unsigned>((z ^ z >> 31) % bound);
  }

 private:
  std::uint64_t state_;
};

}  // namespace nihao::test
