// What a sampler works on: the tokens still in the running.
#pragma once

#include "../text/token.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

namespace nihao {

/// A token that may still be chosen.
struct Candidate {
  TokenId id;
  float logit;
};

/// A token and its probability among the candidates left.
struct TokenProbability {
  TokenId id;
  float p;
};

/// The tokens still in the running. Between two stages it holds at least one, and every logit is finite: tokens at -inf have
/// been dropped. Order is the vocabulary's until a stage asks for descending(); ties go to the lower id, so the order, and with
/// it every sum and every draw, depends on the logits alone.
class Candidates {
 public:
  /// The order of descending(): by logit, of equal ones the lower id.
  [[nodiscard]] static bool before(const Candidate& a, const Candidate& b) noexcept {
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
  }

  [[nodiscard]] std::size_t size() const noexcept { return items_.size(); }
  [[nodiscard]] std::span<const Candidate> items() const noexcept { return items_; }

  /// The candidates, to change their logits. -inf drops one. The known order is forgotten.
  [[nodiscard]] std::span<Candidate> edit() noexcept {
    sorted_ = 0;
    return items_;
  }
  /// The same for a change that cannot reverse an order, such as scaling.
  [[nodiscard]] std::span<Candidate> edit_in_order() noexcept { return items_; }

  /// The candidate with the largest logit.
  [[nodiscard]] const Candidate& best() const noexcept {
    return sorted_ > 0 ? items_.front() : *std::min_element(items_.begin(), items_.end(), before);
  }

  /// The `count` largest (all, if there are fewer), largest first: they become the first of items(). Never sorts more than it
  /// is asked for: a heap of `count` for few, a partition and a sort of the front for many.
  std::span<const Candidate> descending(std::size_t count) noexcept {
    count = std::min(count, items_.size());
    if (count > sorted_) {
      arrange(sorted_, count, before);
      sorted_ = count;
    }
    return items_.first(count);
  }

  /// The candidates that come first by `precedes`, a strict weak order, after the `done` that a call with the same order has put
  /// in front already: they become items() up to `count`.
  template <class Order>
  std::span<const Candidate> arrange_by(std::size_t done, std::size_t count, Order precedes) noexcept {
    sorted_ = 0;
    count = std::min(count, items_.size());
    if (done < count) arrange(done, count, precedes);
    return items_.first(count);
  }

  /// Keeps the first `count` of items() (at least one).
  void keep_first(std::size_t count) noexcept {
    items_ = items_.first(std::clamp<std::size_t>(count, 1, items_.size()));
    sorted_ = std::min(sorted_, items_.size());
  }

  /// Drops the first `count` of items(), but never the last candidate.
  void drop_first(std::size_t count) noexcept {
    count = std::min(count, items_.size() - 1);
    items_ = items_.subspan(count);
    sorted_ -= std::min(sorted_, count);
  }

  /// Keeps those whose logit is at least `limit`, in their order.
  void keep_from(double limit) noexcept {
    std::size_t kept = 0, kept_sorted = 0;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (!(static_cast<double>(items_[i].logit) >= limit)) continue;
      kept_sorted += i < sorted_;
      items_[kept++] = items_[i];
    }
    items_ = items_.first(kept);
    sorted_ = kept_sorted;
  }

 private:
  friend class SamplerState;
  static constexpr std::size_t heap_limit = 256;
  template <class Order>
  void arrange(std::size_t done, std::size_t count, Order precedes) noexcept {
    const auto first = items_.begin() + static_cast<std::ptrdiff_t>(done);
    const auto last = items_.begin() + static_cast<std::ptrdiff_t>(count);
    if (count - done <= heap_limit) {
      std::partial_sort(first, last, items_.end(), precedes);
    } else {
      if (last != items_.end()) std::nth_element(first, last, items_.end(), precedes);
      std::sort(first, last, precedes);
    }
  }
  std::span<Candidate> items_;
  std::size_t sorted_ = 0;  // how many of the first are in final descending order
};

}  // namespace nihao
