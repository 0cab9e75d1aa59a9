// The table of families: which architecture name of a file is which model type.
#pragma once

#include "cohere2.hpp"
#include "dbrx.hpp"
#include "deepseek.hpp"
#include "gemma2.hpp"
#include "gemma3.hpp"
#include "gpt_oss.hpp"
#include "granite.hpp"
#include "llama.hpp"
#include "llama4.hpp"
#include "mixtral.hpp"
#include "olmo2.hpp"
#include "phi3.hpp"
#include "qwen2.hpp"
#include "qwen3.hpp"

#include <string_view>
#include <type_traits>

namespace nihao {

/// `f(std::type_identity<Llama<>>{})` for the family of a config: by its architecture, named as in GGUF's general.architecture or
/// in Hugging Face's model_type. False if there is no such family.
template <class D, class F>
bool visit_family(const Config& config, F&& f) {
  constexpr Sizes any{};
  using Q = Quant<Any>;
  const auto is = [&](auto... names) { return ((config.architecture == names) || ...); };
  // Mixtral's GGUF files are of the architecture "llama".
  if (is("mixtral") || (is("llama") && config.router.experts > 0)) return f(std::type_identity<Mixtral<any, Q, D>>{}), true;
  if (is("llama", "mistral", "qwen2", "phi3", "granite")) return f(std::type_identity<Llama<any, Q, D>>{}), true;
  if (is("qwen3")) return f(std::type_identity<Qwen3<any, Q, D>>{}), true;
  if (is("qwen3_moe", "qwen3moe")) return f(std::type_identity<Qwen3Moe<any, Q, D>>{}), true;
  if (is("gemma2")) return f(std::type_identity<Gemma2<any, Q, D>>{}), true;
  if (is("gemma3", "gemma3_text")) return f(std::type_identity<Gemma3<any, Q, D>>{}), true;
  if (is("olmo2")) return f(std::type_identity<Olmo2<any, Q, D>>{}), true;
  if (is("cohere2")) return f(std::type_identity<Cohere2<any, Q, D>>{}), true;
  if (is("phimoe")) return f(std::type_identity<PhiMoe<any, Q, D>>{}), true;
  if (is("dbrx")) return f(std::type_identity<Dbrx<any, Q, D>>{}), true;
  if (is("deepseek_v3") || (is("deepseek2") && config.router.sigmoid))
    return f(std::type_identity<DeepSeekV3<any, Q, D>>{}), true;
  if (is("deepseek_v2", "deepseek2")) return f(std::type_identity<DeepSeekV2<any, Q, D>>{}), true;
  if (is("llama4", "llama4_text")) return f(std::type_identity<Llama4<any, Q, D>>{}), true;
  if (is("gpt-oss", "gpt_oss")) return f(std::type_identity<GptOss<any, Q, D>>{}), true;
  return false;
}

inline constexpr std::string_view family_names =
    "llama, mistral, qwen2, qwen3, qwen3_moe, gemma2, gemma3, phi3, phimoe, olmo2, granite, cohere2, mixtral, dbrx, deepseek_v2, "
    "deepseek_v3, llama4, gpt_oss";

}  // namespace nihao
