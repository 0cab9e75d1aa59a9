// The table of families: which architecture name of a file is which model type.
#pragma once

#include "gemma3.hpp"
#include "llama.hpp"
#include "olmo2.hpp"
#include "qwen2.hpp"

#include <string_view>
#include <type_traits>

namespace nihao {

/// `f(std::type_identity<Llama<>>{})` for the family of an architecture, named as in GGUF's general.architecture or in Hugging
/// Face's model_type. False if there is no such family.
template <class D, class F>
bool visit_family(std::string_view architecture, F&& f) {
  constexpr Sizes any{};
  using Q = Quant<Any>;
  if (architecture == "llama" || architecture == "mistral") return f(std::type_identity<Llama<any, Q, D>>{}), true;
  if (architecture == "qwen2") return f(std::type_identity<Qwen2<any, Q, D>>{}), true;
  if (architecture == "gemma3" || architecture == "gemma3_text") return f(std::type_identity<Gemma3<any, Q, D>>{}), true;
  if (architecture == "olmo2") return f(std::type_identity<Olmo2<any, Q, D>>{}), true;
  return false;
}

inline constexpr std::string_view family_names = "llama, mistral, qwen2, gemma3, olmo2";

}  // namespace nihao
