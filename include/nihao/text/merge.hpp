// Merging neighbours, best pair first: the heart of byte-pair encoding, for both kinds of tokenizer.
//
// Repeat: of all neighbouring pairs that have a rule, take the one with the smallest priority (of equal ones the leftmost) and
// put the joined part in its place; stop when no pair has a rule. (Sennrich et al., 2016, arXiv:1508.07909.)
// Short texts are scanned again for each merge. Long ones keep the pairs in a heap: each merge removes one part and asks for
// two pairs, so n parts ask at most 3n times, and n parts of one letter cost O(n log n) whatever the rules.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace nihao {

/// What a pair becomes. Smaller priorities go first; `never` says that the pair has no rule.
template <class Part>
struct PairRule {
  static constexpr std::uint32_t never = UINT32_MAX;
  std::uint32_t priority = never;
  Part joined{};
};

/// Merges texts one after another; keeps its memory in between. Part is small and trivially copyable.
template <class Part>
class PairMerger {
 public:
  using Rule = PairRule<Part>;
  /// Up to here scanning beats the heap (measured on words of the gpt-2 vocabulary).
  static constexpr std::size_t short_text = 48;

  /// Merges `parts` in place and returns how many are left, at its front. `find(left, right) -> Rule`.
  /// At most 2^32 - 2 parts.
  template <class Find>
  std::size_t merge(std::span<Part> parts, const Find& find) {
    return merge(parts, find, [&](std::size_t i) { return find(parts[i], parts[i + 1]); });
  }

  /// The same where the rules of the untouched pairs (i, i + 1) are known in a faster way: `first(i) -> Rule`.
  template <class Find, class First>
  std::size_t merge(std::span<Part> parts, const Find& find, const First& first) {
    return parts.size() <= short_text ? merge_short(parts, find, first) : merge_long(parts, find, first);
  }

 private:
  template <class Find, class First>
  static std::size_t merge_short(std::span<Part> parts, const Find& find, const First& first) {
    std::size_t count = parts.size();
    std::uint32_t priority[short_text];  // of the pair (i, i + 1)
    Part joined[short_text];
    const auto keep = [&](std::size_t i, const Rule& rule) {
      priority[i] = rule.priority;
      joined[i] = rule.joined;
    };
    for (std::size_t i = 0; i + 1 < count; ++i) keep(i, first(i));
    while (count > 1) {
      std::size_t best = 0;
      std::uint32_t lowest = priority[0];
      for (std::size_t i = 1; i + 1 < count; ++i) {
        const bool lower = priority[i] < lowest;
        lowest = lower ? priority[i] : lowest;
        best = lower ? i : best;
      }
      if (lowest == Rule::never) break;
      parts[best] = joined[best];
      --count;
      for (std::size_t i = best + 1; i < count; ++i) {
        parts[i] = parts[i + 1];
        priority[i - 1] = priority[i];
        joined[i - 1] = joined[i];
      }
      if (best + 1 < count) keep(best, find(parts[best], parts[best + 1]));
      if (best > 0) keep(best - 1, find(parts[best - 1], parts[best]));
    }
    return count;
  }

  // A part in the chain of those that are left. `priority` is that of the pair with the next part.
  struct Node {
    Part part;
    Part joined;
    std::uint32_t priority;
    std::uint32_t previous, next;
  };
  static constexpr std::uint32_t none = UINT32_MAX;

  template <class Find, class First>
  std::size_t merge_long(std::span<Part> parts, const Find& find, const First& first) {
    nodes_.clear();
    sorted_.clear();
    fresh_.clear();
    const auto count = static_cast<std::uint32_t>(parts.size());
    nodes_.reserve(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      const Rule rule = i + 1 == count ? Rule{} : first(i);
      nodes_.push_back({parts[i], rule.joined, rule.priority, i == 0 ? none : i - 1, i + 1 == count ? none : i + 1});
    }
    const auto look = [&](std::uint32_t i) {
      Node& node = nodes_[i];
      node.priority = Rule::never;
      if (node.next == none) return false;
      const Rule rule = find(node.part, nodes_[node.next].part);
      node.priority = rule.priority;
      node.joined = rule.joined;
      return rule.priority != Rule::never;
    };
    // An entry is the priority above the position, so that the smallest is the pair to merge. The entries of the beginning are
    // sorted once; those that come up on the way wait in a heap, and are the next to be sorted when the sorted ones are used up.
    // In a run of one letter each such turn finds its entries in order already, and nothing is ever taken from the heap.
    const auto later = [](std::uint64_t a, std::uint64_t b) { return a > b; };
    const auto entry = [&](std::uint32_t i) { return std::uint64_t{nodes_[i].priority} << 32 | i; };
    const auto push = [&](std::uint32_t i) {
      fresh_.push_back(entry(i));
      std::push_heap(fresh_.begin(), fresh_.end(), later);
    };
    for (std::uint32_t i = 0; i < count; ++i) {
      if (nodes_[i].priority != Rule::never) fresh_.push_back(entry(i));
    }
    for (std::size_t next = 0;;) {
      std::uint64_t top;
      if (next == sorted_.size()) {
        if (fresh_.empty()) break;
        sorted_.swap(fresh_);
        fresh_.clear();
        next = 0;
        if (!std::is_sorted(sorted_.begin(), sorted_.end())) std::sort(sorted_.begin(), sorted_.end());
      }
      if (fresh_.empty() || sorted_[next] <= fresh_.front()) {
        top = sorted_[next++];
      } else {
        top = fresh_.front();
        std::pop_heap(fresh_.begin(), fresh_.end(), later);
        fresh_.pop_back();
      }
      const auto at = static_cast<std::uint32_t>(top);
      Node& left = nodes_[at];
      if (left.priority != static_cast<std::uint32_t>(top >> 32)) continue;  // its pair has changed since
      Node& right = nodes_[left.next];
      left.part = left.joined;
      left.next = right.next;
      right.priority = Rule::never;
      if (left.next != none) nodes_[left.next].previous = at;
      if (look(at)) push(at);
      if (left.previous != none && look(left.previous)) push(left.previous);
    }
    std::size_t kept = 0;
    for (std::uint32_t i = 0; i != none; i = nodes_[i].next) parts[kept++] = nodes_[i].part;
    return kept;
  }

  std::vector<Node> nodes_;
  std::vector<std::uint64_t> sorted_, fresh_;
};

}  // namespace nihao
