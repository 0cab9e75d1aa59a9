// The vocabulary: which bytes each token stands for, and which token stands for given bytes. Flat memory: one run of bytes,
// one array of offsets, one table of 4-byte slots; nothing is allocated per token.
#pragma once

#include "flat_index.hpp"
#include "token.hpp"
#include "utf8.hpp"

#include "../base/error.hpp"
#include "../base/str.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nihao {

/// The TokenId that is no token.
inline constexpr TokenId no_token = -1;

/// What a token is for. The values are those of `tokenizer.ggml.token_type` in GGUF files.
enum class TokenType : std::uint8_t {
  undefined = 0,
  normal = 1,        ///< text, found by merging
  unknown = 2,       ///< stands for what the vocabulary lacks
  control = 3,       ///< <|im_start|>, <s>: never text of the user's, see EncodeOptions::parse_special
  user_defined = 4,  ///< text that is always one token, found before anything else
  unused = 5,        ///< padding of the table
  byte = 6,          ///< <0x0A>: one byte, for characters that the vocabulary lacks
};

/// How the vocabulary writes bytes.
enum class PieceSpelling : std::uint8_t {
  byte_level,     ///< GPT-2's: each byte is one printable character (a space is U+0120)
  sentencepiece,  ///< the text itself, with U+2581 for a space, and <0xNN> for byte tokens
};

namespace detail {

/// A hash of short byte strings, 8 bytes a step. Its upper bits depend on all input: take those for a place in a table.
inline std::uint64_t hash_bytes(std::string_view bytes) noexcept {
  constexpr std::uint64_t mix = 0x9E3779B97F4A7C15u;
  const char* at = bytes.data();
  const std::size_t size = bytes.size();
  std::uint64_t hash = size * mix;
  const auto take = [&](std::uint64_t word) {
    hash = (hash ^ word) * mix;
    hash ^= hash >> 32;
  };
  const auto load = [](const char* from, auto word) {
    std::memcpy(&word, from, sizeof word);
    return std::uint64_t{word};
  };
  if (size > 8) {
    for (std::size_t i = 0; i + 8 < size; i += 8) take(load(at + i, std::uint64_t{}));
    take(load(at + size - 8, std::uint64_t{}));  // the last 8, which may overlap
  } else if (size >= 4) {
    take(load(at, std::uint32_t{}) << 32 | load(at + size - 4, std::uint32_t{}));
  } else if (size > 0) {
    take(load(at, std::uint8_t{}) << 16 | load(at + size / 2, std::uint8_t{}) << 8 | load(at + size - 1, std::uint8_t{}));
  }
  return hash * mix;
}

/// GPT-2's spelling read backwards: the byte of a code point, or -1. The 188 printable bytes of Latin-1 stand for themselves,
/// the other 68 for U+0100 onwards, in order (openai/gpt-2, encoder.py, bytes_to_unicode).
inline constexpr std::array<std::int16_t, 324> byte_of_char = [] {
  std::array<std::int16_t, 324> table{};
  std::int16_t next = 256;
  for (std::int16_t& entry : table) entry = -1;
  for (std::int16_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    table[static_cast<std::size_t>(printable ? byte : next++)] = byte;
  }
  return table;
}();

/// Appends the bytes of a byte-level spelling; false (and nothing appended) if a character is not of it.
inline bool append_byte_level(std::string& out, std::string_view spelling) {
  const std::size_t before = out.size();
  out.resize(before + spelling.size());  // never longer than its spelling
  char* to = out.data() + before;
  for (std::size_t i = 0; i < spelling.size();) {
    unsigned code = static_cast<unsigned char>(spelling[i++]);
    if (code >= 0x80) {  // U+0080 to U+0143 take two bytes
      const bool two = code >= 0xC2 && code <= 0xC5 && i < spelling.size();
      code = two ? (code & 0x1Fu) << 6 | (static_cast<unsigned char>(spelling[i++]) & 0x3Fu) : 324;
    }
    const int byte = code < byte_of_char.size() ? byte_of_char[code] : -1;
    if (byte < 0) return out.resize(before), false;
    *to++ = static_cast<char>(byte);
  }
  out.resize(static_cast<std::size_t>(to - out.data()));
  return true;
}

/// Appends a SentencePiece spelling with a plain space for each U+2581.
inline void append_unescaped(std::string& out, std::string_view spelling) {
  const std::size_t before = out.size();
  out.resize(before + spelling.size());
  char* to = out.data() + before;
  for (std::size_t i = 0; i < spelling.size();) {
    const bool space = spelling[i] == '\xE2' && spelling.substr(i, 3) == "\xE2\x96\x81";
    *to++ = space ? ' ' : spelling[i];
    i += space ? 3 : 1;
  }
  out.resize(static_cast<std::size_t>(to - out.data()));
}

/// The value of <0xNN>, or -1.
inline int byte_token_value(std::string_view text) noexcept {
  if (text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>') return -1;
  int value = 0;
  for (const char c : text.substr(3, 2)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                             : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

}  // namespace detail

/// Tokens by number and by bytes. Owns all it holds.
class Vocabulary {
 public:
  /// From the tokens as a file spells them, and their types (none: all normal). Errors: mismatch (as many types as tokens),
  /// malformed (a byte token that is not <0xNN>), limit (4 GiB of text, 2^31 tokens).
  [[nodiscard]] static Expected<Vocabulary> build(PieceSpelling spelling, std::span<const std::string_view> tokens,
                                                  std::span<const TokenType> types) {
    if (!types.empty() && types.size() != tokens.size()) {
      return Error{ErrorCode::mismatch, concat(tokens.size(), " tokens and ", types.size(), " token types")};
    }
    std::uint64_t total = 0;
    for (const std::string_view token : tokens) total += token.size();
    if (total > UINT32_MAX || tokens.size() > INT32_MAX) return Error{ErrorCode::limit, "the vocabulary is too large"};
    Vocabulary v;
    v.spelling_ = spelling;
    v.kinds_.reserve(tokens.size());
    for (const TokenType type : types) v.kinds_.push_back(static_cast<std::uint8_t>(type));
    v.kinds_.resize(tokens.size(), static_cast<std::uint8_t>(TokenType::normal));
    v.bytes_.reserve(static_cast<std::size_t>(total));
    v.offsets_.reserve(tokens.size() + 1);
    v.offsets_.push_back(0);
    v.byte_tokens_.fill(no_token);
    for (std::size_t i = 0; i < tokens.size(); ++i) { NIHAO_CHECK(v.append(static_cast<TokenId>(i), tokens[i])); }
    v.index_normal_tokens();
    return v;
  }

  [[nodiscard]] std::size_t size() const noexcept { return kinds_.size(); }
  [[nodiscard]] bool contains(TokenId id) const noexcept { return id >= 0 && static_cast<std::size_t>(id) < size(); }
  [[nodiscard]] PieceSpelling spelling() const noexcept { return spelling_; }

  /// The bytes the token stands for; they need not be whole UTF-8. A control token's are its name; an unused token has none,
  /// nor has a number out of range.
  [[nodiscard]] std::string_view piece(TokenId id) const noexcept {
    if (!contains(id)) return {};
    const auto i = static_cast<std::size_t>(id);
    return {bytes_.data() + offsets_[i], offsets_[i + 1] - offsets_[i]};
  }

  [[nodiscard]] TokenType type(TokenId id) const noexcept {
    return contains(id) ? static_cast<TokenType>(kinds_[static_cast<std::size_t>(id)] & ~findable_bit) : TokenType::undefined;
  }
  /// For what a file says wrongly of a token; the piece stays.
  void set_type(TokenId id, TokenType type) noexcept {
    if (!contains(id)) return;
    std::uint8_t& kind = kinds_[static_cast<std::size_t>(id)];
    kind = static_cast<std::uint8_t>(static_cast<std::uint8_t>(type) | (kind & findable_bit));
  }

  /// True if find_normal may give this token: it was normal in the file, has bytes, and is spelled as the others are.
  [[nodiscard]] bool findable(TokenId id) const noexcept {
    return contains(id) && (kinds_[static_cast<std::size_t>(id)] & findable_bit) != 0;
  }

  /// The normal token of exactly these bytes, or no_token; of several, the first.
  [[nodiscard]] TokenId find_normal(std::string_view bytes) const noexcept {
    if (bytes.size() > longest_ || bytes.empty()) return no_token;
    return find_normal(bytes, detail::hash_bytes(bytes));
  }
  /// The same with the hash at hand: `hash == detail::hash_bytes(bytes)`.
  [[nodiscard]] TokenId find_normal(std::string_view bytes, std::uint64_t hash) const noexcept {
    const std::uint32_t found = index_.find(hash, [&](std::uint32_t i) { return piece(static_cast<TokenId>(i)) == bytes; });
    return found == FlatIndex::none ? no_token : static_cast<TokenId>(found);
  }
  void prefetch(std::uint64_t hash) const noexcept { index_.prefetch(hash); }

  /// The token for one byte of a character that the vocabulary lacks, or no_token: with byte-level spelling the normal token
  /// of that byte, else the token <0xNN>.
  [[nodiscard]] TokenId byte_token(std::uint8_t byte) const noexcept { return byte_tokens_[byte]; }

  /// True if some normal token has a space right after this byte (sentencepiece spelling).
  [[nodiscard]] bool space_may_follow(char byte) const noexcept { return before_space_[static_cast<unsigned char>(byte)]; }

  /// Cuts `text` before the spaces that no token crosses, and calls `each(stretch, characters)` in order: encoding the stretches
  /// one by one is encoding all at once. Mostly a stretch is a word with its space. Every first byte is taken to begin a
  /// character of the length it announces. `always`: before every space, whatever the tokens are.
  template <class F>
  void cut_before_spaces(std::string_view text, bool always, F&& each) const {
    for (std::size_t start = 0; start < text.size();) {
      std::size_t characters = 0, end = start;
      do {
        end += std::min<std::size_t>(utf8_length(text[end]), text.size() - end);
        ++characters;
      } while (end < text.size() && (text[end] != ' ' || (!always && space_may_follow(text[end - 1]))));
      each(text.substr(start, end - start), characters);
      start = end;
    }
  }

  /// The length of the longest normal token, in bytes.
  [[nodiscard]] std::size_t longest() const noexcept { return longest_; }

 private:
  static constexpr std::uint8_t findable_bit = 0x80;

  Expected<void> append(TokenId id, std::string_view text) {
    const TokenType type = this->type(id);
    bool spelled = true;
    const std::size_t before = bytes_.size();
    if (type == TokenType::byte) {
      const int value = detail::byte_token_value(text);
      if (value < 0)
        return Error{ErrorCode::malformed, concat("byte token \"", printable(text), "\" is not <0xNN>"), concat("token ", id)};
      bytes_ += static_cast<char>(value);
      if (byte_tokens_[static_cast<std::size_t>(value)] == no_token) byte_tokens_[static_cast<std::size_t>(value)] = id;
    } else if (type == TokenType::normal) {
      if (spelling_ == PieceSpelling::sentencepiece) append_unescaped(text);
      else spelled = detail::append_byte_level(bytes_, text);
      if (!spelled) bytes_ += text;  // not of the alphabet: no text leads here, and it decodes as it stands
    } else if (type != TokenType::unused && type != TokenType::undefined) {
      bytes_ += text;
    }
    offsets_.push_back(static_cast<std::uint32_t>(bytes_.size()));
    if (type == TokenType::normal && spelled && bytes_.size() > before) {
      kinds_[static_cast<std::size_t>(id)] |= findable_bit;
      longest_ = std::max(longest_, bytes_.size() - before);
      if (spelling_ == PieceSpelling::byte_level && bytes_.size() - before == 1) {
        TokenId& entry = byte_tokens_[static_cast<unsigned char>(bytes_.back())];
        if (entry == no_token) entry = id;
      }
    }
    return {};
  }

  // Sentencepiece text; notes which bytes come before a space.
  void append_unescaped(std::string_view text) {
    const std::size_t before = bytes_.size();
    detail::append_unescaped(bytes_, text);
    for (std::size_t i = before + 1; i < bytes_.size(); ++i)
      if (bytes_[i] == ' ') before_space_[static_cast<unsigned char>(bytes_[i - 1])] = true;
  }

  void index_normal_tokens() {
    // Each token's hash is taken a little before its turn, and its place fetched: about what a core can have under way.
    constexpr std::size_t ahead = 16;
    std::array<std::uint64_t, ahead> hashes{};
    index_ = FlatIndex(size());
    for (std::size_t i = 0; i < size() + ahead; ++i) {
      std::uint64_t& hash = hashes[i % ahead];
      if (i >= ahead && findable(static_cast<TokenId>(i - ahead))) {
        const std::string_view bytes = piece(static_cast<TokenId>(i - ahead));
        const auto same = [&](std::uint32_t other) { return piece(static_cast<TokenId>(other)) == bytes; };
        index_.insert(hash, static_cast<std::uint32_t>(i - ahead), same);
      }
      if (i < size()) index_.prefetch(hash = detail::hash_bytes(piece(static_cast<TokenId>(i))));
    }
  }

  PieceSpelling spelling_ = PieceSpelling::byte_level;
  std::string bytes_;
  std::vector<std::uint32_t> offsets_;  // [tokens + 1]
  std::vector<std::uint8_t> kinds_;     // TokenType, and findable_bit
  FlatIndex index_;                     // normal tokens by their bytes
  std::array<TokenId, 256> byte_tokens_{};
  std::array<bool, 256> before_space_{};
  std::size_t longest_ = 0;
};

}  // namespace nihao
