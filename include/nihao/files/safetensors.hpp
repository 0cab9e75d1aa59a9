// Reading safetensors, the file format of Hugging Face: one file, or a folder with an index and shards.
// The format: https://github.com/huggingface/safetensors#format. What is checked here, and why: docs/files.md.
#pragma once

#include "../base/bytes.hpp"
#include "../base/checked.hpp"
#include "../base/error.hpp"
#include "../base/floats.hpp"
#include "../base/platform.hpp"
#include "tensor_file.hpp"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace nihao {

/// The element types of safetensors files.
enum class SafetensorsType : std::uint8_t {
  BOOL,
  F4,
  F6_E2M3,
  F6_E3M2,
  U8,
  I8,
  F8_E5M2,
  F8_E4M3,
  F8_E8M0,
  I16,
  U16,
  F16,
  BF16,
  I32,
  U32,
  F32,
  C64,
  F64,
  I64,
  U64
};

/// Name and size in bits of every SafetensorsType, in the enum's order.
struct SafetensorsTypeInfo {
  std::string_view name;
  std::uint32_t bits;
};
inline constexpr SafetensorsTypeInfo safetensors_types[] = {
    {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},   {"I8", 8},    {"F8_E5M2", 8},
    {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16}, {"BF16", 16}, {"I32", 32},
    {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},    {"I64", 64}, {"U64", 64}};

[[nodiscard]] constexpr SafetensorsTypeInfo safetensors_type_info(SafetensorsType type) noexcept {
  return safetensors_types[static_cast<std::size_t>(type)];
}

/// One tensor of any type and rank, as the file stores it.
struct SafetensorsEntry {
  std::string name;
  SafetensorsType type;
  std::vector<std::uint64_t> shape;  ///< outermost axis first; empty for a scalar; axes of size 0 are allowed
  std::span<const std::byte> bytes;  ///< at any address
  std::uint64_t offset;              ///< of the first byte in its file
  std::uint32_t file;                ///< which shard

  [[nodiscard]] std::uint64_t elements() const noexcept {
    std::uint64_t product = 1;
    for (const std::uint64_t size : shape) product *= size;  // the reader has checked that it fits
    return product;
  }
};

/// A safetensors file or folder, checked as a whole when it is opened. Tensors are views of the mapping, and live as long as
/// this object (or, those of tensors(), as the TensorFile that was taken); from_bytes() views the host's memory.
class Safetensors {
 public:
  /// Opens a file, or an index (*.index.json) with the shards it names, or a folder that has either under the usual name.
  /// Errors: io, truncated, malformed, unsupported, mismatch, limit; all name the file, and the tensor or byte.
  [[nodiscard]] static Expected<Safetensors> open(const std::string& path);

  /// Reads a file that the host holds in memory and keeps there while this or its tensors are used.
  [[nodiscard]] static Expected<Safetensors> from_bytes(std::span<const std::byte> bytes);

  /// Every tensor, in the order of the files and of the bytes in them.
  [[nodiscard]] std::span<const SafetensorsEntry> entries() const noexcept { return entries_; }

  /// The entry of that name, or null.
  [[nodiscard]] const SafetensorsEntry* find(std::string_view name) const noexcept {
    const auto at =
        std::lower_bound(by_name_.begin(), by_name_.end(), name, [&](auto i, auto n) { return entries_[i].name < n; });
    return at != by_name_.end() && entries_[*at].name == name ? &entries_[*at] : nullptr;
  }

  /// The strings of the first file's __metadata__.
  [[nodiscard]] std::span<const std::pair<std::string, std::string>> metadata() const noexcept { return metadata_; }

  /// The tensors that can be weights as they are: F32, F16 and BF16, rank 0 (taken as one value) to 4, not empty. Those that
  /// the file does not align to their element are copied. The rest is in entries() alone.
  [[nodiscard]] const TensorFile& tensors() const noexcept { return tensors_; }
  [[nodiscard]] TensorFile take_tensors() && noexcept { return std::move(tensors_); }

  /// All values of a tensor as T: an integer type from the integer types (each value must fit), float or double from the float
  /// types of 16 bits and more and from integers, bool from BOOL. Errors: missing, mismatch, limit (more than 2^28 values).
  template <class T>
    requires std::integral<T> || std::floating_point<T>
  [[nodiscard]] Expected<std::vector<T>> values(std::string_view name) const {
    const SafetensorsEntry* entry = find(name);
    const std::string place = concat("tensor \"", printable(name), "\"");
    if (entry == nullptr) return Error{ErrorCode::missing, "the file does not have it", place};
    const std::uint64_t count = entry->elements();
    if (count > max_values) return Error{ErrorCode::limit, concat(count, " values, the limit is ", max_values), place};
    std::vector<T> out;
    out.reserve(static_cast<std::size_t>(count));
    const auto convert = [&]<class S>(S stored) {
      for (std::size_t i = 0; i < count; ++i) {
        std::memcpy(&stored, entry->bytes.data() + i * sizeof(S), sizeof(S));
        T value{};
        if (!put(stored, value)) return false;
        out.push_back(value);
      }
      return true;
    };
    if (!with_type(entry->type, convert)) {
      return Error{ErrorCode::mismatch,
                   concat("values of type ", safetensors_type_info(entry->type).name, " do not convert to ",
                          std::same_as<T, bool> ? "bool"
                          : std::integral<T>    ? "this integer type"
                                                : "a float type"),
                   place};
    }
    return out;
  }

 private:
  static constexpr std::uint64_t max_values = std::uint64_t{1} << 28;

  static Expected<Safetensors> open_single(const std::string& path, MappedFile file);
  static Expected<Safetensors> open_index(const std::string& path);
  Expected<void> add_file(std::span<const std::byte> bytes, std::uint32_t file);
  Expected<void> finish(std::vector<MappedFile> files);

  /// f(S{}) with the C++ type of a stored type; false for the types that values() does not read.
  template <class F>
  static bool with_type(SafetensorsType type, F&& f) {
    switch (type) {
      case SafetensorsType::BOOL: return f(StoredBool{});
      case SafetensorsType::U8: return f(std::uint8_t{});
      case SafetensorsType::I8: return f(std::int8_t{});
      case SafetensorsType::I16: return f(std::int16_t{});
      case SafetensorsType::U16: return f(std::uint16_t{});
      case SafetensorsType::F16: return f(f16{});
      case SafetensorsType::BF16: return f(bf16{});
      case SafetensorsType::I32: return f(std::int32_t{});
      case SafetensorsType::U32: return f(std::uint32_t{});
      case SafetensorsType::F32: return f(float{});
      case SafetensorsType::F64: return f(double{});
      case SafetensorsType::I64: return f(std::int64_t{});
      case SafetensorsType::U64: return f(std::uint64_t{});
      default: return false;
    }
  }

  struct StoredBool {
    std::uint8_t value;
  };

  template <class S, class T>
  static bool put(S stored, T& to) noexcept {
    if constexpr (std::same_as<S, StoredBool> || std::same_as<T, bool>) {
      if constexpr (std::same_as<S, StoredBool> && std::same_as<T, bool>) return to = stored.value != 0, true;
      else return false;
    } else if constexpr (std::same_as<S, f16> || std::same_as<S, bf16>) {
      if constexpr (std::floating_point<T>) return to = static_cast<T>(to_float(stored)), true;
      else return false;
    } else if constexpr (std::integral<T>) {
      if constexpr (std::integral<S>) return std::in_range<T>(stored) && (to = static_cast<T>(stored), true);
      else return false;
    } else {
      return to = static_cast<T>(stored), true;
    }
  }

  std::vector<SafetensorsEntry> entries_;
  std::vector<std::uint32_t> by_name_;
  std::vector<std::pair<std::string, std::string>> metadata_;
  TensorFile tensors_;
};

}  // namespace nihao

#if !NIHAO_COMPILED_JSON
#include "safetensors_impl.hpp"
#endif
