// Joining text and numbers for error messages, without streams and without fmt.
#pragma once

#include "config.hpp"

#include <charconv>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace nihao {

namespace detail {
/// What concat joins: text, or a number to be printed.
struct Piece {
  enum class Kind : std::uint8_t { text, character, signed_integer, unsigned_integer, single, real } kind;
  union {
    std::string_view text;
    char character;
    std::int64_t signed_integer;
    std::uint64_t unsigned_integer;
    float single;
    double real;
  };
  Piece(std::string_view value) : kind(Kind::text), text(value) {}
  Piece(const std::string& value) : Piece(std::string_view(value)) {}
  Piece(const char* value) : Piece(std::string_view(value)) {}
  Piece(char value) : kind(Kind::character), character(value) {}
  template <std::signed_integral T>
  Piece(T value) : kind(Kind::signed_integer), signed_integer(value) {}
  template <std::unsigned_integral T>
    requires(!std::same_as<T, bool>)
  Piece(T value) : kind(Kind::unsigned_integer), unsigned_integer(value) {}
  Piece(float value) : kind(Kind::single), single(value) {}
  Piece(double value) : kind(Kind::real), real(value) {}
};

NIHAO_COLD inline std::string join(std::initializer_list<Piece> pieces) {
  std::string out;
  char digits[64];
  const auto number = [&](auto value) { out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr); };
  for (const Piece& piece : pieces) {
    switch (piece.kind) {
      case Piece::Kind::text: out += piece.text; break;
      case Piece::Kind::character: out += piece.character; break;
      case Piece::Kind::signed_integer: number(piece.signed_integer); break;
      case Piece::Kind::unsigned_integer: number(piece.unsigned_integer); break;
      case Piece::Kind::single: number(piece.single); break;
      case Piece::Kind::real: number(piece.real); break;
    }
  }
  return out;
}
}  // namespace detail

/// concat("tensor ", 3, " of ", 7) == "tensor 3 of 7".
template <class... Parts>
[[nodiscard]] std::string concat(const Parts&... parts) {
  return detail::join({detail::Piece(parts)...});
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
