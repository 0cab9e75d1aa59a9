// Writing GGUF files: metadata of every type and tensors, to memory or streamed to disk.
#pragma once

#include "../base/checked.hpp"
#include "../base/error.hpp"
#include "../base/function_ref.hpp"
#include "../base/str.hpp"
#include "gguf.hpp"
#include "gguf_value.hpp"
#include "output_file.hpp"

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace nihao {

/// Collects what a GGUF file says and writes it. Keys and names are the caller's to keep unique; Gguf checks them on reading.
class GgufWriter {
 public:
  /// `alignment` is a power of two from 8; another than 32 is recorded under general.alignment.
  explicit GgufWriter(std::uint32_t alignment = 32, std::uint32_t version = 3) : alignment_(alignment), version_(version) {
    if (alignment != 32) add("general.alignment", alignment);
  }

  /// A number, a bool, or a string.
  template <class T>
    requires std::integral<T> || std::same_as<T, float> || std::same_as<T, double>
  void add(std::string_view key, T value) {
    add_raw(key, type_of<T>(), std::as_bytes(std::span(&value, 1)));
  }
  void add(std::string_view key, std::string_view value) {
    std::vector<std::byte> bytes;
    put_text(bytes, value);
    add_raw(key, GgufType::string, bytes);
  }
  void add(std::string_view key, const char* value) { add(key, std::string_view(value)); }

  /// An array of numbers.
  template <class T>
    requires(std::integral<T> || std::same_as<T, float> || std::same_as<T, double>) && (!std::same_as<T, bool>)
  void add_array(std::string_view key, std::span<const T> items) {
    std::vector<std::byte> bytes;
    put(bytes, type_of<T>());
    put(bytes, std::uint64_t{items.size()});
    put_bytes(bytes, std::as_bytes(items));
    add_raw(key, GgufType::array, bytes);
  }
  void add_strings(std::string_view key, std::span<const std::string_view> items) {
    std::vector<std::byte> bytes;
    put(bytes, GgufType::string);
    put(bytes, std::uint64_t{items.size()});
    for (const std::string_view item : items) put_text(bytes, item);
    add_raw(key, GgufType::array, bytes);
  }
  void add_bools(std::string_view key, std::span<const bool> items) {
    std::vector<std::byte> bytes;
    put(bytes, GgufType::boolean);
    put(bytes, std::uint64_t{items.size()});
    for (const bool item : items) put(bytes, static_cast<std::uint8_t>(item));
    add_raw(key, GgufType::array, bytes);
  }

  /// An entry copied from another file, whatever its type.
  void add(const GgufEntry& entry) {
    std::vector<std::byte> bytes;
    if (entry.type == GgufType::array) {
      put(bytes, entry.item_type);
      put(bytes, entry.count);
    } else if (entry.type == GgufType::string) {
      put(bytes, std::uint64_t{entry.bytes.size()});
    }
    put_bytes(bytes, entry.bytes);
    add_raw(entry.key, entry.type, bytes);
  }

  /// A value whose bytes are already what the file shall hold.
  void add_raw(std::string_view key, GgufType type, std::span<const std::byte> value) {
    put_text(metadata_, key);
    put(metadata_, type);
    put_bytes(metadata_, value);
    ++entries_;
  }

  /// A tensor, `shape` with the outermost axis first (1 to 4 axes, the last a multiple of the format's block). Its bytes are
  /// not copied and may come later (write's `source`). Errors: invalid_argument.
  Expected<void> add_tensor(std::string_view name, FormatId format, std::span<const std::uint64_t> shape,
                            std::span<const std::byte> bytes = {}) {
    const FormatInfo info = format_info(format);
    std::uint64_t elements = 1;
    bool good = !shape.empty() && shape.size() <= 4 && shape.back() % info.block_size == 0;
    for (const std::uint64_t size : shape) {
      const auto product = checked_mul(elements, size);
      good = good && size != 0 && product;
      elements = product.value_or(0);
    }
    const auto size = checked_mul<std::uint64_t>(elements / info.block_size, info.block_bytes);
    if (!good || !size) return Error{ErrorCode::invalid_argument, "the shape is not one of whole blocks", std::string(name)};
    if (!bytes.empty() && bytes.size() != *size) {
      return Error{ErrorCode::invalid_argument, concat(bytes.size(), " bytes, the shape needs ", *size), std::string(name)};
    }
    const auto padded = checked_round_up<std::uint64_t>(*size, alignment_);
    const auto next = padded ? checked_add(data_size_, *padded) : std::nullopt;
    if (!next) return Error{ErrorCode::invalid_argument, "the file's size does not fit in 64 bits", std::string(name)};
    add_tensor_raw(name, ggml_type_of(format), shape, data_size_);
    tensors_.push_back({*size, bytes});
    data_size_ = *next;
    return {};
  }

  /// A tensor's line as given, without bytes.
  void add_tensor_raw(std::string_view name, std::uint32_t type, std::span<const std::uint64_t> shape, std::uint64_t offset) {
    put_text(lines_, name);
    put(lines_, static_cast<std::uint32_t>(shape.size()));
    for (std::size_t i = shape.size(); i-- > 0;) put(lines_, shape[i]);  // the file has the innermost axis first
    put(lines_, type);
    put(lines_, offset);
    ++lines_count_;
  }

  /// Everything before the data, padded to the alignment.
  [[nodiscard]] std::vector<std::byte> head() const {
    std::vector<std::byte> out;
    put_bytes(out, std::as_bytes(std::span("GGUF", 4)));
    put(out, version_);
    put(out, lines_count_);
    put(out, entries_);
    put_bytes(out, metadata_);
    put_bytes(out, lines_);
    out.resize(round_up<std::size_t>(out.size(), alignment_));
    return out;
  }

  /// The whole file, from the bytes that the tensors were added with, zeros where they had none.
  [[nodiscard]] std::vector<std::byte> bytes() const {
    std::vector<std::byte> out = head();
    for (const Tensor& tensor : tensors_) {
      const std::size_t start = out.size();
      put_bytes(out, tensor.bytes);
      out.resize(start + round_up(static_cast<std::size_t>(tensor.size), std::size_t{alignment_}));
    }
    return out;
  }

  /// Gives the next bytes of tensor i, from `offset` on: some of them or all, in the order of adding. They are written before the
  /// next are asked for, so that no more than a piece need be in memory.
  using Source = FunctionRef<Expected<std::span<const std::byte>>(std::size_t i, std::uint64_t offset)>;

  /// Writes the file, whole or not at all. Errors: io, invalid_argument (a tensor's bytes have the wrong size), the source's.
  [[nodiscard]] Expected<void> write(const std::string& path, Source source) const {
    NIHAO_TRY(auto file, OutputFile::create(path));
    NIHAO_CHECK(file.write(head()));
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      for (std::uint64_t done = 0; done < tensors_[i].size;) {
        NIHAO_TRY(const auto bytes, source(i, done));
        done += bytes.size();
        if (bytes.empty() || done > tensors_[i].size) {
          return Error{ErrorCode::invalid_argument,
                       concat("tensor ", i, " has ", done, " bytes, its shape needs ", tensors_[i].size), path};
        }
        NIHAO_CHECK(file.write(bytes));
      }
      NIHAO_CHECK(file.pad(alignment_));
    }
    return std::move(file).commit();
  }
  /// The same from the bytes that the tensors were added with.
  [[nodiscard]] Expected<void> write(const std::string& path) const {
    return write(path, [&](std::size_t i, std::uint64_t) -> Expected<std::span<const std::byte>> { return tensors_[i].bytes; });
  }

 private:
  struct Tensor {
    std::uint64_t size;
    std::span<const std::byte> bytes;
  };

  template <class T>
  static constexpr GgufType type_of() noexcept {
    if constexpr (std::same_as<T, bool>) return GgufType::boolean;
    else if constexpr (std::same_as<T, float>) return GgufType::f32;
    else if constexpr (std::same_as<T, double>) return GgufType::f64;
    else if constexpr (sizeof(T) == 1) return std::is_signed_v<T> ? GgufType::i8 : GgufType::u8;
    else if constexpr (sizeof(T) == 2) return std::is_signed_v<T> ? GgufType::i16 : GgufType::u16;
    else if constexpr (sizeof(T) == 4) return std::is_signed_v<T> ? GgufType::i32 : GgufType::u32;
    else return std::is_signed_v<T> ? GgufType::i64 : GgufType::u64;
  }
  static void put_bytes(std::vector<std::byte>& out, std::span<const std::byte> bytes) {
    out.insert(out.end(), bytes.begin(), bytes.end());
  }
  template <class T>
  static void put(std::vector<std::byte>& out, T value) {
    put_bytes(out, std::as_bytes(std::span(&value, 1)));
  }
  static void put_text(std::vector<std::byte>& out, std::string_view text) {
    put(out, std::uint64_t{text.size()});
    put_bytes(out, std::as_bytes(std::span(text)));
  }

  std::uint32_t alignment_, version_;
  std::uint64_t entries_ = 0, lines_count_ = 0, data_size_ = 0;
  std::vector<std::byte> metadata_, lines_;
  std::vector<Tensor> tensors_;
};

}  // namespace nihao
