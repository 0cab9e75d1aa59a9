// Where adapters come from: GGUF files as llama.cpp's convert_lora_to_gguf.py writes them.
#pragma once

#include "../files/gguf.hpp"
#include "adapter.hpp"

namespace nihao {

/// Reads a GGUF adapter. Errors: those of Gguf::open, missing, mismatch, unsupported; each names the file and the key.
[[nodiscard]] inline Expected<AdapterSource> adapter_from_gguf(const std::string& path) {
  const auto read = [&]() -> Expected<AdapterSource> {
    NIHAO_TRY(Gguf opened, Gguf::open(path));
    const auto file = std::make_shared<const Gguf>(std::move(opened));
    for (const auto& [key, wanted] : {std::pair("general.type", "adapter"), std::pair("adapter.type", "lora")}) {
      NIHAO_TRY(const auto stated, file->get<std::string_view>(key));
      if (stated != wanted)
        return Error{ErrorCode::unsupported, concat("it is \"", printable(stated), "\", and an adapter has \"", wanted, "\""),
                     key};
    }
    NIHAO_TRY(const auto alpha, file->get<double>("adapter.lora.alpha"));
    return AdapterSource{std::shared_ptr<const TensorFile>(file, &file->tensors()), NameStyle::gguf, alpha};
  };
  auto source = read();
  if (!source && source.error().where.find(path) == std::string::npos) return std::move(source).error().in(path);
  return source;
}

}  // namespace nihao
