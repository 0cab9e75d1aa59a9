// What load_hf() reads of a folder.
#pragma once

#include "../files/safetensors.hpp"
#include "hf_adapter.hpp"
#include "hf_config.hpp"
#include "hf_quantization.hpp"
#include "load_hf.hpp"

#include <cstring>

namespace nihao::detail {

/// Whether the file's tensors and what its config says of the head go together: transformers would make up a head that is not
/// there, and ignore one that a tied model has too.
[[nodiscard]] inline Expected<void> check_head(const TensorFile& tensors, bool tied) {
  const TensorInfo* head = tensors.find("lm_head.weight");
  const TensorInfo* embedding = tensors.find("model.embed_tokens.weight");
  if (!tied && head == nullptr)
    return Error{ErrorCode::missing, "the file has no such tensor, and the config does not tie the head to the embedding",
                 "tensor lm_head.weight"};
  if (tied && head != nullptr && embedding != nullptr &&
      (head->format != embedding->format || head->bytes.size() != embedding->bytes.size() ||
       std::memcmp(head->bytes.data(), embedding->bytes.data(), head->bytes.size()) != 0))
    return Error{ErrorCode::mismatch, "the config ties the head to the embedding, and the file has another",
                 "tensor lm_head.weight"};
  return {};
}

NIHAO_INLINE Expected<HfModel> read_hf(const std::string& folder, const LoadOptions& options) {
  const std::string config_file = concat(folder, "/config.json");
  NIHAO_TRY(const Json json, read_config_json(config_file));
  auto hf = config_from_hf(json);
  if (!hf) return std::move(hf).error().in(config_file);
  NIHAO_TRY(Cpu cpu, Cpu::create(options.cpu));
  NIHAO_TRY(auto file, Safetensors::open(folder));
  auto assembled = quantized_tensors(json, std::move(file));
  if (!assembled) return std::move(assembled).error().in(folder);
  const auto tensors = std::make_shared<const TensorFile>(*std::move(assembled));
  if (auto head = check_head(*tensors, hf->tied); !head) return std::move(head).error().in(folder);
  hf->config.mla.mode = options.mla;
  WeightSource weights{tensors, NameStyle::hugging_face, hf->norm_offset};
  for (const std::string& path : options.adapters) { NIHAO_TRY(weights.adapters.emplace_back(), adapter_from_hf(path)); }
  return HfModel{std::move(hf->config), std::move(weights), std::move(cpu)};
}

}  // namespace nihao::detail
