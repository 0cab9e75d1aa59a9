// Any bytes as a GGUF file: refused with an error, or read, and then every value and tensor of it can be used.
#include "nihao/files/gguf.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

using namespace nihao;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // An allocation of exactly these bytes, aligned as the reader asks: a read past the end is seen.
  const std::vector<std::byte> bytes(reinterpret_cast<const std::byte*>(data), reinterpret_cast<const std::byte*>(data) + size);
  const auto file = Gguf::from_bytes(bytes);
  if (!file) {
    if (file.error().message().empty()) std::abort();
    return 0;
  }
  for (const GgufEntry& entry : file->metadata()) {
    if (file->find(entry.key) != &entry || entry.describe().empty()) std::abort();
    static_cast<void>(entry.as<std::string_view>());
    static_cast<void>(entry.as<std::int8_t>());
    static_cast<void>(entry.as<std::uint64_t>());
    static_cast<void>(entry.as<float>());
    static_cast<void>(entry.items<float>());
    static_cast<void>(entry.items<std::uint32_t>());
    static_cast<void>(entry.items<bool>());
    if (const auto strings = entry.strings()) {
      std::size_t total = 0;
      for (const std::string_view s : *strings) total += s.size() + (s.empty() ? 0u : static_cast<unsigned char>(s.back()) & 1u);
      if (total > 2 * size) std::abort();
    }
  }
  for (const TensorInfo& tensor : file->tensors().tensors()) {
    const std::size_t cols = tensor.cols(), row = row_bytes(tensor.format, cols);
    if (file->tensors().find(tensor.name) != &tensor || tensor.bytes.size() != row * tensor.rows()) std::abort();
    std::vector<float> values(cols);
    dequantize_row(tensor.format, tensor.bytes.last(row), values);
  }
  return 0;
}
