// WordPiece (BERT): each word is the longest pieces that it begins with, one after another; a word that has no such pieces, or
// more than 100 characters, is the unknown token. Source: google-research/bert, tokenization.py, WordpieceTokenizer.
#pragma once

#include "byte_trie.hpp"
#include "vocabulary.hpp"

#include <string_view>
#include <vector>

namespace nihao {

/// Encodes words. In the vocabulary a piece that begins a word has a space in front, and one that continues it has none.
class WordPieceEncoder {
 public:
  /// `unknown` stands for a word that has no pieces; with no_token such words are left out. Errors: limit.
  [[nodiscard]] static Expected<WordPieceEncoder> build(const Vocabulary& vocabulary, TokenId unknown) {
    WordPieceEncoder encoder;
    encoder.unknown_ = unknown;
    NIHAO_TRY(encoder.pieces_, ByteTrie::build(findable_keys(vocabulary)));
    encoder.word_start_ = encoder.pieces_.child(ByteTrie::root, ' ');
    return encoder;
  }

  /// Appends the ids of one word (no white space in it) of so many characters.
  void encode(std::string_view word, std::size_t characters, std::vector<TokenId>& out) const {
    const std::size_t before = out.size();
    ByteTrie::Node from = word_start_;
    bool known = characters <= max_characters && from != ByteTrie::none;
    while (known && !word.empty()) {
      const ByteTrie::Match piece = pieces_.longest(word, from);
      known = piece.size != 0;
      out.push_back(piece.id);
      word.remove_prefix(piece.size);
      from = ByteTrie::root;
    }
    if (known) return;
    out.resize(before);
    if (unknown_ != no_token) out.push_back(unknown_);
  }

  static constexpr std::size_t max_characters = 100;

 private:
  static std::vector<ByteTrie::Key> findable_keys(const Vocabulary& vocabulary) {
    std::vector<ByteTrie::Key> keys;
    keys.reserve(vocabulary.size());
    for (std::size_t i = 0; i < vocabulary.size(); ++i)
      if (const auto id = static_cast<TokenId>(i); vocabulary.findable(id)) keys.push_back({vocabulary.piece(id), id});
    return keys;
  }

  ByteTrie pieces_;
  ByteTrie::Node word_start_ = ByteTrie::none;
  TokenId unknown_ = no_token;
};

}  // namespace nihao
