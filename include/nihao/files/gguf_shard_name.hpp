// What the shards of a split GGUF model are called.
#pragma once

#include "../base/str.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace nihao {

/// name-00001-of-00003.gguf, taken apart.
struct GgufShardName {
  std::string prefix;
  std::uint32_t number, count;

  static std::optional<GgufShardName> from(std::string_view path) {
    constexpr std::string_view pattern = "-#####-of-#####.gguf";
    if (path.size() <= pattern.size()) return std::nullopt;
    const std::string_view tail = path.substr(path.size() - pattern.size());
    std::uint32_t numbers[2] = {0, 0};
    for (std::size_t i = 0; i < pattern.size(); ++i) {
      if (pattern[i] != '#') {
        if (tail[i] != pattern[i]) return std::nullopt;
      } else {
        if (tail[i] < '0' || tail[i] > '9') return std::nullopt;
        std::uint32_t& number = numbers[i < 6 ? 0 : 1];
        number = number * 10 + static_cast<std::uint32_t>(tail[i] - '0');
      }
    }
    return GgufShardName{std::string(path.substr(0, path.size() - pattern.size())), numbers[0], numbers[1]};
  }
  [[nodiscard]] std::string path(std::uint32_t i) const {
    const auto five = [](std::uint32_t n) {
      const std::string digits = concat(n);
      return std::string(5 - std::min<std::size_t>(5, digits.size()), '0') + digits;
    };
    return concat(prefix, "-", five(i), "-of-", five(count), ".gguf");
  }
};

}  // namespace nihao
