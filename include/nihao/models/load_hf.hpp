// nihao::load_hf: from a Hugging Face folder (config.json and safetensors) to a model. Apart from models/load.hpp because it
// reads JSON: link nihao::json.
#pragma once

#include "../files/safetensors.hpp"
#include "hf_adapter.hpp"
#include "hf_config.hpp"
#include "hf_quantization.hpp"
#include "load_family.hpp"

#include <cstring>

namespace nihao {

namespace detail {

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

}  // namespace detail

/// Loads the folder of a checkpoint as it is on the hub: config.json, and model.safetensors or its index and shards. M: a decoder
/// type such as Llama<...>, whose sizes and formats the folder must meet; or, by default, whatever architecture it has. The model
/// has no tokenizer and no chat template. Errors: io, truncated, malformed, unsupported, missing, mismatch, limit, out_of_memory,
/// cancelled; each names the file and the place.
template <class M = AnyModel>
[[nodiscard]] Expected<M> load_hf(const std::string& folder, const LoadOptions& options = {}) {
  const std::string config_file = concat(folder, "/config.json");
  NIHAO_TRY(const Json json, detail::read_config_json(config_file));
  auto hf = config_from_hf(json);
  if (!hf) return std::move(hf).error().in(config_file);
  NIHAO_TRY(const Cpu cpu, Cpu::create(options.cpu));
  NIHAO_TRY(auto file, Safetensors::open(folder));
  auto assembled = quantized_tensors(json, std::move(file));
  if (!assembled) return std::move(assembled).error().in(folder);
  const auto tensors = std::make_shared<const TensorFile>(*std::move(assembled));
  if (auto head = detail::check_head(*tensors, hf->tied); !head) return std::move(head).error().in(folder);
  hf->config.mla.mode = options.mla;
  WeightSource source{tensors, NameStyle::hugging_face, hf->norm_offset};
  for (const std::string& path : options.adapters) { NIHAO_TRY(source.adapters.emplace_back(), adapter_from_hf(path)); }
  auto model = [&]() -> Expected<M> {
    if constexpr (std::is_same_v<M, AnyModel>)
      return load_family<Cpu>(std::move(hf->config), std::move(source), cpu, options.hooks, {}, "model_type");
    else return M::load(std::move(hf->config), std::move(source), cpu, options.hooks);
  }();
  if (!model) return std::move(model).error().in(folder);
  return model;
}

}  // namespace nihao
