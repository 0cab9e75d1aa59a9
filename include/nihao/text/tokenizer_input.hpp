// What a tokenizer makes of its input before cutting it: bytes that are not UTF-8, and spaces. Valid text passes uncopied.
//
// What becomes of invalid bytes follows llama.cpp, id for id, so that prompts and evaluations compare; it differs from the
// usual U+FFFD per maximal subpart (utf8.hpp), which is for output. docs/tokenizers.md has the table.
#pragma once

#include "utf8.hpp"

#include <string>
#include <string_view>

namespace nihao::detail {

/// Input of a byte-level tokenizer. What is valid stays; an overlong form becomes its character and a surrogate stays as its
/// three bytes; any other byte becomes U+FFFD. `storage` holds the result where it is not `raw` itself.
inline std::string_view byte_level_input(std::string_view raw, std::string& storage) {
  if (is_valid_utf8(raw)) return raw;
  storage.clear();
  for (std::size_t at = 0; at < raw.size();) {
    const auto first = static_cast<unsigned char>(raw[at]);
    const unsigned length = utf8_length(raw[at]);
    bool whole = at + length <= raw.size() && (first < 0x80 || (first >= 0xC0 && first < 0xF8));
    for (unsigned i = 1; whole && i < length; ++i) whole = is_utf8_continuation(raw[at + i]);
    const char32_t code = whole ? decode_utf8_unchecked(raw.data() + at) : replacement_character;
    if (!whole || code > 0x10FFFF) {
      storage += replacement_utf8;
      at += 1;
    } else {
      append_utf8(storage, code);
      at += length;
    }
  }
  return storage;
}

/// Input of a SentencePiece tokenizer: U+2581 is a space, and `prefix` puts one in front. Invalid bytes stay. A first byte
/// takes as many bytes as it announces, also where they are not continuation bytes; a space there counts as the three bytes
/// of U+2581, of which it may take some, and the others stand alone.
inline std::string_view sentencepiece_input(std::string_view raw, bool prefix, std::string& storage) {
  static constexpr std::string_view space = "\xE2\x96\x81";
  const bool valid = is_valid_utf8(raw);
  if (valid && !prefix && raw.find(space) == std::string_view::npos) return raw;
  storage.clear();
  if (prefix) storage += ' ';
  if (valid) {
    for (std::size_t found; (found = raw.find(space)) != std::string_view::npos; raw.remove_prefix(found + space.size())) {
      storage.append(raw.substr(0, found)) += ' ';
    }
    storage.append(raw);
    return storage;
  }
  for (std::size_t at = 0; at < raw.size();) {
    if (raw.substr(at, space.size()) == space) {
      storage += ' ';
      at += space.size();
      continue;
    }
    std::size_t need = utf8_length(raw[at]);
    storage += raw[at++];
    std::string_view rest_of_space;
    while (--need > 0 && at < raw.size()) {
      if (rest_of_space.empty() && raw[at] == ' ') rest_of_space = space;
      if (rest_of_space.empty()) {
        storage += raw[at++];
        continue;
      }
      storage += rest_of_space.front();
      rest_of_space.remove_prefix(1);
      if (rest_of_space.empty()) ++at;
    }
    if (!rest_of_space.empty()) {
      storage += rest_of_space;
      ++at;
    }
  }
  return storage;
}

}  // namespace nihao::detail
