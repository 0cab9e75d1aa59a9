// Reading GGUF, the file format of llama.cpp: metadata and tensors, from one file, from shards, or from the host's memory.
// The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. What is checked here, and why: docs/files.md.
#pragma once

#include "../base/bytes.hpp"
#include "../base/checked.hpp"
#include "../base/error.hpp"
#include "../base/platform.hpp"
#include "../format/registry.hpp"
#include "ggml_types.hpp"
#include "gguf_shard_name.hpp"
#include "gguf_value.hpp"
#include "tensor_file.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nihao {

/// Which tensors a file may have to be opened.
enum class GgufTypes : std::uint8_t {
  computed,  ///< those that the library computes with; another is an error
  listed,    ///< any that ggml has: those that the library lacks are in Gguf::other_tensors()
};

/// A tensor of a type that the library does not compute with. `shape` as in TensorInfo.
struct GgufOtherTensor {
  std::string_view name;
  FormatInfo type;  ///< as ggml_type_info gives it
  std::uint8_t rank;
  std::array<std::uint64_t, 4> shape;
  std::span<const std::byte> bytes;
  std::uint64_t offset;  ///< of the first byte in its file
  std::uint32_t file;    ///< which shard
  std::size_t index;     ///< its place among all tensors of the model
};

/// A GGUF file (or a set of shards), checked as a whole when it is opened and then read without surprises: every count, length
/// and offset lies inside the bytes, tensors do not overlap, keys and names are unique.
///
/// Nothing is copied at open: metadata and tensors are views of the mapping. They live as long as this object, or, after
/// take_tensors(), as long as the TensorFile; from_bytes() views the host's memory instead and owns nothing.
class Gguf {
 public:
  using Entry = GgufEntry;

  /// Maps a file. Of a model split into name-00001-of-0000N.gguf any shard may be named: all are opened, and the metadata is
  /// the first one's. Errors: io, truncated, malformed, unsupported (version 1, big-endian, a tensor type that the library
  /// lacks, unless `types` has it listed), mismatch (shards that do not belong together), limit. All name the file, and the
  /// byte, key or tensor.
  [[nodiscard]] static Expected<Gguf> open(const std::string& path, GgufTypes types = GgufTypes::computed) {
    std::vector<MappedFile> files(1);
    NIHAO_TRY(files[0], MappedFile::open(path));
    NIHAO_TRY(Part first, parse(files[0].bytes(), path, types));
    NIHAO_TRY(const auto split, first.split(path));
    std::vector<Part> parts;
    if (split.count <= 1) {
      parts.push_back(std::move(first));
      return assemble(std::move(parts), {&path, 1}, std::move(files));
    }
    const auto name = GgufShardName::from(path);
    if (!name || name->count != split.count || name->number != split.number + 1) {
      return Error{ErrorCode::mismatch,
                   concat("the file says that it is shard ", split.number + 1, " of ", split.count,
                          ", and its name does not (…-00001-of-0000N.gguf)"),
                   path};
    }
    std::vector<std::string> paths;
    std::vector<MappedFile> shards;
    for (std::uint32_t i = 1; i <= split.count; ++i) {
      paths.push_back(name->path(i));
      if (i == name->number) {
        shards.push_back(std::move(files[0]));
        parts.push_back(std::move(first));  // NOLINT(bugprone-use-after-move): i passes its number once
        continue;
      }
      NIHAO_TRY(auto shard, MappedFile::open(paths.back()));
      NIHAO_TRY(auto part, parse(shard.bytes(), paths.back(), types));
      shards.push_back(std::move(shard));
      parts.push_back(std::move(part));
    }
    return assemble(std::move(parts), paths, std::move(shards));
  }

  /// Reads a file that the host holds in memory, at an address that is a multiple of 8, and keeps there while this or its
  /// tensors are used. Errors: as open(), and invalid_argument for the address.
  [[nodiscard]] static Expected<Gguf> from_bytes(std::span<const std::byte> bytes) {
    return from_bytes(std::span<const std::span<const std::byte>>(&bytes, 1));
  }

  /// The same for all shards of a model, in order.
  [[nodiscard]] static Expected<Gguf> from_bytes(std::span<const std::span<const std::byte>> shards) {
    if (shards.empty()) return Error{ErrorCode::invalid_argument, "no shard was given"};
    std::vector<Part> parts;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < shards.size(); ++i) {
      names.push_back(shards.size() == 1 ? "memory" : concat("shard ", i + 1));
      if (reinterpret_cast<std::uintptr_t>(shards[i].data()) % 8 != 0) {
        return Error{ErrorCode::invalid_argument, "the bytes must start at a multiple of 8", names.back()};
      }
      NIHAO_TRY(auto part, parse(shards[i], names.back(), GgufTypes::computed));
      parts.push_back(std::move(part));
    }
    return assemble(std::move(parts), names, {});
  }

  /// All metadata, in the file's order.
  [[nodiscard]] std::span<const Entry> metadata() const noexcept { return head_.entries; }

  /// The entry of that key, or null.
  [[nodiscard]] const Entry* find(std::string_view key) const noexcept { return head_.find(key); }
  [[nodiscard]] bool has(std::string_view key) const noexcept { return find(key) != nullptr; }

  /// A value as bool, an integer type, float, double or std::string_view, converted where it fits (GgufEntry::as).
  /// Errors: missing, mismatch; both name the key.
  template <class T>
  [[nodiscard]] Expected<T> get(std::string_view key) const {
    static_assert(GgufScalar<T>, "Gguf::get reads bool, integers, float, double and std::string_view.");
    NIHAO_TRY(const Entry* entry, require(key));
    return entry->template as<T>();
  }

  /// The same, or `fallback` where the key is not there. A key of the wrong type is an error all the same.
  template <class T>
  [[nodiscard]] Expected<T> get_or(std::string_view key, T fallback) const {
    static_assert(GgufScalar<T>,
                  "Gguf::get_or reads bool, integers, float, double and std::string_view (get_or<std::string_view>(key, \"\")).");
    const Entry* entry = find(key);
    return entry == nullptr ? Expected<T>(fallback) : entry->template as<T>();
  }

  /// An array of strings, as views of the file. Errors: missing, mismatch.
  [[nodiscard]] Expected<std::vector<std::string_view>> strings(std::string_view key) const {
    NIHAO_TRY(const Entry* entry, require(key));
    return entry->strings();
  }

  /// An array of numbers or of bools, each converted where it fits. Errors: missing, mismatch.
  template <class T>
  [[nodiscard]] Expected<std::vector<T>> array(std::string_view key) const {
    static_assert(GgufScalar<T> && !std::same_as<T, std::string_view>,
                  "Gguf::array reads bools and numbers; strings() reads strings.");
    NIHAO_TRY(const Entry* entry, require(key));
    return entry->template items<T>();
  }

  /// general.architecture: "llama". Errors: missing, mismatch.
  [[nodiscard]] Expected<std::string_view> architecture() const { return get<std::string_view>("general.architecture"); }

  /// The format's version, 2 or 3 (the two are read alike), and the tensors' alignment in bytes, of the first shard.
  [[nodiscard]] std::uint32_t version() const noexcept { return head_.version; }
  [[nodiscard]] std::uint32_t alignment() const noexcept { return head_.alignment; }

  /// The tensors, of all shards.
  [[nodiscard]] const TensorFile& tensors() const noexcept { return tensors_; }
  /// Those of types that the library lacks, in file order; only of a file opened with GgufTypes::listed.
  [[nodiscard]] std::span<const GgufOtherTensor> other_tensors() const noexcept { return others_; }
  /// The tensors with the mappings; what this object viewed lives on with them.
  [[nodiscard]] TensorFile take_tensors() && noexcept { return std::move(tensors_); }

 private:
  // The deepest nesting of arrays that is read. No known key nests at all.
  static constexpr int max_array_depth = 4;
  // A key's longest length, by the specification.
  static constexpr std::uint64_t max_key_bytes = 65535;

  /// What split.no and split.count say; 0 of 1 in a file that is whole.
  struct Split {
    std::uint32_t number, count;
  };

  /// One file, parsed.
  struct Part {
    std::uint32_t version = 0, alignment = 32;
    std::vector<Entry> entries;
    std::vector<std::uint32_t> by_key;  // entries in the order of their keys
    std::vector<TensorInfo> tensors;    // one that the library lacks has F32 for its format until assemble() takes it out
    std::vector<std::uint32_t> types;   // ggml's number for the type of each

    [[nodiscard]] const Entry* find(std::string_view key) const noexcept {
      const auto at = std::lower_bound(by_key.begin(), by_key.end(), key, [&](auto i, auto k) { return entries[i].key < k; });
      return at != by_key.end() && entries[*at].key == key ? &entries[*at] : nullptr;
    }
    [[nodiscard]] Expected<Split> split(std::string_view file) const {
      Split out{0, 1};
      if (const Entry* count = find("split.count")) { NIHAO_TRY(out.count, in(file, count->as<std::uint16_t>())); }
      if (const Entry* number = find("split.no")) { NIHAO_TRY(out.number, in(file, number->as<std::uint16_t>())); }
      if (out.number >= std::max(out.count, 1u)) {
        return Error{ErrorCode::malformed, concat("split.no is ", out.number, ", of ", out.count, " shards"), std::string(file)};
      }
      return out;
    }
  };

  template <class T>
  static Expected<T> in(std::string_view place, Expected<T> result) {
    if (!result) return std::move(result).error().in(place);
    return result;
  }

  [[nodiscard]] Expected<const Entry*> require(std::string_view key) const {
    if (const Entry* entry = find(key)) return entry;
    return Error{ErrorCode::missing, "the file does not have it", concat("metadata key \"", printable(key), "\"")};
  }

  static Expected<Part> parse(std::span<const std::byte> bytes, std::string_view file, GgufTypes types) {
    return in(file, parse_part(bytes, types));
  }

  static Expected<Part> parse_part(std::span<const std::byte> bytes, GgufTypes types) {
    ByteReader reader(bytes);
    Part part;
    NIHAO_TRY(const auto magic, reader.text(4, "the magic number"));
    if (magic != "GGUF") return Error{ErrorCode::malformed, concat("not a GGUF file: it starts with \"", printable(magic), "\"")};
    NIHAO_TRY(part.version, reader.read<std::uint32_t>("the version"));
    if ((part.version & 0xffffu) == 0 && part.version != 0) return Error{ErrorCode::unsupported, "a big-endian GGUF file"};
    if (part.version != 2 && part.version != 3) {
      return Error{ErrorCode::unsupported, concat("GGUF version ", part.version, "; 2 and 3 are read")};
    }
    NIHAO_TRY(const auto tensor_count, reader.read<std::uint64_t>("the number of tensors"));
    NIHAO_TRY(const auto entry_count, reader.read<std::uint64_t>("the number of metadata entries"));
    // The least a tensor and an entry take: a name of one byte, rank 1, type and offset; a key of one byte, a type, one byte.
    NIHAO_CHECK(reader.expect_items(tensor_count, 8 + 1 + 4 + 8 + 4 + 8, "the list of tensors"));
    NIHAO_CHECK(reader.expect_items(entry_count, 8 + 1 + 4 + 1, "the metadata"));

    std::uint64_t items_left = gguf_max_items;
    for (std::uint64_t i = 0; i < entry_count; ++i) {
      NIHAO_TRY(auto entry, read_entry(reader, items_left));
      part.entries.push_back(entry);
    }
    NIHAO_TRY(part.by_key, sorted(part.entries, &Entry::key, "metadata key"));
    if (const Entry* alignment = part.find("general.alignment")) {
      NIHAO_TRY(part.alignment, alignment->as<std::uint32_t>());
      if (part.alignment < 8 || (part.alignment & (part.alignment - 1)) != 0) {
        return Error{ErrorCode::malformed, concat("general.alignment is ", part.alignment, ", not a power of two from 8")};
      }
    }
    for (std::uint64_t i = 0; i < tensor_count; ++i) {
      std::uint32_t type = 0;
      NIHAO_TRY(auto tensor, read_tensor(reader, types, type));
      part.tensors.push_back(tensor);
      part.types.push_back(type);
    }
    NIHAO_CHECK(sorted(part.tensors, &TensorInfo::name, "tensor"));
    if (tensor_count != 0) {
      NIHAO_CHECK(reader.align(part.alignment));
      NIHAO_CHECK(place_tensors(part, bytes, reader.offset()));
    }
    return part;
  }

  /// A list's indices in the order of its names. Error: malformed for a name that is there twice.
  template <class Item>
  static Expected<std::vector<std::uint32_t>> sorted(const std::vector<Item>& items, std::string_view Item::* name,
                                                     std::string_view what) {
    if (items.size() > UINT32_MAX) return Error{ErrorCode::limit, concat(items.size(), " times a ", what)};
    std::vector<std::uint32_t> order(items.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](auto a, auto b) { return items[a].*name < items[b].*name; });
    for (std::size_t i = 1; i < order.size(); ++i) {
      if (items[order[i]].*name != items[order[i - 1]].*name) continue;
      return Error{ErrorCode::malformed, "it is there twice", concat(what, " \"", printable(items[order[i]].*name), "\"")};
    }
    return order;
  }

  static Expected<std::string_view> read_name(ByteReader& reader, std::string_view what) {
    const std::size_t at = reader.offset();
    NIHAO_TRY(const auto size, reader.read<std::uint64_t>(what));
    if (size == 0) return Error{ErrorCode::malformed, concat(what, " is empty"), concat("byte ", at)};
    if (size > max_key_bytes && size <= reader.left()) {
      return Error{ErrorCode::malformed, concat(what, " has ", size, " bytes, the limit is ", max_key_bytes),
                   concat("byte ", at)};
    }
    return reader.text(size, what);
  }

  static Expected<GgufType> read_type(ByteReader& reader) {
    const std::size_t at = reader.offset();
    NIHAO_TRY(const auto type, reader.read<std::uint32_t>("a value's type"));
    if (type >= gguf_type_count) return Error{ErrorCode::malformed, concat("unknown metadata type ", type), concat("byte ", at)};
    return static_cast<GgufType>(type);
  }

  static Expected<Entry> read_entry(ByteReader& reader, std::uint64_t& items_left) {
    NIHAO_TRY(const auto key, read_name(reader, "a metadata key"));
    return in(concat("metadata key \"", printable(key), "\""), read_value(reader, key, items_left));
  }

  static Expected<Entry> read_value(ByteReader& reader, std::string_view key, std::uint64_t& items_left) {
    NIHAO_TRY(const GgufType type, read_type(reader));
    Entry entry{key, type, type, 1, {}, 0};
    if (type == GgufType::array) {
      NIHAO_TRY(entry.item_type, read_type(reader));
      NIHAO_TRY(entry.count, reader.read<std::uint64_t>("the array's length"));
    }
    if (type == GgufType::string) {
      NIHAO_TRY(const auto size, reader.read<std::uint64_t>("the string's length"));
      entry.offset = reader.offset();
      NIHAO_TRY(entry.bytes, reader.bytes(size, "the string"));
      return entry;
    }
    entry.offset = reader.offset();
    ByteReader start = reader;
    NIHAO_CHECK(skip_items(reader, entry.item_type, entry.count, 1, items_left));
    NIHAO_TRY(entry.bytes, start.bytes(reader.offset() - entry.offset, "the value"));
    return entry;
  }

  /// Moves over `count` values of one type, checking all of them. A count is first held against the bytes left.
  static Expected<void> skip_items(ByteReader& reader, GgufType type, std::uint64_t count, int depth, std::uint64_t& items_left) {
    const std::size_t size = gguf_type_size(type);
    NIHAO_CHECK(reader.expect_items(count, size != 0 ? size : type == GgufType::string ? 8 : 4 + 8, "the value"));
    if (count > items_left) {
      return Error{ErrorCode::limit, concat("the file's arrays have more than ", gguf_max_items, " items"),
                   concat("byte ", reader.offset())};
    }
    items_left -= count;
    if (size != 0) {
      const std::size_t at = reader.offset();
      NIHAO_TRY(const auto bytes, reader.bytes(count * size, "the value"));
      if (type != GgufType::boolean) return {};
      const auto wrong = std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte{1}; });
      if (wrong == bytes.end()) return {};
      const auto place = at + static_cast<std::size_t>(wrong - bytes.begin());
      return Error{ErrorCode::malformed, "a bool is neither 0 nor 1", concat("byte ", place)};
    }
    if (type == GgufType::string) {
      for (std::uint64_t i = 0; i < count; ++i) {
        NIHAO_TRY(const auto length, reader.read<std::uint64_t>("a string's length"));
        NIHAO_CHECK(reader.bytes(length, "a string"));
      }
      return {};
    }
    if (depth >= max_array_depth) {
      return Error{ErrorCode::limit, concat("arrays nested deeper than ", max_array_depth), concat("byte ", reader.offset())};
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      NIHAO_TRY(const GgufType item_type, read_type(reader));
      NIHAO_TRY(const auto items, reader.read<std::uint64_t>("an array's length"));
      NIHAO_CHECK(skip_items(reader, item_type, items, depth + 1, items_left));
    }
    return {};
  }

  static Expected<TensorInfo> read_tensor(ByteReader& reader, GgufTypes types, std::uint32_t& type) {
    NIHAO_TRY(const auto name, read_name(reader, "a tensor's name"));
    return in(concat("tensor \"", printable(name), "\""), read_tensor_info(reader, name, types, type));
  }

  /// A tensor's line, its offset still counted from the start of the data, its bytes not set.
  static Expected<TensorInfo> read_tensor_info(ByteReader& reader, std::string_view name, GgufTypes types, std::uint32_t& type) {
    NIHAO_TRY(const auto rank, reader.read<std::uint32_t>("the rank"));
    if (rank < 1 || rank > 4) return Error{ErrorCode::malformed, concat("rank ", rank, ", not 1 to 4")};
    TensorInfo tensor{name, FormatId::F32, static_cast<std::uint8_t>(rank), {1, 1, 1, 1}, {}, 0, 0};
    std::uint64_t elements = 1;
    for (std::size_t i = 0; i < rank; ++i) {
      std::uint64_t& size = tensor.shape[rank - 1 - i];  // the file has the innermost axis first
      NIHAO_TRY(size, reader.read<std::uint64_t>("the shape"));
      const auto product = checked_mul(elements, size);
      if (size == 0) return Error{ErrorCode::malformed, concat("axis ", rank - 1 - i, " has size 0")};
      if (!product) return Error{ErrorCode::malformed, "the number of elements does not fit in 64 bits"};
      elements = *product;
    }
    NIHAO_TRY(type, reader.read<std::uint32_t>("the type"));
    const auto info = ggml_type_info(type);
    if (!info) return Error{ErrorCode::unsupported, concat("unknown tensor type ", type)};
    const auto format = format_of_ggml_type(type);
    if (!format && (types == GgufTypes::computed || info->block_bytes == 0))
      return Error{ErrorCode::unsupported, concat("tensors of type ", info->name, " are not supported")};
    tensor.format = format.value_or(FormatId::F32);
    NIHAO_TRY(tensor.offset, reader.read<std::uint64_t>("the offset"));
    return tensor;
  }

  /// Gives every tensor its bytes: whole blocks, aligned, inside the file, and nobody else's.
  static Expected<void> place_tensors(Part& part, std::span<const std::byte> bytes, std::size_t data) {
    std::vector<const TensorInfo*> order;
    for (std::size_t i = 0; i < part.tensors.size(); ++i) {
      TensorInfo& tensor = part.tensors[i];
      const FormatInfo format = *ggml_type_info(part.types[i]);
      NIHAO_CHECK(in(concat("tensor \"", printable(tensor.name), "\""), place(tensor, format, part.alignment, bytes, data)));
      order.push_back(&tensor);
    }
    std::sort(order.begin(), order.end(), [](auto a, auto b) { return a->offset < b->offset; });
    for (std::size_t i = 1; i < order.size(); ++i) {
      if (order[i - 1]->offset + order[i - 1]->bytes.size() <= order[i]->offset) continue;
      return Error{ErrorCode::malformed, concat("its bytes overlap those of \"", printable(order[i - 1]->name), "\""),
                   concat("tensor \"", printable(order[i]->name), "\"")};
    }
    return {};
  }

  static Expected<void> place(TensorInfo& tensor, const FormatInfo& format, std::uint32_t alignment,
                              std::span<const std::byte> bytes, std::size_t data) {
    if (tensor.cols() % format.block_size != 0) {
      return Error{ErrorCode::malformed, concat("rows of ", tensor.cols(), " values are not whole blocks of ", format.name, " (",
                                                format.block_size, " values)")};
    }
    if (tensor.offset % alignment != 0) {
      return Error{ErrorCode::malformed, concat("offset ", tensor.offset, " is not a multiple of the alignment ", alignment)};
    }
    const auto size = checked_mul<std::uint64_t>(tensor.elements() / format.block_size, format.block_bytes);
    const std::uint64_t left = bytes.size() - data;
    if (!size || tensor.offset > left || *size > left - tensor.offset) {
      return Error{ErrorCode::truncated, concat("its bytes (", size.value_or(UINT64_MAX), " from ", tensor.offset,
                                                " of the data) end after the file's (", left, ")")};
    }
    tensor.offset += data;
    tensor.bytes = bytes.subspan(static_cast<std::size_t>(tensor.offset), static_cast<std::size_t>(*size));
    return {};
  }

  static Expected<Gguf> assemble(std::vector<Part> parts, std::span<const std::string> names, std::vector<MappedFile> files) {
    std::vector<TensorInfo> tensors;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      NIHAO_TRY(const auto split, parts[i].split(names[i]));
      if (std::max(split.count, 1u) != parts.size() || split.number != i) {
        return Error{ErrorCode::mismatch,
                     concat("the file says that it is shard ", split.number + 1, " of ", std::max(split.count, 1u),
                            ", and it is read as ", i + 1, " of ", parts.size()),
                     names[i]};
      }
      for (TensorInfo& tensor : parts[i].tensors) {
        tensor.file = static_cast<std::uint32_t>(i);
        tensors.push_back(tensor);
      }
    }
    if (parts.size() > 1) NIHAO_CHECK(in(names[0], sorted(tensors, &TensorInfo::name, "tensor")));
    if (const Entry* total = parts[0].find("split.tensors.count"); total != nullptr && parts.size() > 1) {
      NIHAO_TRY(const auto count, in(names[0], total->as<std::uint64_t>()));
      if (count != tensors.size()) {
        return Error{ErrorCode::mismatch, concat("split.tensors.count is ", count, ", the shards hold ", tensors.size()),
                     names[0]};
      }
    }
    Gguf out;
    std::vector<TensorInfo> computed;
    std::size_t index = 0;
    for (const Part& part : parts) {
      for (const std::uint32_t type : part.types) {
        const TensorInfo& t = tensors[index];
        if (format_of_ggml_type(type)) computed.push_back(t);
        else out.others_.push_back({t.name, *ggml_type_info(type), t.rank, t.shape, t.bytes, t.offset, t.file, index});
        ++index;
      }
    }
    out.head_ = std::move(parts[0]);
    out.head_.tensors.clear();
    out.head_.types.clear();
    out.tensors_ = TensorFile(std::move(computed), std::move(files));
    return out;
  }

  Part head_;
  TensorFile tensors_;
  std::vector<GgufOtherTensor> others_;
};

}  // namespace nihao
