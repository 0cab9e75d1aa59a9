// Any bytes as a safetensors file: refused with an error, or read, and then every tensor of it can be used. The same bytes as
// JSON text, which both safetensors headers and indices are.
#include "nihao/files/safetensors.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>
#include <vector>

using namespace nihao;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<std::byte> bytes(reinterpret_cast<const std::byte*>(data), reinterpret_cast<const std::byte*>(data) + size);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (const auto json = parse_json(text, 16)) {
    const auto again = parse_json(json->dump(), 16);
    if (!again || *again != *json) std::abort();
    static_cast<void>(json_get<int>(*json, "a.0"));
  }

  const auto file = Safetensors::from_bytes(bytes);
  if (!file) {
    if (file.error().message().empty()) std::abort();
    return 0;
  }
  std::size_t total = 0;
  for (const SafetensorsEntry& entry : file->entries()) {
    if (file->find(entry.name) != &entry) std::abort();
    total += entry.bytes.size();
    static_cast<void>(file->values<double>(entry.name));
    static_cast<void>(file->values<std::int16_t>(entry.name));
    static_cast<void>(file->values<bool>(entry.name));
  }
  if (total > size) std::abort();
  for (const TensorInfo& tensor : file->tensors().tensors()) {
    if (file->tensors().find(tensor.name) != &tensor || tensor.rows() * tensor.cols() != tensor.elements()) std::abort();
    volatile std::byte last = tensor.bytes.back();
    static_cast<void>(last);
  }
  return 0;
}
