// A hash table over things that lie in an array elsewhere: each slot is the number of one of them and some bits of its hash, in
// 4 bytes. The tables of a vocabulary of 262144 tokens take 2 MiB each, and most look-ups touch one cache line.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace nihao {

/// Finds numbers by 64-bit hashes. The caller keeps the things and compares them.
class FlatIndex {
 public:
  static constexpr std::uint32_t none = UINT32_MAX;

  FlatIndex() : FlatIndex(0) {}
  /// For numbers below `count` (count < 2^31).
  explicit FlatIndex(std::size_t count)
      : slots_(std::bit_ceil(count + count / 2 + 2), none),
        shift_(64 - std::countr_zero(slots_.size())),
        number_mask_((std::uint32_t{1} << std::bit_width(count)) - 1) {}

  /// The number for which `same(number)` is true among those inserted with this hash, or none.
  template <class Same>
  [[nodiscard]] std::uint32_t find(std::uint64_t hash, const Same& same) const noexcept {
    const std::uint32_t tag = tag_of(hash);
    for (std::size_t i = home(hash);; i = (i + 1) & (slots_.size() - 1)) {
      const std::uint32_t slot = slots_[i];
      if (slot == none) return none;
      if ((slot & ~number_mask_) == tag && same(slot & number_mask_)) return slot & number_mask_;
    }
  }

  /// Adds a number, unless one is there for which `same` is true. At most `count` may be added.
  template <class Same>
  void insert(std::uint64_t hash, std::uint32_t number, const Same& same) noexcept {
    const std::uint32_t tag = tag_of(hash);
    std::size_t i = home(hash);
    for (; slots_[i] != none; i = (i + 1) & (slots_.size() - 1)) {
      if ((slots_[i] & ~number_mask_) == tag && same(slots_[i] & number_mask_)) return;
    }
    slots_[i] = tag | number;
  }

  /// Starts to fetch the place of a hash that will be asked for soon: building a table is waiting for memory otherwise.
  void prefetch(std::uint64_t hash) const noexcept { __builtin_prefetch(slots_.data() + home(hash)); }

 private:
  // Place from the upper bits, which depend on all of the hash's input; tag from the others.
  [[nodiscard]] std::size_t home(std::uint64_t hash) const noexcept { return static_cast<std::size_t>(hash >> shift_); }
  [[nodiscard]] std::uint32_t tag_of(std::uint64_t hash) const noexcept {
    return static_cast<std::uint32_t>(hash) & ~number_mask_;
  }

  std::vector<std::uint32_t> slots_;  // a power of two, at most two thirds full
  int shift_;                         // 64 - log2(slots)
  // A number is below 2^bits - 1, so no slot in use has all bits set.
  std::uint32_t number_mask_;
};

}  // namespace nihao
