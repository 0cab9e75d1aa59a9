// From the tensors of a quantized Hugging Face checkpoint to those of a model: reads quantization_config, and puts codes, scales
// and zero points together as matrices in a format of the registry. What each method's file looks like: docs/formats.md.
//
// A matrix that the file has in parts is quantized, one that it has as floats is not, whatever the configuration's lists of
// modules say (modules_to_not_convert, ignore, ...): they are there for readers that cannot look. Activations are not rounded as
// a checkpoint asks (input_scale and its like are not read): the exact mode multiplies with floats, the fast mode as for every
// format.
#pragma once

#include "hf_quantized/bitsandbytes.hpp"
#include "hf_quantized/compressed_tensors.hpp"
#include "hf_quantized/hqq.hpp"
#include "hf_quantized/methods.hpp"

namespace nihao {

namespace detail {

struct QuantizationMethod {
  std::string_view name;
  Expected<void> (*assemble)(Assembler&);
};
inline constexpr QuantizationMethod quantization_methods[] = {
    {"awq", assemble_awq},           {"gptq", assemble_gptq},
    {"fp8", assemble_fp8},           {"fbgemm_fp8", assemble_fp8},
    {"modelopt", assemble_modelopt}, {"compressed-tensors", assemble_compressed},
    {"hqq", assemble_hqq},           {"bitsandbytes", assemble_bitsandbytes},
    {"mxfp4", assemble_mxfp4}};

}  // namespace detail

/// The tensors of a checkpoint with this config.json: as they are, or, if it has a quantization_config, with the matrices that it
/// speaks of. Errors: missing, mismatch, malformed, unsupported; each names the key or the tensor.
[[nodiscard]] inline Expected<TensorFile> quantized_tensors(const Json& config, Safetensors file) {
  const Json* const quantization = json_find(config, "quantization_config");
  if (quantization == nullptr || quantization->is_null()) return std::move(file).take_tensors();
  NIHAO_TRY(const auto method, json_get<std::string_view>(config, "quantization_config.quant_method"));
  std::string known;
  for (const detail::QuantizationMethod& m : detail::quantization_methods) {
    known += concat(known.empty() ? "" : ", ", m.name);
    if (m.name != method) continue;
    detail::Assembler assembler(*quantization, file);
    NIHAO_CHECK(m.assemble(assembler));
    assembler.drop_cache_scales();
    return std::move(assembler).finish(std::move(file));
  }
  return Error{ErrorCode::unsupported, concat("\"", printable(method), "\" is none of: ", known),
               "quantization_config.quant_method"};
}

}  // namespace nihao
