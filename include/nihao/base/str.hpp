// Joining text and numbers for error messages, without streams and without fmt.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace nihao {

namespace detail {
inline void append_part(std::string& out, std::string_view part) { out += part; }
inline void append_part(std::string& out, char part) { out += part; }
template <class T>
  requires(std::integral<T> || std::floating_point<T>) && (!std::same_as<T, char>) && (!std::same_as<T, bool>)
void append_part(std::string& out, T part) {
  char digits[64];
  const auto end = std::to_chars(digits, digits + sizeof digits, part).ptr;
  out.append(digits, end);
}
}  // namespace detail

/// concat("tensor ", 3, " of ", 7) == "tensor 3 of 7".
template <class... Parts>
[[nodiscard]] std::string concat(const Parts&... parts) {
  std::string out;
  (detail::append_part(out, parts), ...);
  return out;
}

/// Text from a file made fit to print in an error: control bytes and bytes outside ASCII as \xNN, cut after `limit` bytes.
[[nodiscard]] inline std::string printable(std::string_view text, std::size_t limit = 80) {
  static constexpr char hex[] = "0123456789abcdef";
  std::string out;
  for (const char c : text.substr(0, limit)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) out += c;
    else (out += "\\x") += {hex[byte >> 4], hex[byte & 15]};
  }
  if (text.size() > limit) out += "...";
  return out;
}

}  // namespace nihao
