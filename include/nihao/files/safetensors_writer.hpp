// Writing a safetensors file.
#pragma once

#include "../base/checked.hpp"
#include "../base/error.hpp"
#include "../base/str.hpp"
#include "json.hpp"
#include "output_file.hpp"
#include "safetensors.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nihao {

/// A tensor to be written: `bytes` are dtype x shape in row-major order, little-endian.
struct SafetensorsTensor {
  std::string_view name;
  SafetensorsType type;
  std::vector<std::uint64_t> shape;  ///< outermost axis first
  std::span<const std::byte> bytes;
};

/// Writes `tensors` to `path`, whole or not at all: those of the largest elements first, so that all are aligned.
/// Errors: io, mismatch (bytes that do not fit the shape), invalid_argument (a name twice, "__metadata__", or not UTF-8).
[[nodiscard]] inline Expected<void> write_safetensors(const std::string& path, std::span<const SafetensorsTensor> tensors,
                                                      std::span<const std::pair<std::string, std::string>> metadata = {}) {
  Json header(Json::value_t::object);
  auto& members = *header.get_ptr<Json::object_t*>();
  if (!metadata.empty()) {
    Json strings(Json::value_t::object);
    for (const auto& [key, value] : metadata) strings.get_ptr<Json::object_t*>()->emplace(key, Json(value));
    members.emplace("__metadata__", std::move(strings));
  }
  std::vector<const SafetensorsTensor*> order;
  for (const SafetensorsTensor& tensor : tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](auto a, auto b) {
    const auto a_bits = safetensors_type_info(a->type).bits, b_bits = safetensors_type_info(b->type).bits;
    return a_bits != b_bits ? a_bits > b_bits : a < b;
  });
  std::uint64_t at = 0;
  for (const SafetensorsTensor* tensor : order) {
    const std::string place = concat("tensor \"", printable(tensor->name), "\"");
    const SafetensorsTypeInfo info = safetensors_type_info(tensor->type);
    std::optional<std::uint64_t> bits = info.bits;
    for (const std::uint64_t size : tensor->shape) bits = bits ? checked_mul(*bits, size) : bits;
    if (!bits || *bits % 8 != 0 || *bits / 8 != tensor->bytes.size()) {
      return Error{ErrorCode::mismatch, concat("the shape does not make ", tensor->bytes.size(), " bytes of ", info.name), place};
    }
    Json line(Json::value_t::object);
    auto& fields = *line.get_ptr<Json::object_t*>();
    fields.emplace("dtype", Json(std::string(info.name)));
    fields.emplace("shape", Json(tensor->shape));
    fields.emplace("data_offsets", Json(std::vector<std::uint64_t>{at, at + tensor->bytes.size()}));
    if (tensor->name == "__metadata__" || !members.emplace(std::string(tensor->name), std::move(line)).second)
      return Error{ErrorCode::invalid_argument, "the name is taken", place};
    at += tensor->bytes.size();
  }
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::ignore);
  if (const auto again = parse_json(text); !again || *again != header) {
    return Error{ErrorCode::invalid_argument, "a name or a metadata string is not UTF-8", path};
  }
  text.resize(round_up<std::size_t>(text.size(), 8), ' ');

  NIHAO_TRY(auto file, OutputFile::create(path));
  const std::uint64_t header_size = text.size();
  NIHAO_CHECK(file.write(std::as_bytes(std::span(&header_size, 1))));
  NIHAO_CHECK(file.write(std::as_bytes(std::span(text))));
  for (const SafetensorsTensor* tensor : order) NIHAO_CHECK(file.write(tensor->bytes));
  return std::move(file).commit();
}

}  // namespace nihao
