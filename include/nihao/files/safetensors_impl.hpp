// Safetensors, defined.
#pragma once

#include "json.hpp"
#include "safetensors.hpp"

#include <tuple>

namespace nihao {

namespace detail {

// The specification's limit for the header; an index is held to it too.
inline constexpr std::uint64_t max_safetensors_header = 100'000'000;
inline constexpr std::size_t max_safetensors_rank = 16;
inline constexpr std::size_t max_safetensors_shards = 100'000;

template <class T>
[[nodiscard]] Expected<T> in(std::string_view place, Expected<T> result) {
  if (!result) return std::move(result).error().in(place);
  return result;
}

[[nodiscard]] inline Expected<std::vector<std::pair<std::string, std::string>>> read_safetensors_metadata(const Json& value) {
  const auto* members = value.get_ptr<const Json::object_t*>();
  std::vector<std::pair<std::string, std::string>> metadata;
  if (members == nullptr) return Error{ErrorCode::malformed, "not an object"};
  for (const auto& [key, text] : *members) {
    NIHAO_TRY(auto string, json_as<std::string>(text, printable(key)));
    metadata.emplace_back(key, std::move(string));
  }
  return metadata;
}

/// One tensor's line, {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}; the offset still counts from the data.
[[nodiscard]] inline Expected<SafetensorsEntry> read_safetensors_entry(const Json& json, std::span<const std::byte> data) {
  NIHAO_TRY(const auto dtype, json_get<std::string_view>(json, "dtype"));
  const auto* info =
      std::find_if(std::begin(safetensors_types), std::end(safetensors_types), [&](auto& t) { return t.name == dtype; });
  if (info == std::end(safetensors_types)) return Error{ErrorCode::unsupported, concat("unknown dtype ", printable(dtype))};
  SafetensorsEntry entry{};
  entry.type = static_cast<SafetensorsType>(info - safetensors_types);
  NIHAO_TRY(entry.shape, json_array<std::uint64_t>(json, "shape"));
  if (entry.shape.size() > max_safetensors_rank)
    return Error{ErrorCode::limit, concat("rank ", entry.shape.size(), ", the limit is ", max_safetensors_rank)};
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
    return Error{ErrorCode::malformed, concat("dtype and shape make ", *bits / 8, " bytes, data_offsets ", range[1] - range[0])};
  }
  entry.offset = range[0];
  entry.bytes = data.subspan(static_cast<std::size_t>(range[0]), static_cast<std::size_t>(range[1] - range[0]));
  return entry;
}

/// Tensors follow each other without a gap and without overlap, and nothing comes after: no byte has two meanings or none.
[[nodiscard]] inline Expected<void> check_safetensors_layout(std::span<SafetensorsEntry> entries, std::uint64_t data,
                                                             std::uint64_t end) {
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

[[nodiscard]] inline std::optional<FormatId> weight_format(SafetensorsType type) noexcept {
  switch (type) {
    case SafetensorsType::F32: return FormatId::F32;
    case SafetensorsType::F16: return FormatId::F16;
    case SafetensorsType::BF16: return FormatId::BF16;
    default: return std::nullopt;
  }
}

}  // namespace detail

NIHAO_INLINE Expected<Safetensors> Safetensors::open(const std::string& path) {
  constexpr std::string_view index = "/model.safetensors.index.json", single = "/model.safetensors";
  if (path.ends_with(".index.json")) return open_index(path);
  auto file = MappedFile::open(path);
  if (file) return open_single(path, std::move(*file));
  auto in_folder = MappedFile::open(concat(path, single));
  if (in_folder) return open_single(concat(path, single), std::move(*in_folder));
  if (MappedFile::open(concat(path, index))) return open_index(concat(path, index));
  return Error{ErrorCode::io,
               concat("neither a file (", file.error().what, ") nor a folder with model.safetensors or ", index.substr(1)), path};
}

NIHAO_INLINE Expected<Safetensors> Safetensors::from_bytes(std::span<const std::byte> bytes) {
  Safetensors out;
  NIHAO_CHECK(detail::in("memory", out.add_file(bytes, 0)));
  NIHAO_CHECK(detail::in("memory", out.finish({})));
  return out;
}

NIHAO_INLINE Expected<Safetensors> Safetensors::open_single(const std::string& path, MappedFile file) {
  Safetensors out;
  NIHAO_CHECK(detail::in(path, out.add_file(file.bytes(), 0)));
  std::vector<MappedFile> files;
  files.push_back(std::move(file));
  NIHAO_CHECK(detail::in(path, out.finish(std::move(files))));
  return out;
}

// The index maps every tensor to a file beside it: {"weight_map": {"lm_head.weight": "model-00002-of-00002.safetensors"}}.
NIHAO_INLINE Expected<Safetensors> Safetensors::open_index(const std::string& path) {
  NIHAO_TRY(const MappedFile index, MappedFile::open(path));
  if (index.bytes().size() > detail::max_safetensors_header) {
    return Error{ErrorCode::limit,
                 concat("an index of ", index.bytes().size(), " bytes, the limit is ", detail::max_safetensors_header), path};
  }
  const std::string_view text(reinterpret_cast<const char*>(index.bytes().data()), index.bytes().size());
  NIHAO_TRY(const Json json, detail::in(path, parse_json(text, 8)));
  const Json* map = json_find(json, "weight_map");
  const auto* members = map == nullptr ? nullptr : map->get_ptr<const Json::object_t*>();
  if (members == nullptr) return Error{ErrorCode::malformed, "it has no object \"weight_map\"", path};
  std::vector<std::string> names;
  for (const auto& [tensor, file] : *members) {
    NIHAO_TRY(const auto name, detail::in(path, json_as<std::string_view>(file, concat("weight_map.", printable(tensor)))));
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
  if (names.size() > detail::max_safetensors_shards)
    return Error{ErrorCode::limit, concat(names.size(), " shards, the limit is ", detail::max_safetensors_shards), path};

  const auto slash = path.rfind('/');
  const std::string folder = slash == path.npos ? "" : path.substr(0, slash + 1);
  Safetensors out;
  std::vector<MappedFile> files;
  for (const std::string& name : names) {
    NIHAO_TRY(auto file, MappedFile::open(folder + name));
    NIHAO_CHECK(detail::in(folder + name, out.add_file(file.bytes(), static_cast<std::uint32_t>(files.size()))));
    files.push_back(std::move(file));
  }
  NIHAO_CHECK(detail::in(path, out.finish(std::move(files))));
  for (const auto& [tensor, file] : *members) {
    const SafetensorsEntry* entry = out.find(tensor);
    if (entry != nullptr && names[entry->file] == *file.template get_ptr<const std::string*>()) continue;
    return Error{ErrorCode::mismatch,
                 concat("the index says that it is in ", *file.template get_ptr<const std::string*>(), ", and it is not"),
                 concat(path, ": tensor \"", printable(tensor), "\"")};
  }
  return out;
}

// Reads one file's header and appends its tensors.
NIHAO_INLINE Expected<void> Safetensors::add_file(std::span<const std::byte> bytes, std::uint32_t file) {
  ByteReader reader(bytes);
  NIHAO_TRY(const auto header_size, reader.read<std::uint64_t>("the header's length"));
  if (header_size > detail::max_safetensors_header) {
    return Error{ErrorCode::malformed,
                 concat("the header's length is ", header_size, ", the limit is ", detail::max_safetensors_header), "byte 0"};
  }
  NIHAO_TRY(const auto text, reader.text(header_size, "the header"));
  if (!text.starts_with('{')) return Error{ErrorCode::malformed, "the header does not start with {", "byte 8"};
  NIHAO_TRY(const Json header, detail::in("header", parse_json(text, 8)));
  const auto* members = header.get_ptr<const Json::object_t*>();
  if (members == nullptr) return Error{ErrorCode::malformed, "the header is not an object"};
  const auto data = bytes.subspan(reader.offset());
  const std::size_t first = entries_.size();
  for (const auto& [name, value] : *members) {
    if (name == "__metadata__") {
      NIHAO_TRY(auto metadata, detail::in("__metadata__", detail::read_safetensors_metadata(value)));
      if (file == 0) metadata_ = std::move(metadata);
    } else {
      NIHAO_TRY(auto entry, detail::in(concat("tensor \"", printable(name), "\""), detail::read_safetensors_entry(value, data)));
      entry.name = name;
      entry.offset += reader.offset();
      entry.file = file;
      entries_.push_back(std::move(entry));
    }
  }
  return detail::check_safetensors_layout(std::span(entries_).subspan(first), reader.offset(), bytes.size());
}

// Builds the index by name and the TensorFile.
NIHAO_INLINE Expected<void> Safetensors::finish(std::vector<MappedFile> files) {
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
    const auto format = detail::weight_format(entry.type);
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

}  // namespace nihao
