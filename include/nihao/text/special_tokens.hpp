// Finding special tokens in text: <|im_start|>, runs of line breaks, tags. At each place the longest one counts, and the
// leftmost goes first, as in SentencePiece and Hugging Face tokenizers. The cost is at most the text's length times the longest
// special token's, and usually one table look-up per byte.
#pragma once

#include "vocabulary.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace nihao {

/// A token that is found in text as a whole.
struct SpecialToken {
  TokenId id = no_token;
  std::string_view text = {};
  bool always = false;       ///< user-defined: found also where special tokens are not to be parsed
  bool strip_left = false;   ///< white space (ASCII) before it is dropped
  bool strip_right = false;  ///< white space (ASCII) after it is dropped
};

/// A trie over the special tokens' texts: a node's children are a linked list, so building allocates one array.
class SpecialTokens {
 public:
  /// Adds one; of equal texts the first counts. An empty text is never found.
  void add(const SpecialToken& token) {
    if (token.text.empty()) return;
    std::uint32_t at = 0;
    for (const char byte : token.text) at = child_or_new(at, byte);
    if (nodes_[at].id != no_token) return;
    nodes_[at].id = token.id;
    nodes_[at].flags = static_cast<std::uint8_t>((token.always ? flag_always : 0) | (token.strip_left ? flag_left : 0) |
                                                 (token.strip_right ? flag_right : 0));
    starts_[static_cast<unsigned char>(token.text.front())] |= token.always ? starts_always | starts_any : starts_any;
    any_always_ = any_always_ || token.always;
    any_ = true;
  }

  /// The special token of exactly this text, or no_token.
  [[nodiscard]] TokenId find(std::string_view text) const noexcept {
    std::uint32_t at = 0;
    for (const char byte : text) {
      at = child(at, byte);
      if (at == 0) return no_token;
    }
    return nodes_[at].id;
  }

  /// Cuts `text` at special tokens: calls `on_text(std::string_view)` for what lies between (never empty) and
  /// `on_token(TokenId)`, in order. Without `parse_special` only the user-defined ones are found, as plain text: they swallow
  /// nothing. None is found across one of the `breaks`, offsets in rising order.
  template <class OnText, class OnToken>
  void split(std::string_view text, bool parse_special, OnText&& on_text, OnToken&& on_token,
             std::span<const std::size_t> breaks = {}) const {
    const std::uint8_t wanted = parse_special ? starts_any : starts_always;
    std::size_t from = 0;
    if (parse_special ? any_ : any_always_) {
      for (std::size_t at = 0; at < text.size();) {
        while (!breaks.empty() && breaks.front() <= at) breaks = breaks.subspan(1);
        const std::string_view open = breaks.empty() ? text : text.substr(0, breaks.front());
        const Match match = starts_[static_cast<unsigned char>(text[at])] & wanted ? longest(open, at, parse_special) : Match{};
        if (match.size == 0) {
          ++at;
          continue;
        }
        std::size_t end = at;
        while (parse_special && (match.flags & flag_left) && end > from && is_space(text[end - 1])) --end;
        if (end > from) on_text(text.substr(from, end - from));
        on_token(match.id);
        at += match.size;
        while (parse_special && (match.flags & flag_right) && at < text.size() && is_space(text[at])) ++at;
        from = at;
      }
    }
    if (from < text.size()) on_text(text.substr(from));
  }

  /// Where in a text a special token begins that is found only where special tokens are parsed, in rising order.
  [[nodiscard]] std::vector<std::size_t> starts(std::string_view text) const {
    std::vector<std::size_t> out;
    for (std::size_t at = 0; any_ && at < text.size(); ++at) {
      if ((starts_[static_cast<unsigned char>(text[at])] & starts_any) == 0) continue;
      const Match match = longest(text, at, true);
      if (match.size > 0 && !(match.flags & flag_always)) out.push_back(at);
    }
    return out;
  }

 private:
  static constexpr std::uint8_t flag_always = 1, flag_left = 2, flag_right = 4;
  static constexpr std::uint8_t starts_any = 1, starts_always = 2;

  struct Node {
    std::uint32_t first_child = 0, next_sibling = 0;  // 0: none (the root is nobody's child)
    TokenId id = no_token;
    char byte = 0;
    std::uint8_t flags = 0;
  };
  struct Match {
    std::size_t size = 0;
    TokenId id = no_token;
    std::uint8_t flags = 0;
  };

  static bool is_space(char c) noexcept { return c == ' ' || (c >= '\t' && c <= '\r'); }

  [[nodiscard]] std::uint32_t child(std::uint32_t of, char byte) const noexcept {
    std::uint32_t at = nodes_[of].first_child;
    while (at != 0 && nodes_[at].byte != byte) at = nodes_[at].next_sibling;
    return at;
  }

  std::uint32_t child_or_new(std::uint32_t of, char byte) {
    if (const std::uint32_t found = child(of, byte)) return found;
    const auto made = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back({0, nodes_[of].first_child, no_token, byte, 0});
    nodes_[of].first_child = made;
    return made;
  }

  [[nodiscard]] Match longest(std::string_view text, std::size_t from, bool parse_special) const noexcept {
    Match best;
    std::uint32_t node = 0;
    for (std::size_t at = from; at < text.size(); ++at) {
      node = child(node, text[at]);
      if (node == 0) break;
      const Node& n = nodes_[node];
      if (n.id != no_token && (parse_special || (n.flags & flag_always))) best = {at + 1 - from, n.id, n.flags};
    }
    return best;
  }

  std::vector<Node> nodes_ = std::vector<Node>(1);
  std::array<std::uint8_t, 256> starts_{};  // by first byte: can any special token, or a user-defined one, begin here
  bool any_ = false, any_always_ = false;
};

}  // namespace nihao
