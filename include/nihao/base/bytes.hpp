// The one checked reader of untrusted bytes: every length and count is held against the bytes that are left before
// anything is allocated or read. All binary formats of files/ are read through it.
#pragma once

#include "checked.hpp"
#include "error.hpp"
#include "str.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace nihao {

/// Reads little-endian values from a span, in order. Nothing is copied: strings and byte ranges are views into the span.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}

  [[nodiscard]] std::size_t offset() const noexcept { return offset_; }
  [[nodiscard]] std::size_t left() const noexcept { return bytes_.size() - offset_; }

  /// One number. Error: truncated.
  template <class T>
    requires std::is_arithmetic_v<T>
  [[nodiscard]] Expected<T> read(std::string_view what) {
    static_assert(std::endian::native == std::endian::little, "nihao reads little-endian files on little-endian machines.");
    T value{};
    if (!take(&value, sizeof(T))) return ends_early(what, sizeof(T));
    return value;
  }

  /// `size` bytes as a view. Error: truncated.
  [[nodiscard]] Expected<std::span<const std::byte>> bytes(std::uint64_t size, std::string_view what) {
    if (size > left()) return ends_early(what, size);
    const auto view = bytes_.subspan(offset_, static_cast<std::size_t>(size));
    offset_ += static_cast<std::size_t>(size);
    return view;
  }

  /// `size` bytes as text. Error: truncated.
  [[nodiscard]] Expected<std::string_view> text(std::uint64_t size, std::string_view what) {
    NIHAO_TRY(const auto view, bytes(size, what));
    return std::string_view(reinterpret_cast<const char*>(view.data()), view.size());
  }

  /// Checks that `count` items of at least `item_size` bytes each can still follow: after this a vector of `count` may be
  /// allocated, since its size is bounded by the file's. Error: truncated.
  [[nodiscard]] Expected<void> expect_items(std::uint64_t count, std::uint64_t item_size, std::string_view what) const {
    const auto need = checked_mul(count, item_size);
    if (!need || *need > left()) return ends_early(what, need.value_or(UINT64_MAX));
    return {};
  }

  /// Moves on to a multiple of `unit` from the start (unit > 0). Error: truncated.
  [[nodiscard]] Expected<void> align(std::size_t unit) {
    const auto next = checked_round_up(offset_, unit);
    if (!next || *next > bytes_.size()) return ends_early("padding", unit);
    offset_ = *next;
    return {};
  }

 private:
  // Not inlined: g++ 12 takes the guarded copy out of a short constant buffer for an overflow, and warns.
  NIHAO_NOINLINE bool take(void* to, std::size_t size) noexcept {
    if (size > left()) return false;
    std::memcpy(to, bytes_.data() + offset_, size);
    offset_ += size;
    return true;
  }
  [[nodiscard]] Error ends_early(std::string_view what, std::uint64_t need) const {
    return Error{ErrorCode::truncated, concat(what, " needs ", need, " bytes, and ", left(), " are left"),
                 concat("byte ", offset_)};
  }

  std::span<const std::byte> bytes_;
  std::size_t offset_ = 0;
};

}  // namespace nihao
