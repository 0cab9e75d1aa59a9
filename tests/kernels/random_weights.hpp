// Random matrices in any format: random codes, scales of sensible size.
#pragma once

#include "nihao/format/registry.hpp"

#include <cstddef>
#include <cstring>
#include <random>
#include <vector>

namespace nihao::test {

inline std::vector<std::byte> random_weights(FormatId format, std::size_t rows, std::size_t cols, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(rows * row_bytes(format, cols));
  std::uniform_real_distribution<float> scale(0.001f, 0.1f);
  std::normal_distribution<float> normal;
  visit_format(format, [&]<class F>(F) {
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(typename F::Block)) {
      typename F::Block block;
      auto* raw = reinterpret_cast<unsigned char*>(&block);
      for (std::size_t i = 0; i < sizeof block; ++i) raw[i] = static_cast<unsigned char>(random());
      if constexpr (requires { block.d; }) block.d = to_f16(scale(random) * (random() % 2 ? 1.0f : -1.0f));
      if constexpr (requires { block.m; }) block.m = to_f16(normal(random));
      if constexpr (requires { block.dmin; }) block.dmin = to_f16(scale(random));
      if constexpr (requires { block.value; }) block.value = round_to<decltype(block.value)>(normal(random));
      std::memcpy(bytes.data() + at, &block, sizeof block);
    }
  });
  return bytes;
}

inline std::vector<float> random_floats(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& v : values) v = normal(random);
  return values;
}

}  // namespace nihao::test
