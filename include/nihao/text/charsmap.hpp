// SentencePiece's precompiled character map: which rows of bytes are replaced by which, as a Darts-clone double array and a run
// of zero-terminated texts. It comes from a file: every index is checked, and nothing it says can make a text much longer.
// Source: google/sentencepiece, normalizer.cc; s-yata/darts-clone, darts.h.
#pragma once

#include "../base/bytes.hpp"
#include "../base/error.hpp"
#include "../base/str.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nihao {

/// Finds the longest replaced prefix of a text. Owns what it holds; empty, it replaces nothing.
class Charsmap {
 public:
  /// No replacement and no replaced text is longer: the longest of NFKC has 33 bytes.
  static constexpr std::size_t longest = 255;

  Charsmap() = default;

  /// From a file's blob: the double array's size, the array, the texts. An empty blob is an empty map.
  /// Errors: truncated, malformed (sizes that do not fit, a text that is too long or has no end).
  [[nodiscard]] static Expected<Charsmap> read(std::span<const std::byte> blob) {
    Charsmap map;
    if (blob.empty()) return map;
    ByteReader reader(blob);
    NIHAO_TRY(const auto size, reader.read<std::uint32_t>("the character map's size"));
    if (size % sizeof(std::uint32_t) != 0)
      return Error{ErrorCode::malformed, concat("the character map has ", size, " bytes, which are no whole units"), "byte 0"};
    NIHAO_CHECK(reader.expect_items(size / sizeof(std::uint32_t), sizeof(std::uint32_t), "the character map"));
    map.units_.reserve(size / sizeof(std::uint32_t));
    for (std::size_t i = 0; i < size / sizeof(std::uint32_t); ++i) {
      NIHAO_TRY(const auto unit, reader.read<std::uint32_t>("the character map"));
      map.units_.push_back(unit);
    }
    const std::size_t texts = reader.offset();
    NIHAO_TRY(map.texts_, reader.text(reader.left(), "the replacements"));
    for (std::size_t at = 0; at < map.texts_.size();) {
      const std::size_t end = map.texts_.find('\0', at);
      if (end == std::string::npos || end - at > longest)
        return Error{ErrorCode::malformed, concat("a replacement does not end within ", longest, " bytes"),
                     concat("byte ", texts + at)};
      at = end + 1;
    }
    return map;
  }

  struct Match {
    std::size_t size = 0;  ///< bytes of the text that are replaced; 0: none are
    std::string_view by = {};
  };
  [[nodiscard]] Match match(std::string_view text) const noexcept {
    Match best;
    if (units_.empty()) return best;
    std::uint32_t value = 0;
    std::size_t at = offset(units_[0]);
    for (std::size_t i = 0; i < text.size() && i < longest; ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      at ^= byte;
      if (at >= units_.size() || (units_[at] & label_bits) != byte) break;
      const std::uint32_t unit = units_[at];
      at ^= offset(unit);
      if ((unit & has_value) == 0) continue;
      if (at >= units_.size()) break;
      value = units_[at] & ~value_bit;
      best.size = i + 1;
    }
    if (best.size == 0) return best;
    if (value >= texts_.size()) return {};
    best.by = std::string_view(texts_.data() + value);  // it ends: read() has seen the last text's zero
    return best;
  }

 private:
  // A unit: label in bits 0..7, whether it has a value in 8, the offset to its children above; a value has bit 31.
  static constexpr std::uint32_t has_value = 1u << 8, value_bit = 1u << 31, label_bits = value_bit | 0xFF;
  static std::size_t offset(std::uint32_t unit) noexcept { return std::size_t{unit >> 10} << ((unit & (1u << 9)) >> 6); }

  std::vector<std::uint32_t> units_;
  std::string texts_;
};

}  // namespace nihao
