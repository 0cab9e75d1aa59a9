// UTF-8: decoding, validation, and cutting a stream of bytes into whole characters.
// Source: the Unicode Standard, section 3.9 (well-formed sequences, table 3-7; U+FFFD per maximal subpart).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace nihao {

/// What stands for bytes that are not UTF-8.
inline constexpr char32_t replacement_character = 0xFFFD;
inline constexpr std::string_view replacement_utf8 = "\xEF\xBF\xBD";

/// One step of decoding. `length` bytes were read: a whole character, or the longest beginning of one that is here (the
/// "maximal subpart", at least 1 byte); then `code` is U+FFFD and `valid` is false.
struct DecodedChar {
  char32_t code;
  std::uint8_t length;
  bool valid;
};

/// 10xxxxxx: a byte inside a character.
[[nodiscard]] constexpr bool is_utf8_continuation(char byte) noexcept {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

/// The length that a character's first byte announces, 1 to 4, by its upper half alone; 1 for a continuation byte.
[[nodiscard]] constexpr unsigned utf8_length(char first) noexcept {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

/// Decodes at `at` (at < text.size()).
[[nodiscard]] constexpr DecodedChar decode_utf8(std::string_view text, std::size_t at) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return {first, 1, true};
  const unsigned need = utf8_length(text[at]);
  if (first < 0xC2 || first > 0xF4) return {replacement_character, 1, false};
  // The second byte's range shuts out overlong forms, surrogates and what lies beyond U+10FFFF.
  const unsigned low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  char32_t code = first & (0x7Fu >> need);
  for (unsigned i = 1; i < need; ++i) {
    const unsigned next = at + i < text.size() ? byte(i) : 0;
    if (next < (i == 1 ? low : 0x80) || next > (i == 1 ? high : 0xBF)) {
      return {replacement_character, static_cast<std::uint8_t>(i), false};
    }
    code = code << 6 | (next & 0x3F);
  }
  return {code, static_cast<std::uint8_t>(need), true};
}

/// Decodes a character of text that is already known to be whole (every first byte is followed by its continuation bytes).
[[nodiscard]] constexpr char32_t decode_utf8_unchecked(const char* at) noexcept {
  const auto byte = [&](int i) { return static_cast<char32_t>(static_cast<unsigned char>(at[i])); };
  const char32_t first = byte(0);
  if (first < 0x80) return first;
  if (first < 0xE0) return (first & 0x1F) << 6 | (byte(1) & 0x3F);
  if (first < 0xF0) return (first & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
  return (first & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
}

/// Appends a code point (any value below 2^21; a surrogate gives its three bytes, as in WTF-8).
inline void append_utf8(std::string& out, char32_t code) {
  const auto put = [&](char32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6), put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12), put(0x80 | (code >> 6 & 0x3F)), put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | (code >> 18 & 0x07)), put(0x80 | (code >> 12 & 0x3F)), put(0x80 | (code >> 6 & 0x3F)), put(0x80 | (code & 0x3F));
  }
}

/// The number of bytes at the front that are ASCII, found eight at a time.
[[nodiscard]] inline std::size_t ascii_prefix(std::string_view text) noexcept {
  std::size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    std::uint64_t eight;
    std::memcpy(&eight, text.data() + at, 8);
    if (eight & 0x8080808080808080u) break;
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
  return at;
}

/// The number of bytes at the front that are well-formed UTF-8: text.size() if all of it is.
[[nodiscard]] inline std::size_t valid_utf8_prefix(std::string_view text) noexcept {
  std::size_t at = 0;
  while (at < text.size()) {
    at += ascii_prefix(text.substr(at));
    // Text that is not ASCII tends to stay so for a while.
    while (at < text.size() && static_cast<unsigned char>(text[at]) >= 0x80) {
      const DecodedChar c = decode_utf8(text, at);
      if (!c.valid) return at;
      at += c.length;
    }
  }
  return at;
}

[[nodiscard]] inline bool is_valid_utf8(std::string_view text) noexcept { return valid_utf8_prefix(text) == text.size(); }

/// The number of bytes at the end (0 to 3) that begin a character which more bytes could complete.
[[nodiscard]] constexpr std::size_t incomplete_utf8_suffix(std::string_view text) noexcept {
  for (std::size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const std::size_t at = text.size() - back;
    if (is_utf8_continuation(text[at])) continue;
    const auto first = static_cast<unsigned char>(text[at]);
    const bool can_begin = first >= 0xC2 && first <= 0xF4 && utf8_length(text[at]) > back;
    return can_begin && decode_utf8(text, at).length == back ? back : 0;
  }
  return 0;
}

/// Appends `bytes` with U+FFFD for each maximal subpart of what is not UTF-8.
inline void append_valid_utf8(std::string& out, std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t good = valid_utf8_prefix(bytes);
    out.append(bytes.substr(0, good));
    if (good == bytes.size()) return;
    out.append(replacement_utf8);
    bytes.remove_prefix(good + decode_utf8(bytes, good).length);
  }
}

/// Cuts a stream of bytes into whole characters: what comes out is always valid UTF-8, and pieces in any cut give the same
/// text as all bytes at once. At most 3 bytes wait inside.
class Utf8Stream {
 public:
  /// Appends to `out` what is now certain: whole characters, and U+FFFD for bytes that can no longer become one.
  void push(std::string_view bytes, std::string& out) {
    while (waiting_ != 0 && !bytes.empty()) {
      held_[waiting_++] = bytes.front();
      bytes.remove_prefix(1);
      drain(out);
    }
    const std::size_t tail = incomplete_utf8_suffix(bytes);
    append_valid_utf8(out, bytes.substr(0, bytes.size() - tail));
    for (const char byte : bytes.substr(bytes.size() - tail)) held_[waiting_++] = byte;
  }

  /// The end: bytes that still wait become one U+FFFD.
  void finish(std::string& out) {
    if (waiting_ != 0) out.append(replacement_utf8);
    waiting_ = 0;
  }

  /// How many bytes wait for the rest of their character.
  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_; }

 private:
  // Lets go of the held bytes as soon as they are a character or can no longer begin one.
  void drain(std::string& out) {
    const std::string_view held(held_, waiting_);
    const std::size_t tail = incomplete_utf8_suffix(held);
    if (tail == held.size()) return;
    append_valid_utf8(out, held.substr(0, held.size() - tail));
    std::memmove(held_, held_ + (waiting_ - tail), tail);
    waiting_ = tail;
  }

  char held_[4] = {};  // a character never needs more: three wait, the fourth decides
  std::size_t waiting_ = 0;
};

}  // namespace nihao
