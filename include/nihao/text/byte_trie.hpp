// A trie over byte strings as a double array: one 8-byte slot a node, one look-up a byte. A child lies at its parent's base XOR
// its byte (J. Aoe 1989, "An efficient digital search algorithm by using a double-array structure"; the XOR is Darts-clone's).
#pragma once

#include "token.hpp"

#include "../base/error.hpp"
#include "../base/str.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace nihao {

/// Finds which of its keys begin a text. Each key is a token's bytes.
class ByteTrie {
 public:
  struct Key {
    std::string_view bytes;
    TokenId id;  // 0 .. max_id
  };
  static constexpr TokenId max_id = (1 << 25) - 2;

  /// A node by its slot; the root is the empty prefix.
  using Node = std::uint32_t;
  static constexpr Node root = 0, none = UINT32_MAX;

  /// Of equal keys the lowest id counts; an empty one is passed over. Errors: limit (an id above max_id, 2^30 nodes).
  [[nodiscard]] static Expected<ByteTrie> build(std::vector<Key> keys) {
    for (const Key& key : keys)
      if (key.id < 0 || key.id > max_id) return Error{ErrorCode::limit, concat("a trie holds ids up to ", max_id)};
    std::sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) {
      const int order = a.bytes.compare(b.bytes);
      return order != 0 ? order < 0 : a.id < b.id;
    });
    keys.erase(std::unique(keys.begin(), keys.end(), [](const Key& a, const Key& b) { return a.bytes == b.bytes; }), keys.end());
    if (!keys.empty() && keys.front().bytes.empty()) keys.erase(keys.begin());
    ByteTrie trie;
    if (!Builder(trie).build(keys)) return Error{ErrorCode::limit, "the trie would have more than 2^30 nodes"};
    return trie;
  }

  [[nodiscard]] bool empty() const noexcept { return slots_.empty(); }

  /// The node one byte on, or none.
  [[nodiscard]] Node child(Node of, char byte) const noexcept {
    if (slots_.empty()) return none;
    const unsigned value = static_cast<unsigned char>(byte);
    const Node at = base(slots_[of]) ^ value;  // inside: all 256 slots of a base's block exist
    return label(slots_[at]) == value ? at : none;
  }

  /// The key that ends at a node, or -1.
  [[nodiscard]] TokenId id(Node node) const noexcept { return static_cast<TokenId>(slots_[node] >> 39) - 1; }

  struct Match {
    std::size_t size = 0;
    TokenId id = -1;
  };
  /// The longest key that `text` begins with, walking on from `from`; size 0 if there is none.
  [[nodiscard]] Match longest(std::string_view text, Node from = root) const noexcept {
    Match best;
    for (std::size_t i = 0; i < text.size(); ++i) {
      from = child(from, text[i]);
      if (from == none) break;
      if (const TokenId found = id(from); found >= 0) best = {i + 1, found};
    }
    return best;
  }

 private:
  // A slot: base in bits 0..29, label in 30..38 (no_label: free), id + 1 above.
  using Slot = std::uint64_t;
  static constexpr unsigned no_label = 256;
  static constexpr Slot free_slot = Slot{no_label} << 30;
  static constexpr Node max_slots = Node{1} << 30;
  static Node base(Slot slot) noexcept { return static_cast<Node>(slot & (max_slots - 1)); }
  static unsigned label(Slot slot) noexcept { return static_cast<unsigned>(slot >> 30 & 511); }

  /// Places nodes, each's children in one block of 256 slots. Only the newest blocks are tried, so that building is linear.
  class Builder {
   public:
    explicit Builder(ByteTrie& trie) noexcept : slots_(trie.slots_) {}

    bool build(std::span<const Key> keys) {
      if (keys.empty()) return true;
      add_block();
      slots_[root] = Slot{no_label + 1} << 30;  // taken, and no byte leads to it
      base_taken_[0] = true;                    // base 0: no children
      struct Range {
        Node node;
        std::size_t first, last, depth;  // the keys below the node
      };
      std::vector<Range> open{{root, 0, keys.size(), 0}};
      std::vector<std::size_t> starts;
      while (!open.empty()) {
        const Range at = open.back();
        open.pop_back();
        std::size_t first = at.first;
        if (keys[first].bytes.size() == at.depth) slots_[at.node] |= static_cast<Slot>(keys[first++].id + 1) << 39;
        if (first == at.last) continue;
        labels_.clear();
        starts.clear();
        while (first < at.last) {
          const char byte = keys[first].bytes[at.depth];
          labels_.push_back(static_cast<unsigned char>(byte));
          starts.push_back(first);
          first = end_of(keys, first, at.last, at.depth, byte);
        }
        starts.push_back(at.last);
        const Node base = place();
        if (base == none) return false;
        slots_[at.node] |= base;
        for (std::size_t i = 0; i < labels_.size(); ++i)
          open.push_back({base ^ labels_[i], starts[i], starts[i + 1], at.depth + 1});
      }
      return true;
    }

   private:
    static constexpr std::size_t open_blocks = 8;

    // Where the keys with this byte at `depth` end: near by, as a rule.
    static std::size_t end_of(std::span<const Key> keys, std::size_t from, std::size_t last, std::size_t depth, char byte) {
      std::size_t step = 1;
      while (from + step < last && keys[from + step].bytes[depth] == byte) step *= 2;
      const auto begin = keys.begin() + static_cast<std::ptrdiff_t>(from + step / 2);
      const auto end = keys.begin() + static_cast<std::ptrdiff_t>(std::min(from + step, last));
      const auto same = [&](const Key& key) { return key.bytes[depth] == byte; };
      return static_cast<std::size_t>(std::partition_point(begin, end, same) - keys.begin());
    }

    void add_block() {
      slots_.resize(slots_.size() + 256, free_slot);
      base_taken_.resize(slots_.size());
      next_free_.push_back(0);
    }

    // Takes slots for labels_; the base that leads to them.
    Node place() {
      const std::size_t blocks = next_free_.size();
      for (std::size_t block = blocks > open_blocks ? blocks - open_blocks : 0; block < blocks; ++block)
        if (const Node base = place_in(block); base != none) return base;
      if (slots_.size() >= max_slots) return none;
      add_block();
      return place_in(blocks);
    }

    Node place_in(std::size_t block) {
      std::uint16_t& next = next_free_[block];
      const auto start = static_cast<Node>(block * 256);
      while (next < 256 && label(slots_[start + next]) != no_label) ++next;
      for (Node slot = start + next; slot < start + 256; ++slot) {
        if (label(slots_[slot]) != no_label) continue;
        const Node base = slot ^ labels_.front();
        if (base_taken_[base]) continue;
        const auto is_free = [&](std::uint8_t byte) { return label(slots_[base ^ byte]) == no_label; };
        if (!std::all_of(labels_.begin(), labels_.end(), is_free)) continue;
        for (const std::uint8_t byte : labels_) slots_[base ^ byte] = Slot{byte} << 30;
        base_taken_[base] = true;
        return base;
      }
      return none;
    }

    std::vector<Slot>& slots_;
    std::vector<bool> base_taken_;
    std::vector<std::uint16_t> next_free_;  // by block: no slot before this one is free
    std::vector<std::uint8_t> labels_;      // of the node being placed
  };

  std::vector<Slot> slots_;
};

}  // namespace nihao
