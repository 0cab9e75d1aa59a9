// Adapters as PEFT writes them: a folder with adapter_config.json and adapter_model.safetensors.
#pragma once

#include "../files/json.hpp"
#include "../files/safetensors.hpp"
#include "adapter.hpp"
#include "hf_json.hpp"

namespace nihao {

/// Reads a folder of a LoRA adapter, plain or rank-stabilised. Errors: io, malformed, missing, mismatch, unsupported (another
/// kind of adapter, weights beside the low-rank ones); each names the file and the key.
[[nodiscard]] inline Expected<AdapterSource> adapter_from_hf(const std::string& folder) {
  const std::string config_file = concat(folder, "/adapter_config.json");
  NIHAO_TRY(const Json json, detail::read_config_json(config_file));
  AdapterSource source{};
  const auto read = [&]() -> Expected<void> {
    NIHAO_TRY(const auto kind, json_get<std::string_view>(json, "peft_type"));
    if (kind != "LORA")
      return Error{ErrorCode::unsupported, concat("it is \"", printable(kind), "\", and LORA here"), "peft_type"};
    NIHAO_TRY(source.alpha, json_get<double>(json, "lora_alpha"));
    NIHAO_TRY(source.rank_stabilised, json_get_or<bool>(json, "use_rslora", false));
    NIHAO_TRY(const auto bias, json_get_or<std::string_view>(json, "bias", "none"));
    if (bias != "none")
      return Error{ErrorCode::unsupported, concat("it is \"", printable(bias), "\", and \"none\" here"), "bias"};
    for (const std::string_view key : {"use_dora", "fan_in_fan_out", "alpha_pattern", "modules_to_save", "lora_bias"})
      if (const Json* value = json_find(json, key); value != nullptr && !detail::hf_is_off(*value))
        return Error{ErrorCode::unsupported, concat("adapters with ", key, " are not read here"), std::string(key)};
    return {};
  };
  if (auto done = read(); !done) return std::move(done).error().in(config_file);
  NIHAO_TRY(auto file, Safetensors::open(concat(folder, "/adapter_model.safetensors")));
  source.tensors = std::make_shared<const TensorFile>(std::move(file).take_tensors());
  source.style = NameStyle::hugging_face;
  return source;
}

}  // namespace nihao
