// SentencePiece's byte-pair encoding (Llama 2, Gemma): any two neighbours whose text together is a token may join, the token
// with the best score first. Characters that are no token become byte tokens. Source: google/sentencepiece, bpe_model.
#pragma once

#include "merge.hpp"
#include "utf8.hpp"
#include "vocabulary.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace nihao {

/// Encodes text, in which a plain space stands for U+2581, into token ids.
class SentencePieceEncoder {
 public:
  /// What one thread needs while encoding; it may be kept between calls.
  struct Workspace {
    struct Part {
      std::uint32_t start, size;  // bytes of the stretch
      TokenId id;                 // no_token: not looked up yet
    };
    PairMerger<Part> merger;
    std::vector<Part> parts;
  };

  /// `scores`: one per token, higher is better. `unknown` replaces bytes that have no token; with no_token they are left out.
  /// Errors: mismatch (as many scores as tokens).
  [[nodiscard]] static Expected<SentencePieceEncoder> build(const Vocabulary& vocabulary, std::span<const float> scores,
                                                            TokenId unknown) {
    if (scores.size() != vocabulary.size()) {
      return Error{ErrorCode::mismatch, concat(vocabulary.size(), " tokens and ", scores.size(), " scores")};
    }
    SentencePieceEncoder encoder;
    encoder.unknown_ = unknown;
    encoder.priorities_.reserve(scores.size());
    encoder.seen_ = std::make_unique<std::atomic<std::uint8_t>[]>(scores.size());
    for (const float score : scores) encoder.priorities_.push_back(priority(score));
    encoder.ascii_pairs_.resize(std::size_t{128} * 128);
    for (std::size_t i = 0; i < encoder.ascii_pairs_.size(); ++i) {
      const char pair[2] = {static_cast<char>(i / 128), static_cast<char>(i % 128)};
      encoder.ascii_pairs_[i] = vocabulary.find_normal({pair, 2});
    }
    return encoder;
  }

  /// Appends the ids of `text`, which is shorter than 4 GiB.
  void encode(const Vocabulary& vocabulary, std::string_view text, std::vector<TokenId>& out, Workspace& work) const {
    vocabulary.cut_before_spaces(text, false, [&](std::string_view stretch, std::size_t characters) {
      encode_stretch(vocabulary, stretch, characters, out, work);
    });
  }

 private:
  using Part = Workspace::Part;

  void encode_stretch(const Vocabulary& vocabulary, std::string_view text, std::size_t characters, std::vector<TokenId>& out,
                      Workspace& work) const {
    const TokenId whole = vocabulary.find_normal(text);
    // Most stretches are tokens. Whether merging really leads there is found out once per token and remembered.
    std::atomic<std::uint8_t>* seen = whole == no_token ? nullptr : &seen_[static_cast<std::size_t>(whole)];
    if (seen && (characters == 1 || seen->load(std::memory_order_relaxed) == 1)) {
      out.push_back(whole);
      return;
    }
    auto& parts = work.parts;
    parts.clear();
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t size = std::min<std::size_t>(utf8_length(text[at]), text.size() - at);
      parts.push_back({static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(size), no_token});
      at += size;
    }
    const auto rule = [&](TokenId id, const Part& left, const Part& right) -> PairRule<Part> {
      if (id == no_token) return {};
      return {priorities_[static_cast<std::size_t>(id)], {left.start, left.size + right.size, id}};
    };
    const auto find = [&](const Part& left, const Part& right) {
      return rule(vocabulary.find_normal(text.substr(left.start, left.size + right.size)), left, right);
    };
    const std::size_t count = work.merger.merge(std::span(parts), find, [&](std::size_t i) {
      const Part &left = parts[i], &right = parts[i + 1];
      const auto a = static_cast<unsigned char>(text[left.start]), b = static_cast<unsigned char>(text[right.start]);
      return a < 128 && b < 128 ? rule(ascii_pairs_[a * 128u + b], left, right) : find(left, right);
    });
    for (const Part& part : std::span(parts).first(count)) append(vocabulary, text.substr(part.start, part.size), part.id, out);
    if (seen && count == 1) seen->store(1, std::memory_order_relaxed);
  }

  void append(const Vocabulary& vocabulary, std::string_view text, TokenId id, std::vector<TokenId>& out) const {
    if (id == no_token) id = vocabulary.find_normal(text);
    if (id != no_token) return out.push_back(id);
    for (const char byte : text) {
      const TokenId fallback = vocabulary.byte_token(static_cast<std::uint8_t>(byte));
      if (fallback != no_token) out.push_back(fallback);
      else if (unknown_ != no_token) out.push_back(unknown_);
    }
  }

  // Scores in falling order as rising integers; the two zeros are equal.
  static std::uint32_t priority(float score) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(score == 0 ? 0.0f : score);
    const std::uint32_t rising = bits >> 31 ? ~bits : bits | 0x80000000u;
    return std::min(~rising, PairRule<Part>::never - 1);
  }

  std::vector<std::uint32_t> priorities_;              // [tokens]
  std::vector<TokenId> ascii_pairs_;                   // [left * 128 + right]: the token of two ASCII characters
  std::unique_ptr<std::atomic<std::uint8_t>[]> seen_;  // [tokens]: 1 if the token's text encodes to it alone
  TokenId unknown_ = no_token;
};

}  // namespace nihao
