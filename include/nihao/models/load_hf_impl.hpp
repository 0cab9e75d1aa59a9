// What load_hf() reads of a folder.
#pragma once

#include "../files/safetensors.hpp"
#include "../text/tokenizer_json.hpp"
#include "hf_adapter.hpp"
#include "hf_config.hpp"
#include "hf_quantization.hpp"
#include "load_hf.hpp"

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

NIHAO_INLINE Expected<HfModel> read_hf(const std::string& folder, const LoadOptions& options) {
  const std::string config_file = concat(folder, "/config.json");
  NIHAO_TRY(const Json json, read_config_json(config_file));
  auto hf = config_from_hf(json);
  if (!hf) return std::move(hf).error().in(config_file);
  NIHAO_TRY(Cpu cpu, Cpu::create(options.cpu));
  NIHAO_TRY(auto file, Safetensors::open(folder));
  auto assembled = quantized_tensors(json, std::move(file));
  if (!assembled) return std::move(assembled).error().in(folder);
  if (!hf->prefix.empty()) *assembled = std::move(*assembled).only(hf->prefix);
  const auto tensors = std::make_shared<const TensorFile>(*std::move(assembled));
  if (auto head = check_head(*tensors, hf->tied); !head) return std::move(head).error().in(folder);
  hf->config.mla.mode = options.mla;
  WeightSource weights{tensors, NameStyle::hugging_face, hf->norm_offset};
  for (const std::string& path : options.adapters) { NIHAO_TRY(weights.adapters.emplace_back(), adapter_from_hf(path)); }
  return HfModel{std::move(hf->config), std::move(weights), std::move(cpu)};
}

/// The template that a tokenizer_config.json has, or of several the one named "default"; empty where it has none.
[[nodiscard]] inline std::string_view config_template(const Json& config) {
  const Json* value = json_find(config, "chat_template");
  if (value != nullptr && value->is_array())
    for (const Json& named : *value)
      if (const Json* name = json_find(named, "name"); name != nullptr && *name == "default")
        value = json_find(named, "template");
  return value != nullptr && value->is_string() ? std::string_view(value->get_ref<const std::string&>()) : std::string_view();
}

}  // namespace detail

NIHAO_INLINE Expected<AnyModel::Text> text_from_folder(const std::string& folder) {
  AnyModel::Text text;
  text.tokenizer = tokenizer_from_folder(folder);
  if (!text.tokenizer) {
    const ErrorCode code = text.tokenizer.error().code;
    if (code != ErrorCode::io && code != ErrorCode::unsupported) return std::move(text.tokenizer).error();
  }
  if (const auto file = MappedFile::open(concat(folder, "/chat_template.jinja"))) {
    text.chat_template = ChatTemplate::parse({reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()});
    return text;
  }
  auto config = detail::read_config_json(concat(folder, "/tokenizer_config.json"));
  if (!config && config.error().code != ErrorCode::io) return std::move(config).error();
  const std::string_view source = config ? detail::config_template(*config) : std::string_view();
  if (!source.empty()) text.chat_template = ChatTemplate::parse(source);
  return text;
}

}  // namespace nihao
