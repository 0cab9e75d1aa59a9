// The table of families: which architecture name of a file is which model type. In groups, each of which nihao::compiled compiles
// as a unit.
#pragma once

#include "cohere2.hpp"
#include "dbrx.hpp"
#include "deepseek.hpp"
#include "gemma2.hpp"
#include "gemma3.hpp"
#include "glm4.hpp"
#include "gpt_oss.hpp"
#include "granite.hpp"
#include "llama.hpp"
#include "llama4.hpp"
#include "mixtral.hpp"
#include "olmo2.hpp"
#include "phi3.hpp"
#include "qwen2.hpp"
#include "qwen3.hpp"
#include "smollm3.hpp"

#include <string_view>
#include <type_traits>

namespace nihao {

namespace detail {
template <template <Sizes, class, class> class Family, class D>
inline constexpr std::type_identity<Family<Sizes{}, Quant<Any>, D>> family_type{};

/// Whether an architecture is of a family: named as in GGUF's general.architecture, or as in Hugging Face's model_type.
[[nodiscard]] constexpr bool is_any_of(std::string_view architecture, auto... names) noexcept {
  return ((architecture == names) || ...);
}
}  // namespace detail

/// Families whose layers have no experts. visit(config, f) calls `f(std::type_identity<Llama<>>{})` for the family of a config;
/// false if it is none of these.
template <class D>
struct DenseFamilies {
  using Device = D;

  template <class F>
  static bool visit(const Config& config, F&& f) {
    const auto is = [&](auto... names) { return config.router.experts == 0 && detail::is_any_of(config.architecture, names...); };
    if (is("llama", "mistral", "qwen2", "phi3", "granite", "smollm3")) return f(detail::family_type<Llama, D>), true;
    if (is("qwen3")) return f(detail::family_type<Qwen3, D>), true;
    if (is("gemma2")) return f(detail::family_type<Gemma2, D>), true;
    if (is("gemma3", "gemma3_text")) return f(detail::family_type<Gemma3, D>), true;
    if (is("glm4")) return f(detail::family_type<Glm4, D>), true;
    if (is("olmo2")) return f(detail::family_type<Olmo2, D>), true;
    if (is("cohere2")) return f(detail::family_type<Cohere2, D>), true;
    return false;
  }
};

/// Families with experts.
template <class D>
struct ExpertFamilies {
  using Device = D;

  template <class F>
  static bool visit(const Config& config, F&& f) {
    const auto is = [&](auto... names) { return detail::is_any_of(config.architecture, names...); };
    if (is("mixtral", "llama") && config.router.experts > 0)  // GGUF files of Mixtral call themselves "llama"
      return f(detail::family_type<Mixtral, D>), true;
    if (is("qwen3_moe", "qwen3moe")) return f(detail::family_type<Qwen3Moe, D>), true;
    if (is("phimoe")) return f(detail::family_type<PhiMoe, D>), true;
    if (is("dbrx")) return f(detail::family_type<Dbrx, D>), true;
    if (is("gpt-oss", "gpt_oss")) return f(detail::family_type<GptOss, D>), true;
    return false;
  }
};

/// Families with experts in some layers, and with latent or chunked attention.
template <class D>
struct MixedFamilies {
  using Device = D;

  template <class F>
  static bool visit(const Config& config, F&& f) {
    const auto is = [&](auto... names) { return detail::is_any_of(config.architecture, names...); };
    if (is("deepseek_v3") || (is("deepseek2") && config.router.sigmoid)) return f(detail::family_type<DeepSeekV3, D>), true;
    if (is("deepseek_v2", "deepseek2")) return f(detail::family_type<DeepSeekV2, D>), true;
    if (is("llama4", "llama4_text")) return f(detail::family_type<Llama4, D>), true;
    return false;
  }
};

}  // namespace nihao
