// The sampler's random numbers: counter-based, so that token n of a seed is the same draw on every platform and after
// every restart, however many draws the tokens before it took.
#pragma once

#include <cstdint>

namespace nihao {

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014) keyed by a seed and a step.
/// `at(step)` starts the stream of one step; `next()` and `uniform()` draw from it. Nothing else is state.
class Random {
 public:
  explicit Random(std::uint64_t seed = 0) noexcept : key_(mix(seed + gamma)) { at(0); }

  /// Starts the stream of `step`; streams of different steps are unrelated.
  void at(std::uint64_t step) noexcept { state_ = mix(key_ + gamma * (step + 1)); }

  /// 64 random bits.
  [[nodiscard]] std::uint64_t next() noexcept { return mix(state_ += gamma); }

  /// Uniform in [0, 1), a multiple of 2^-53.
  [[nodiscard]] double uniform() noexcept { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

 private:
  static constexpr std::uint64_t gamma = 0x9e3779b97f4a7c15u;  // 2^64 / golden ratio, odd
  static constexpr std::uint64_t mix(std::uint64_t z) noexcept {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  std::uint64_t key_;
  std::uint64_t state_ = 0;
};

}  // namespace nihao
