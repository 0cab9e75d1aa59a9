// Base64, in which the shared data has bytes that are no text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace nihao::test {

inline std::string from_base64(std::string_view text) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  unsigned bits = 0, held = 0;
  for (const char c : text) {
    const std::size_t digit = digits.find(c);
    if (digit == std::string_view::npos) break;
    bits = (bits << 6 | static_cast<unsigned>(digit)) & 0xFFFF;
    held += 6;
    if (held >= 8) out += static_cast<char>(bits >> (held -= 8) & 0xFF);
  }
  return out;
}

}  // namespace nihao::test
