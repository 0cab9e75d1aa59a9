// A budget of thinking: a stage after the sampler, which ends the thinking after so many tokens, or does not let it end yet.
#pragma once

#include "../text/token.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace nihao {

/// How long a model may and must think, in tokens of its thinking; the markers around it do not count.
struct ThinkLimits {
  std::size_t most = SIZE_MAX;   ///< after exactly so many the thinking is ended, with the model's own tokens; 0: at once
  std::size_t least = 0;         ///< an end before so many is replaced by "Wait" (budget forcing: s1, arXiv:2501.19393)
  std::size_t waits = SIZE_MAX;  ///< that, at most so many times

  [[nodiscard]] constexpr bool any() const noexcept { return most != SIZE_MAX || least != 0; }
};

/// Stands between the sampler and the sequence: forced() says when there is nothing to sample, push() which token comes.
///
///     TokenId id = budget.forced() ? *budget.forced() : sampler.sample(logits, history).value();
///     id = budget.push(id, tokenizer.is_eog(id));
class ThinkBudget {
 public:
  struct Tokens {
    std::vector<TokenId> close;  ///< ends the thinking; not empty
    std::vector<TokenId> force;  ///< what is written to end it; begins with `close`
    std::vector<TokenId> wait;   ///< what is written in place of an end; not empty if there is a least
  };

  /// `inside`: the thinking has begun already.
  ThinkBudget(ThinkLimits limits, Tokens tokens, bool inside = false)
      : limits_(limits), tokens_(std::move(tokens)), inside_(inside) {}

  /// The next token, where it is decided already.
  [[nodiscard]] std::optional<TokenId> forced() const noexcept {
    if (!queue_.empty()) return queue_.back();
    if (inside_ && spent()) return tokens_.force[matched_];
    return std::nullopt;
  }

  /// Takes the token that was sampled, or forced(); gives the one that comes. `ends`: it would end the whole answer.
  TokenId push(TokenId id, bool ends = false) {
    if (!queue_.empty()) return from_queue();
    if (!inside_) return id;
    if (spent()) {
      end(matched_);
      queue_after(tokens_.force, matched_);
      matched_ = 0;
      return from_queue();
    }
    const std::size_t before = matched_;
    matched_ = match(id);
    const bool closes = matched_ == tokens_.close.size();
    if ((closes || ends) && total_ - (closes ? before : 0) < limits_.least && waited_ < limits_.waits) {
      ++waited_;
      matched_ = 0;
      queue_after(tokens_.wait, 0);
      return from_queue();
    }
    if (ends) return id;
    ++total_;
    if (closes) end(std::exchange(matched_, 0));
    return id;
  }

  /// The text says that the thinking has begun, or ended, in other tokens than those. What is being forced goes first.
  void set_inside(bool inside) noexcept {
    if (!queue_.empty() || inside == inside_) return;
    inside_ = inside;
    matched_ = 0;
  }

  [[nodiscard]] bool inside() const noexcept { return inside_; }
  /// The tokens of thinking so far, without those that may be the beginning of the end.
  [[nodiscard]] std::size_t thinking_tokens() const noexcept { return total_ - matched_; }

 private:
  // With the beginning of an end, it is completed: whatever the model would go on with would be a token too many.
  [[nodiscard]] bool spent() const noexcept { return total_ >= limits_.most; }
  void end(std::size_t marker_tokens) noexcept {
    total_ -= marker_tokens;
    inside_ = false;
  }
  void queue_after(const std::vector<TokenId>& tokens, std::size_t from) {
    queue_.assign(tokens.rbegin(), tokens.rend() - static_cast<std::ptrdiff_t>(from));
  }
  TokenId from_queue() {
    const TokenId id = queue_.back();
    queue_.pop_back();
    total_ += inside_;
    return id;
  }
  // How much of `close` the tokens end with once `id` has come. It is a few tokens long.
  [[nodiscard]] std::size_t match(TokenId id) const noexcept {
    const auto& close = tokens_.close;
    for (std::size_t length = matched_ + 1; length > 0; --length) {
      const auto prefix = close.begin(), known = close.begin() + static_cast<std::ptrdiff_t>(matched_ + 1 - length);
      if (close[length - 1] == id && std::equal(prefix, prefix + static_cast<std::ptrdiff_t>(length - 1), known)) return length;
    }
    return 0;
  }

  ThinkLimits limits_;
  Tokens tokens_;
  std::vector<TokenId> queue_;  // being forced, the next one last
  std::size_t total_ = 0, matched_ = 0, waited_ = 0;
  bool inside_;
};

}  // namespace nihao
