// One metadata value of a GGUF file: a key, a type and the bytes in the file, turned into a C++ value only when asked for.
#pragma once

#include "../base/bytes.hpp"
#include "../base/error.hpp"
#include "../base/str.hpp"

#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace nihao {

/// The types of metadata values, with the file's numbers for them.
enum class GgufType : std::uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12
};

inline constexpr std::uint32_t gguf_type_count = 13;

[[nodiscard]] constexpr std::string_view to_string(GgufType type) noexcept {
  constexpr std::string_view names[gguf_type_count] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                                       "bool", "string", "array", "u64", "i64", "f64"};
  return static_cast<std::uint32_t>(type) < gguf_type_count ? names[static_cast<std::uint32_t>(type)] : "unknown";
}

/// Bytes of a value of fixed size; 0 for strings and arrays.
[[nodiscard]] constexpr std::size_t gguf_type_size(GgufType type) noexcept {
  switch (type) {
    case GgufType::u8:
    case GgufType::i8:
    case GgufType::boolean: return 1;
    case GgufType::u16:
    case GgufType::i16: return 2;
    case GgufType::u32:
    case GgufType::i32:
    case GgufType::f32: return 4;
    case GgufType::u64:
    case GgufType::i64:
    case GgufType::f64: return 8;
    case GgufType::string:
    case GgufType::array: break;
  }
  return 0;
}

/// What a metadata value can be read as.
template <class T>
concept GgufScalar = std::integral<T> || std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, std::string_view>;

/// The most items that a file's arrays may have in all, nested ones included: a bound on the work of opening a file that is
/// mostly holes. (A vocabulary of 2^18 tokens brings some 2^20: tokens, scores, types, merges.)
inline constexpr std::uint64_t gguf_max_items = std::uint64_t{1} << 26;

/// One key and its value. Everything is a view of the file; the reader has checked that the bytes have the type's form.
struct GgufEntry {
  std::string_view key;
  GgufType type;
  GgufType item_type;                ///< of an array's items, otherwise `type`
  std::uint64_t count;               ///< of an array's items, otherwise 1
  std::span<const std::byte> bytes;  ///< the value: a number's bytes, a string's text, an array's items one after another
  std::uint64_t offset;              ///< of the first of them in the file

  /// The value as T. Integers convert to any integer type that holds the value, floats and integers to float types (a double
  /// is rounded to float, an integer must be exact). Errors: mismatch, naming the key.
  template <GgufScalar T>
  [[nodiscard]] Expected<T> as() const {
    if (type == GgufType::array) return mismatch(type_name<T>());
    return convert<T>(type, bytes);
  }

  /// The items of an array of numbers or bools, converted as by as(). Errors: mismatch.
  template <GgufScalar T>
    requires(!std::same_as<T, std::string_view>)
  [[nodiscard]] Expected<std::vector<T>> items() const {
    const std::size_t size = gguf_type_size(item_type);
    if (type != GgufType::array || size == 0) return mismatch(concat("an array of ", type_name<T>()));
    std::vector<T> out;
    if constexpr (!std::same_as<T, bool>) {
      if (item_type == own_type<T>()) {  // vocabularies hold hundreds of thousands of numbers, stored as they are asked for
        out.resize(static_cast<std::size_t>(count));
        if (!out.empty()) std::memcpy(out.data(), bytes.data(), out.size() * sizeof(T));
        return out;
      }
    }
    out.reserve(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < count; ++i) {
      NIHAO_TRY(const T item, convert<T>(item_type, bytes.subspan(i * size, size)));
      out.push_back(item);
    }
    return out;
  }

  /// The items of an array of strings, as views of the file. Errors: mismatch.
  [[nodiscard]] Expected<std::vector<std::string_view>> strings() const {
    if (type != GgufType::array || item_type != GgufType::string) return mismatch("an array of strings");
    std::vector<std::string_view> out;
    out.reserve(static_cast<std::size_t>(count));
    for_each_string([&](std::string_view item) { return out.push_back(item), true; });
    return out;
  }

  /// The value in one short line: a string quoted and cut, an array by its size and first items.
  [[nodiscard]] std::string describe(std::size_t limit = 60) const {
    if (type != GgufType::array) return describe_one(type, bytes, limit);
    std::string out = concat("[", count, " x ", to_string(item_type), "]");
    if (item_type == GgufType::array || count == 0) return out;
    out += " {";
    std::size_t shown = 0;
    const auto add = [&](std::span<const std::byte> item) {
      if (shown++ != 0) out += ", ";
      if (shown > 8 || out.size() >= limit) return out += "...", false;
      out += describe_one(item_type, item, limit / 2);
      return true;
    };
    if (item_type == GgufType::string) {
      for_each_string([&](std::string_view item) { return add(std::as_bytes(std::span(item))); });
    } else {
      const std::size_t size = gguf_type_size(item_type);
      for (std::size_t i = 0; i < count && add(bytes.subspan(i * size, size)); ++i) {}
    }
    return out + "}";
  }

 private:
  template <class T>
  static T load(std::span<const std::byte> from) noexcept {
    T value;
    std::memcpy(&value, from.data(), sizeof value);
    return value;
  }

  template <class T>
  static constexpr std::string_view type_name() noexcept {
    if constexpr (std::same_as<T, bool>) return "a bool";
    else if constexpr (std::same_as<T, std::string_view>) return "a string";
    else if constexpr (std::floating_point<T>) return "a float";
    else return std::is_signed_v<T> ? "an integer" : "a non-negative integer";
  }

  /// The type that stores a T bit for bit.
  template <class T>
  static constexpr GgufType own_type() noexcept {
    if constexpr (std::same_as<T, float>) return GgufType::f32;
    else if constexpr (std::same_as<T, double>) return GgufType::f64;
    else if constexpr (sizeof(T) == 1) return std::is_signed_v<T> ? GgufType::i8 : GgufType::u8;
    else if constexpr (sizeof(T) == 2) return std::is_signed_v<T> ? GgufType::i16 : GgufType::u16;
    else if constexpr (sizeof(T) == 4) return std::is_signed_v<T> ? GgufType::i32 : GgufType::u32;
    else return std::is_signed_v<T> ? GgufType::i64 : GgufType::u64;
  }

  [[nodiscard]] Error mismatch(std::string_view wanted) const {
    std::string what =
        concat("wanted ", wanted, ", the file has ", type == GgufType::array ? "an array of " : "", to_string(item_type));
    if (type != GgufType::array) what += concat(" ", describe());
    return Error{ErrorCode::mismatch, std::move(what), concat("metadata key \"", printable(key), "\"")};
  }

  /// Calls f(item) until it returns false. The reader has checked every length.
  template <class F>
  void for_each_string(F&& f) const {
    std::size_t at = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto size = static_cast<std::size_t>(load<std::uint64_t>(bytes.subspan(at)));
      if (!f(std::string_view(reinterpret_cast<const char*>(bytes.data()) + at + 8, size))) return;
      at += 8 + size;
    }
  }

  /// Calls f with the number of a numeric type as it is stored.
  template <class F>
  static auto with_number(GgufType stored, std::span<const std::byte> from, F&& f) {
    switch (stored) {
      case GgufType::u8: return f(load<std::uint8_t>(from));
      case GgufType::i8: return f(load<std::int8_t>(from));
      case GgufType::u16: return f(load<std::uint16_t>(from));
      case GgufType::i16: return f(load<std::int16_t>(from));
      case GgufType::u32: return f(load<std::uint32_t>(from));
      case GgufType::i32: return f(load<std::int32_t>(from));
      case GgufType::i64: return f(load<std::int64_t>(from));
      case GgufType::f32: return f(load<float>(from));
      case GgufType::f64: return f(load<double>(from));
      default: return f(load<std::uint64_t>(from));
    }
  }

  template <class T>
  [[nodiscard]] Expected<T> convert(GgufType stored, std::span<const std::byte> from) const {
    if constexpr (std::same_as<T, std::string_view>) {
      if (stored != GgufType::string) return mismatch(type_name<T>());
      return std::string_view(reinterpret_cast<const char*>(from.data()), from.size());
    } else if constexpr (std::same_as<T, bool>) {
      if (stored != GgufType::boolean) return mismatch(type_name<T>());
      return load<std::uint8_t>(from) != 0;
    } else {
      if (gguf_type_size(stored) == 0 || stored == GgufType::boolean) return mismatch(type_name<T>());
      T out{};
      const bool fits = with_number(stored, from, [&out]<class S>(S value) {
        if constexpr (std::integral<T> && std::floating_point<S>) {
          return false;
        } else if constexpr (std::integral<T>) {
          out = static_cast<T>(value);
          return std::in_range<T>(value);
        } else if constexpr (std::integral<S>) {
          out = static_cast<T>(value);
          // 2^digits is the first size at which a float type skips integers; a larger one is refused rather than rounded.
          constexpr auto last = std::uint64_t{1} << std::numeric_limits<T>::digits;
          return std::cmp_less_equal(value, last) && std::cmp_greater_equal(value, -static_cast<std::int64_t>(last));
        } else {
          // A finite value beyond float's range is refused; NaN and the infinities stay what they are.
          if (std::isfinite(value) && std::abs(static_cast<double>(value)) > std::numeric_limits<T>::max()) return false;
          out = static_cast<T>(value);
          return true;
        }
      });
      if (!fits) return mismatch(type_name<T>());
      return out;
    }
  }

  static std::string describe_one(GgufType stored, std::span<const std::byte> from, std::size_t limit) {
    if (stored == GgufType::string) {
      return concat("\"", printable({reinterpret_cast<const char*>(from.data()), from.size()}, limit), "\"");
    }
    if (stored == GgufType::boolean) return load<std::uint8_t>(from) != 0 ? "true" : "false";
    return with_number(stored, from, [](auto value) { return concat(+value); });
  }
};

}  // namespace nihao
