// Random matrices in any format: random codes, scales of sensible size.
#pragma once

#include "nihao/format/registry.hpp"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <random>
#include <vector>

namespace nihao::test {

// Uniform in [-2, 2), the same on every compiler: the standard's distributions are at the mercy of -ffp-contract.
inline float next_float(std::mt19937& random) { return static_cast<float>(static_cast<std::int32_t>(random())) * 0x1p-30f; }

inline std::vector<std::byte> random_weights(FormatId format, std::size_t rows, std::size_t cols, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(rows * row_bytes(format, cols));
  visit_format(format, [&]<class F>(F) {
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(typename F::Block)) {
      typename F::Block block;
      auto* raw = reinterpret_cast<unsigned char*>(&block);
      for (std::size_t i = 0; i < sizeof block; ++i) raw[i] = static_cast<unsigned char>(random());
      if constexpr (std::is_same_v<F, IQ1_M>) {  // its scale is in pieces
        const std::uint16_t d = to_f16(next_float(random) * 0.05f).bits;
        for (int i = 0; i < 4; ++i)
          block.scales[i][1] = static_cast<std::uint8_t>((block.scales[i][1] & 15) | (d >> 4 * i & 15) << 4);
      } else if constexpr (requires { block.e; }) block.e = static_cast<std::uint8_t>(118 + random() % 5);
      else if constexpr (std::is_same_v<F, Q8_K>) block.d = next_float(random) * 0.05f;
      else if constexpr (requires { block.d.bits; }) block.d = to_f16(next_float(random) * 0.05f);
      else if constexpr (requires { block.q[0].bits; }) {  // floats of eight bits, without infinities and NaNs
        block.d = next_float(random) * 0.05f;
        for (auto& q : block.q) q.bits = static_cast<std::uint8_t>(q.bits & 0xbf);
      } else if constexpr (requires { requires std::is_same_v<decltype(block.d), float>; }) block.d = next_float(random) * 0.05f;
      if constexpr (requires { block.z; }) block.z = to_f16(static_cast<float>(static_cast<int>(random() % 32) - 8));
      if constexpr (requires { block.m; }) block.m = to_f16(next_float(random));
      if constexpr (requires { block.dmin; }) block.dmin = to_f16(std::fabs(next_float(random)) * 0.05f);
      if constexpr (requires { block.value; }) block.value = round_to<decltype(block.value)>(next_float(random));
      std::memcpy(bytes.data() + at, &block, sizeof block);
    }
  });
  return bytes;
}

inline std::vector<float> random_floats(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(n);
  for (float& v : values) v = next_float(random);
  return values;
}

}  // namespace nihao::test
