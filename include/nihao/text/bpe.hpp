// Byte-pair encoding by ranked rules, which join neighbouring tokens. Byte-level (GPT-2 and after) a word is its bytes; over
// characters (Gemma 4, and Llama 2 as Hugging Face has it) it is its characters, and those that are no token are their bytes.
#pragma once

#include "flat_index.hpp"
#include "merge.hpp"
#include "utf8.hpp"
#include "vocabulary.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nihao {

/// One line of a vocabulary's `merges`, both sides spelled as its tokens are.
struct MergeText {
  std::string_view left, right;
};

/// Encodes words into token ids by merge rules.
class BytePairEncoder {
 public:
  /// What one thread needs while encoding; it may be kept between calls.
  struct Workspace {
    struct Part {
      TokenId id;
    };
    PairMerger<Part> merger;
    std::vector<Part> parts;
  };

  struct Options {
    bool whole_words_first = false;  ///< a word that is a token is that token, whatever the rules say (`ignore_merges`)
    /// Over characters: what stands for a run of bytes that have no token; with no_token they are left out.
    TokenId unknown = no_token;
    bool spaces_part_words = false;  ///< over characters: text is cut before each space
  };

  /// Bytes or characters are merged as `vocabulary` is spelled. Errors: malformed (a rule names a token that `vocabulary` lacks,
  /// or whose sides together are none), limit.
  [[nodiscard]] static Expected<BytePairEncoder> build(const Vocabulary& vocabulary, std::span<const MergeText> merges,
                                                       const Options& options) {
    if (merges.size() > INT32_MAX) return Error{ErrorCode::limit, "too many merge rules"};
    BytePairEncoder encoder;
    encoder.options_ = options;
    encoder.characters_ = vocabulary.spelling() == PieceSpelling::sentencepiece;
    encoder.index_ = FlatIndex(merges.size());
    encoder.rules_.reserve(merges.size());
    if (!encoder.characters_) encoder.first_pairs_.assign(std::size_t{256} * 256, PairRule<Part>::never);
    encoder.seen_ = std::make_unique<std::atomic<std::uint8_t>[]>(vocabulary.size());
    // A few rules at a time, in steps, so that their ways to memory overlap.
    constexpr std::size_t batch = 32;
    Spelling spelled[batch];
    std::string text;
    for (std::size_t start = 0; start < merges.size(); start += batch) {
      const std::size_t count = std::min(batch, merges.size() - start);
      text.clear();
      for (std::size_t i = 0; i < count; ++i) spelled[i] = encoder.spell(merges[start + i], text);
      for (std::size_t i = 0; i < count; ++i) spelled[i].hash(text, vocabulary);
      for (std::size_t i = 0; i < count; ++i) {
        if (!encoder.add_rule(vocabulary, text, spelled[i])) {
          const auto [left, right] = merges[start + i];
          return Error{ErrorCode::malformed, concat("\"", printable(left), " ", printable(right), "\" names no token"),
                       concat("merge ", start + i)};
        }
      }
      for (std::size_t i = 0; i < count; ++i) encoder.index_rule(static_cast<std::uint32_t>(start + i));
    }
    return encoder;
  }

  /// True if text is merged from its characters. Then a plain space stands for U+2581, and there are no words.
  [[nodiscard]] bool merges_characters() const noexcept { return characters_; }

  /// Appends the ids of one word, or of a text where characters are merged. A byte that the vocabulary lacks is left out, or is
  /// the unknown token. `text` is shorter than 4 GiB.
  void encode(const Vocabulary& vocabulary, std::string_view text, std::vector<TokenId>& out, Workspace& work) const {
    if (!characters_) return encode_word(vocabulary, text, out, work);
    vocabulary.cut_before_spaces(text, options_.spaces_part_words,
                                 [&](std::string_view word, std::size_t) { encode_word(vocabulary, word, out, work); });
  }

 private:
  using Part = Workspace::Part;

  void encode_word(const Vocabulary& vocabulary, std::string_view word, std::vector<TokenId>& out, Workspace& work) const {
    // Most words are tokens. Whether the rules really lead there is found out once per token and remembered.
    const TokenId whole = vocabulary.find_normal(word);
    std::atomic<std::uint8_t>* seen = whole == no_token ? nullptr : &seen_[static_cast<std::size_t>(whole)];
    if (seen && (options_.whole_words_first || seen->load(std::memory_order_relaxed) == 1)) {
      out.push_back(whole);
      return;
    }
    auto& parts = work.parts;
    const auto find_rule = [&](const Part& left, const Part& right) { return rule_of(find(left.id, right.id)); };
    std::size_t count = 0;
    if (characters_) {
      take_characters(vocabulary, word, parts);
      count = work.merger.merge(std::span(parts), find_rule, [&](std::size_t i) { return find_rule(parts[i], parts[i + 1]); });
    } else {
      parts.resize(word.size());
      for (std::size_t i = 0; i < word.size(); ++i) parts[i].id = vocabulary.byte_token(static_cast<std::uint8_t>(word[i]));
      count = work.merger.merge(std::span(parts), find_rule,
                                [&](std::size_t i) { return rule_of(first_pairs_[first_pair(word[i], word[i + 1])]); });
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (parts[i].id != no_token) out.push_back(parts[i].id);
    }
    if (seen && count == 1 && parts[0].id == whole) seen->store(1, std::memory_order_relaxed);
  }

  // Each character's token, else its bytes' tokens if it has one for each, else the unknown token, once for a run of such.
  void take_characters(const Vocabulary& vocabulary, std::string_view text, std::vector<Part>& parts) const {
    parts.clear();
    for (std::size_t at = 0; at < text.size();) {
      const std::string_view character = text.substr(at, utf8_length(text[at]));
      at += character.size();
      if (const TokenId id = vocabulary.find_normal(character); id != no_token) {
        parts.push_back({id});
        continue;
      }
      const std::size_t before = parts.size();
      for (const char byte : character) parts.push_back({vocabulary.byte_token(static_cast<std::uint8_t>(byte))});
      if (std::any_of(parts.begin() + static_cast<std::ptrdiff_t>(before), parts.end(),
                      [](const Part& part) { return part.id == no_token; })) {
        parts.resize(before);
        if (parts.empty() || parts.back().id != options_.unknown) parts.push_back({options_.unknown});
      }
    }
  }

  // Its place in rules_ is its rank, which is its priority.
  struct PairJoin {
    TokenId left, right, joined;
  };

  // A rule's two sides as bytes, side by side in a text: [begin, middle) and [middle, end).
  struct Spelling {
    std::size_t begin, middle, end;
    std::uint64_t left_hash = 0, right_hash = 0;

    [[nodiscard]] std::string_view left(std::string_view text) const { return text.substr(begin, middle - begin); }
    [[nodiscard]] std::string_view right(std::string_view text) const { return text.substr(middle, end - middle); }
    [[nodiscard]] std::string_view both(std::string_view text) const { return text.substr(begin, end - begin); }
    void hash(std::string_view text, const Vocabulary& vocabulary) {
      vocabulary.prefetch(left_hash = detail::hash_bytes(left(text)));
      vocabulary.prefetch(right_hash = detail::hash_bytes(right(text)));
    }
  };
  Spelling spell(const MergeText& merge, std::string& text) const {
    const auto add = [&](std::string_view side) {
      if (characters_) detail::append_unescaped(text, side);
      else if (!detail::append_byte_level(text, side)) text += side;
      return text.size();
    };
    const std::size_t begin = text.size(), middle = add(merge.left);
    return {begin, middle, add(merge.right)};
  }

  bool add_rule(const Vocabulary& vocabulary, std::string_view text, const Spelling& s) {
    // In most vocabularies the token that a rule makes follows the one that the last rule made.
    const TokenId next = rules_.empty() ? no_token : rules_.back().joined + 1;
    const std::string_view both = s.both(text);
    const bool follows = vocabulary.findable(next) && vocabulary.piece(next) == both;
    rules_.push_back({vocabulary.find_normal(s.left(text), s.left_hash), vocabulary.find_normal(s.right(text), s.right_hash),
                      follows ? next : vocabulary.find_normal(both)});
    const PairJoin& rule = rules_.back();
    if (rule.left == no_token || rule.right == no_token || rule.joined == no_token) return false;
    index_.prefetch(hash(rule.left, rule.right));
    if (!characters_ && both.size() == 2 && s.middle == s.begin + 1) {
      std::uint32_t& first = first_pairs_[first_pair(both[0], both[1])];
      first = std::min(first, static_cast<std::uint32_t>(rules_.size() - 1));
    }
    return true;
  }
  void index_rule(std::uint32_t rank) {
    const PairJoin& rule = rules_[rank];
    // Of a pair that is listed twice the first rank counts.
    index_.insert(hash(rule.left, rule.right), rank,
                  [&](std::uint32_t i) { return rules_[i].left == rule.left && rules_[i].right == rule.right; });
  }

  static std::size_t first_pair(char left, char right) noexcept {
    return static_cast<std::size_t>(static_cast<unsigned char>(left)) << 8 | static_cast<unsigned char>(right);
  }
  static std::uint64_t hash(TokenId left, TokenId right) noexcept {
    const std::uint64_t key = std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
    const std::uint64_t mixed = key * 0x9E3779B97F4A7C15u;
    return (mixed ^ mixed >> 32) * 0x9E3779B97F4A7C15u;
  }
  // The rank of a pair's rule; FlatIndex::none is PairRule::never. A missing byte's no_token is in no rule.
  [[nodiscard]] std::uint32_t find(TokenId left, TokenId right) const noexcept {
    return index_.find(hash(left, right), [&](std::uint32_t i) { return rules_[i].left == left && rules_[i].right == right; });
  }
  [[nodiscard]] PairRule<Part> rule_of(std::uint32_t rank) const noexcept {
    static_assert(FlatIndex::none == PairRule<Part>::never);
    return rank == FlatIndex::none ? PairRule<Part>{} : PairRule<Part>{rank, {rules_[rank].joined}};
  }

  std::vector<PairJoin> rules_;                        // by rank
  FlatIndex index_;                                    // ranks by pair of ids
  std::vector<std::uint32_t> first_pairs_;             // [left byte * 256 + right byte] -> rank or never: half of all look-ups
  std::unique_ptr<std::atomic<std::uint8_t>[]> seen_;  // [tokens]: 1 if the token's bytes encode to it alone
  Options options_;
  bool characters_ = false;
};

}  // namespace nihao
