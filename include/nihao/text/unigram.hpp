// SentencePiece's unigram model (T5, XLM-RoBERTa): of all ways to cut a text into pieces the one with the greatest sum of scores.
// Source: Kudo 2018, "Subword Regularization"; google/sentencepiece, unigram_model.cc, EncodeOptimized (0.2.3), whose
// rounding decides between equal sums.
#pragma once

#include "byte_trie.hpp"
#include "utf8.hpp"
#include "vocabulary.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nihao {

/// Encodes text, in which a plain space stands for U+2581, into token ids. Linear in the text: from each character at most as
/// many steps as the longest piece has bytes.
class UnigramEncoder {
  static constexpr std::size_t no_path = SIZE_MAX;

 public:
  /// What one thread needs while encoding; it may be kept between calls.
  struct Workspace {
    struct Node {
      std::size_t start = no_path;  // where the last piece of the best path that ends here starts
      float score = 0;              // of that path
      TokenId id = no_token;
    };
    std::vector<Node> nodes;  // by byte, from the last place that every path passes
    std::vector<Node> path;   // its pieces, last first
  };

  /// `scores`: one per token. `unknown` stands for a run of characters that have no piece, unless all 256 byte tokens are there;
  /// with no_token they are left out. Errors: mismatch (as many scores as tokens), limit.
  [[nodiscard]] static Expected<UnigramEncoder> build(const Vocabulary& vocabulary, std::span<const float> scores,
                                                      TokenId unknown) {
    if (scores.size() != vocabulary.size())
      return Error{ErrorCode::mismatch, concat(vocabulary.size(), " tokens and ", scores.size(), " scores")};
    UnigramEncoder encoder;
    encoder.unknown_ = unknown;
    encoder.scores_.assign(scores.begin(), scores.end());
    for (unsigned byte = 0; byte < 256; ++byte)
      encoder.byte_fallback_ = encoder.byte_fallback_ && vocabulary.byte_token(static_cast<std::uint8_t>(byte)) != no_token;
    float lowest = std::numeric_limits<float>::max();
    std::string plain;  // user-defined pieces with plain spaces, in a row
    std::vector<std::pair<std::size_t, TokenId>> ends;
    std::vector<ByteTrie::Key> keys;
    keys.reserve(vocabulary.size());
    for (std::size_t i = 0; i < vocabulary.size(); ++i) {
      const auto id = static_cast<TokenId>(i);
      if (vocabulary.findable(id)) {
        lowest = std::min(lowest, scores[i]);
        keys.push_back({vocabulary.piece(id), id});
      } else if (vocabulary.type(id) == TokenType::user_defined) {
        // Better than any pieces that it could be cut into (a U+2581 counts as its three bytes).
        encoder.scores_[i] = static_cast<float>(0.1 * (static_cast<double>(vocabulary.piece(id).size()) - 1));
        detail::append_unescaped(plain, vocabulary.piece(id));
        ends.emplace_back(plain.size(), id);
      }
    }
    encoder.unknown_score_ = lowest - 10;
    std::size_t start = 0;
    for (const auto& [end, id] : ends) {
      keys.push_back({std::string_view(plain).substr(start, end - start), id});
      start = end;
    }
    NIHAO_TRY(encoder.pieces_, ByteTrie::build(std::move(keys)));
    return encoder;
  }

  /// Appends the ids of `text`.
  void encode(const Vocabulary& vocabulary, std::string_view text, std::vector<TokenId>& out, Workspace& work) const {
    auto& nodes = work.nodes;
    nodes.assign(1, {});
    bool after_unknown = false;
    std::size_t origin = 0;  // where nodes[0] stands
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t size = std::min<std::size_t>(utf8_length(text[at]), text.size() - at);
      const std::size_t start = at - origin;
      if (nodes.size() <= start + size) nodes.resize(start + size + 1);
      const float before = rebase(std::span(nodes).subspan(start));
      bool single = false;  // is the character itself a piece
      ByteTrie::Node node = ByteTrie::root;
      for (std::size_t end = at; end < text.size();) {
        node = pieces_.child(node, text[end++]);
        if (node == ByteTrie::none) break;
        const TokenId id = pieces_.id(node);
        if (id == no_token) continue;
        if (nodes.size() <= end - origin) nodes.resize(end - origin + 1);
        offer(nodes[end - origin], scores_[static_cast<std::size_t>(id)] + before, start, id);
        single = single || end - at == size;
      }
      if (!single) offer(nodes[start + size], unknown_score_ + before, start, no_token);
      at += size;
      // No piece reaches beyond this place, so that every path passes it: what lies before it is settled.
      if (nodes.size() == at - origin + 1) {
        settle(vocabulary, text.substr(origin, at - origin), out, work, after_unknown);
        nodes.front() = {no_path, nodes.back().score, no_token};
        nodes.resize(1);
        origin = at;
      }
    }
  }

 private:
  using Node = Workspace::Node;

  // Sums are floats, added from left to right: how they are rounded tells equal paths apart. Of the rest the earlier start
  // counts.
  static void offer(Node& node, float sum, std::size_t start, TokenId id) noexcept {
    if (node.start == no_path || sum > node.score) node = {start, sum, id};
  }

  // Keeps sums where floats are dense, as SentencePiece 0.2.3 does: nodes[start] becomes 0, and those after it follow.
  static float rebase(std::span<Node> nodes) noexcept {
    const float offset = nodes.front().score;
    if (std::abs(offset) <= 100000) return offset;
    for (Node& node : nodes)
      if (&node == nodes.data() || node.start != no_path) node.score -= offset;
    return 0;
  }

  void settle(const Vocabulary& vocabulary, std::string_view text, std::vector<TokenId>& out, Workspace& work,
              bool& after_unknown) const {
    auto& path = work.path;
    path.clear();
    for (std::size_t end = work.nodes.size() - 1; end != 0; end = path.back().start) path.push_back(work.nodes[end]);
    std::size_t start = 0;
    for (std::size_t i = path.size(); i-- > 0;) {
      const std::size_t end = i == 0 ? text.size() : path[i - 1].start;
      const TokenId id = path[i].id;
      if (id != no_token) {
        out.push_back(id);
      } else if (byte_fallback_) {
        for (const char byte : text.substr(start, end - start))
          out.push_back(vocabulary.byte_token(static_cast<std::uint8_t>(byte)));
      } else if (unknown_ != no_token && !after_unknown) {
        out.push_back(unknown_);
      }
      after_unknown = id == no_token;
      start = end;
    }
  }

  ByteTrie pieces_;
  std::vector<float> scores_;  // [tokens]
  float unknown_score_ = 0;
  TokenId unknown_ = no_token;
  bool byte_fallback_ = true;
};

}  // namespace nihao
