// Reading safetensors, the file format of Hugging Face: one file, or a folder with an index and shards.
// The format: https://github.com/huggingface/safetensors#format. What is checked here, and why: docs/files.md.
#pragma once

#include "../base/bytes.hpp"
#include "../base/checked.hpp"
#include "../base/error.hpp"
#include "../base/floats.hpp"
#include "../base/platform.hpp"
#include "json.hpp"
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
  [[nodiscard]] static Expected<Safetensors> open(const std::string& path) {
    constexpr std::string_view index = "/model.safetensors.index.json", single = "/model.safetensors";
    if (path.ends_with(".index.json")) return open_index(path);
    auto file = MappedFile::open(path);
    if (file) return open_single(path, std::move(*file));
    auto in_folder = MappedFile::open(concat(path, single));
    if (in_folder) return open_single(concat(path, single), std::move(*in_folder));
    if (MappedFile::open(concat(path, index))) return open_index(concat(path, index));
    return Error{ErrorCode::io,
                 concat("neither a file (", file.error().what, ") nor a folder with model.safetensors or ", index.substr(1)),
                 path};
  }

  /// Reads a file that the host holds in memory and keeps there while this or its tensors are used.
  [[nodiscard]] static Expected<Safetensors> from_bytes(std::span<const std::byte> bytes) {
    Safetensors out;
    NIHAO_CHECK(in("memory", out.add_file(bytes, 0)));
    NIHAO_CHECK(in("memory", out.finish({})));
    return out;
  }

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
  // The specification's limit for the header; an index is held to it too.
  static constexpr std::uint64_t max_header_bytes = 100'000'000;
  static constexpr std::uint64_t max_values = std::uint64_t{1} << 28;
  static constexpr std::size_t max_rank = 16;
  static constexpr std::size_t max_shards = 100'000;

  template <class T>
  static Expected<T> in(std::string_view place, Expected<T> result) {
    if (!result) return std::move(result).error().in(place);
    return result;
  }

  static Expected<Safetensors> open_single(const std::string& path, MappedFile file) {
    Safetensors out;
    NIHAO_CHECK(in(path, out.add_file(file.bytes(), 0)));
    std::vector<MappedFile> files;
    files.push_back(std::move(file));
    NIHAO_CHECK(in(path, out.finish(std::move(files))));
    return out;
  }

  /// The index maps every tensor to a file beside it: {"weight_map": {"lm_head.weight": "model-00002-of-00002.safetensors"}}.
  static Expected<Safetensors> open_index(const std::string& path) {
    NIHAO_TRY(const MappedFile index, MappedFile::open(path));
    if (index.bytes().size() > max_header_bytes) {
      return Error{ErrorCode::limit, concat("an index of ", index.bytes().size(), " bytes, the limit is ", max_header_bytes),
                   path};
    }
    const std::string_view text(reinterpret_cast<const char*>(index.bytes().data()), index.bytes().size());
    NIHAO_TRY(const Json json, in(path, parse_json(text, 8)));
    const Json* map = json_find(json, "weight_map");
    const auto* members = map == nullptr ? nullptr : map->get_ptr<const Json::object_t*>();
    if (members == nullptr) return Error{ErrorCode::malformed, "it has no object \"weight_map\"", path};
    std::vector<std::string> names;
    for (const auto& [tensor, file] : *members) {
      NIHAO_TRY(const auto name, in(path, json_as<std::string_view>(file, concat("weight_map.", printable(tensor)))));
      // A file beside the index, and nothing else: no path, no "..", no hidden file.
      if (!name.ends_with(".safetensors") || name.starts_with('.') ||
          name.find_first_of(std::string_view("/\\\0", 3)) != name.npos) {
        return Error{ErrorCode::malformed,
                     concat("\"", printable(name), "\" is not the name of a safetensors file beside the index"),
                     concat(path, ": weight_map.", printable(tensor))};
      }
      names.emplace_back(name);
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    if (names.size() > max_shards)
      return Error{ErrorCode::limit, concat(names.size(), " shards, the limit is ", max_shards), path};

    const auto slash = path.rfind('/');
    const std::string folder = slash == path.npos ? "" : path.substr(0, slash + 1);
    Safetensors out;
    std::vector<MappedFile> files;
    for (const std::string& name : names) {
      NIHAO_TRY(auto file, MappedFile::open(folder + name));
      NIHAO_CHECK(in(folder + name, out.add_file(file.bytes(), static_cast<std::uint32_t>(files.size()))));
      files.push_back(std::move(file));
    }
    NIHAO_CHECK(in(path, out.finish(std::move(files))));
    for (const auto& [tensor, file] : *members) {
      const SafetensorsEntry* entry = out.find(tensor);
      if (entry != nullptr && names[entry->file] == *file.template get_ptr<const std::string*>()) continue;
      return Error{ErrorCode::mismatch,
                   concat("the index says that it is in ", *file.template get_ptr<const std::string*>(), ", and it is not"),
                   concat(path, ": tensor \"", printable(tensor), "\"")};
    }
    return out;
  }

  /// Reads one file's header and appends its tensors.
  Expected<void> add_file(std::span<const std::byte> bytes, std::uint32_t file) {
    ByteReader reader(bytes);
    NIHAO_TRY(const auto header_size, reader.read<std::uint64_t>("the header's length"));
    if (header_size > max_header_bytes) {
      return Error{ErrorCode::malformed, concat("the header's length is ", header_size, ", the limit is ", max_header_bytes),
                   "byte 0"};
    }
    NIHAO_TRY(const auto text, reader.text(header_size, "the header"));
    if (!text.starts_with('{')) return Error{ErrorCode::malformed, "the header does not start with {", "byte 8"};
    NIHAO_TRY(const Json header, in("header", parse_json(text, 8)));
    const auto* members = header.get_ptr<const Json::object_t*>();
    if (members == nullptr) return Error{ErrorCode::malformed, "the header is not an object"};
    const auto data = bytes.subspan(reader.offset());
    const std::size_t first = entries_.size();
    for (const auto& [name, value] : *members) {
      if (name == "__metadata__") {
        NIHAO_CHECK(in("__metadata__", add_metadata(value, file)));
      } else {
        NIHAO_TRY(auto entry, in(concat("tensor \"", printable(name), "\""), read_entry(value, data)));
        entry.name = name;
        entry.offset += reader.offset();
        entry.file = file;
        entries_.push_back(std::move(entry));
      }
    }
    return check_layout(std::span(entries_).subspan(first), reader.offset(), bytes.size());
  }

  Expected<void> add_metadata(const Json& value, std::uint32_t file) {
    const auto* members = value.get_ptr<const Json::object_t*>();
    if (members == nullptr) return Error{ErrorCode::malformed, "not an object"};
    for (const auto& [key, text] : *members) {
      NIHAO_TRY(auto string, json_as<std::string>(text, printable(key)));
      if (file == 0) metadata_.emplace_back(key, std::move(string));
    }
    return {};
  }

  /// One tensor's line, {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}; the offset still counts from the data.
  static Expected<SafetensorsEntry> read_entry(const Json& json, std::span<const std::byte> data) {
    NIHAO_TRY(const auto dtype, json_get<std::string_view>(json, "dtype"));
    const auto* info =
        std::find_if(std::begin(safetensors_types), std::end(safetensors_types), [&](auto& t) { return t.name == dtype; });
    if (info == std::end(safetensors_types)) return Error{ErrorCode::unsupported, concat("unknown dtype ", printable(dtype))};
    SafetensorsEntry entry{};
    entry.type = static_cast<SafetensorsType>(info - safetensors_types);
    NIHAO_TRY(entry.shape, json_array<std::uint64_t>(json, "shape"));
    if (entry.shape.size() > max_rank)
      return Error{ErrorCode::limit, concat("rank ", entry.shape.size(), ", the limit is ", max_rank)};
    NIHAO_TRY(const auto range, json_array<std::uint64_t>(json, "data_offsets"));
    if (range.size() != 2 || range[0] > range[1]) return Error{ErrorCode::malformed, "data_offsets is not a range [begin, end]"};
    if (range[1] > data.size()) {
      return Error{ErrorCode::truncated, concat("its bytes end at ", range[1], " of the data, which has ", data.size())};
    }
    // Zero times anything is zero, but the other axes must still have a product.
    std::optional<std::uint64_t> bits = info->bits;
    bool empty = false;
    for (const std::uint64_t size : entry.shape) {
      empty = empty || size == 0;
      if (bits) bits = checked_mul<std::uint64_t>(*bits, std::max<std::uint64_t>(size, 1));
    }
    if (!bits) return Error{ErrorCode::malformed, "the shape's size does not fit in 64 bits"};
    if (empty) bits = 0;
    if (*bits % 8 != 0 || *bits / 8 != range[1] - range[0]) {
      return Error{ErrorCode::malformed,
                   concat("dtype and shape make ", *bits / 8, " bytes, data_offsets ", range[1] - range[0])};
    }
    entry.offset = range[0];
    entry.bytes = data.subspan(static_cast<std::size_t>(range[0]), static_cast<std::size_t>(range[1] - range[0]));
    return entry;
  }

  /// Tensors follow each other without a gap and without overlap, and nothing comes after: no byte has two meanings or none.
  static Expected<void> check_layout(std::span<SafetensorsEntry> entries, std::uint64_t data, std::uint64_t end) {
    std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
      return std::tuple(a.offset, a.bytes.size(), std::string_view(a.name)) <
             std::tuple(b.offset, b.bytes.size(), std::string_view(b.name));
    });
    std::uint64_t at = data;
    for (const SafetensorsEntry& entry : entries) {
      if (entry.offset != at) {
        return Error{ErrorCode::malformed,
                     concat("its bytes ", entry.offset < at ? "overlap those before" : "leave a gap before them"),
                     concat("tensor \"", printable(entry.name), "\"")};
      }
      at += entry.bytes.size();
    }
    if (at != end) return Error{ErrorCode::malformed, concat(end - at, " bytes after the last tensor"), concat("byte ", at)};
    return {};
  }

  /// Builds the index by name and the TensorFile.
  Expected<void> finish(std::vector<MappedFile> files) {
    by_name_.resize(entries_.size());
    for (std::uint32_t i = 0; i < by_name_.size(); ++i) by_name_[i] = i;
    std::sort(by_name_.begin(), by_name_.end(), [&](auto a, auto b) { return entries_[a].name < entries_[b].name; });
    for (std::size_t i = 1; i < by_name_.size(); ++i) {
      const std::string& name = entries_[by_name_[i]].name;
      if (entries_[by_name_[i - 1]].name != name) continue;
      return Error{ErrorCode::malformed, "it is there twice", concat("tensor \"", printable(name), "\"")};
    }

    std::size_t name_bytes = 0;
    for (const SafetensorsEntry& entry : entries_) name_bytes += entry.name.size();
    std::vector<PageBuffer> buffers(1);
    NIHAO_TRY(buffers[0], PageBuffer::allocate(name_bytes));
    char* names = reinterpret_cast<char*>(buffers[0].data());
    std::vector<TensorInfo> tensors;
    for (const SafetensorsEntry& entry : entries_) {
      const auto format = weight_format(entry.type);
      if (!format || entry.shape.size() > 4 || entry.elements() == 0) continue;
      TensorInfo tensor{{},           *format,     static_cast<std::uint8_t>(std::max<std::size_t>(entry.shape.size(), 1)),
                        {1, 1, 1, 1}, entry.bytes, entry.offset,
                        entry.file};
      std::copy(entry.shape.begin(), entry.shape.end(), tensor.shape.begin());
      std::copy(entry.name.begin(), entry.name.end(), names);
      tensor.name = {names, entry.name.size()};
      names += entry.name.size();
      if (reinterpret_cast<std::uintptr_t>(tensor.bytes.data()) % (safetensors_type_info(entry.type).bits / 8) != 0) {
        NIHAO_TRY(auto copy, PageBuffer::allocate(tensor.bytes.size()));
        std::copy(tensor.bytes.begin(), tensor.bytes.end(), copy.data());
        tensor.bytes = {copy.data(), copy.size()};
        buffers.push_back(std::move(copy));
      }
      tensors.push_back(tensor);
    }
    tensors_ = TensorFile(std::move(tensors), std::move(files), std::move(buffers));
    return {};
  }

  static std::optional<FormatId> weight_format(SafetensorsType type) noexcept {
    switch (type) {
      case SafetensorsType::F32: return FormatId::F32;
      case SafetensorsType::F16: return FormatId::F16;
      case SafetensorsType::BF16: return FormatId::BF16;
      default: return std::nullopt;
    }
  }

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
