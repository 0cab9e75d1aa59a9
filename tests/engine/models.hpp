// The small models that the engine's tests run.
#pragma once

#include "nihao/files/gguf.hpp"
#include "nihao/models/load.hpp"
#include "support/data.hpp"

#include <cstring>
#include <optional>
#include <span>
#include <string>

namespace nihao::test {

/// A llama of one layer with a vocabulary of bytes, or nothing if the data is not there.
inline std::optional<AnyModel> tiny_model(int threads = 1, bool exact = false, const char* format = "F32") {
  const auto path = data(concat("golden/quant/gguf/", format, ".gguf"));
  if (!path) return std::nullopt;
  auto model = load(path->string(), {.cpu = {.threads = threads, .exact = exact}});
  REQUIRE_MESSAGE(model.has_value(), (model ? "" : model.error().message()));
  return *std::move(model);
}

/// A file's bytes in memory, at an address that Gguf::from_bytes takes, to be changed.
class FileBytes {
 public:
  explicit FileBytes(const std::filesystem::path& path) {
    const std::string text = read_text(path);
    size_ = text.size();
    words_.resize(size_ / 8 + 1);
    std::memcpy(words_.data(), text.data(), size_);
  }
  [[nodiscard]] std::span<std::byte> bytes() { return {reinterpret_cast<std::byte*>(words_.data()), size_}; }
  /// The bytes of a tensor of this GGUF file.
  [[nodiscard]] std::span<std::byte> tensor(std::string_view name) {
    const auto gguf = Gguf::from_bytes(bytes());
    REQUIRE(gguf.has_value());
    const TensorInfo* tensor = gguf->tensors().find(name);
    REQUIRE(tensor != nullptr);
    return bytes().subspan(static_cast<std::size_t>(tensor->offset), tensor->bytes.size());
  }

 private:
  std::vector<std::uint64_t> words_;
  std::size_t size_ = 0;
};

}  // namespace nihao::test
