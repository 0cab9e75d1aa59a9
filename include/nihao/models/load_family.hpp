// The step that all file kinds share: from a config and its tensors to a model of the family that the config names.
#pragma once

#include "any_model.hpp"
#include "context.hpp"
#include "families.hpp"

namespace nihao {

namespace detail {
[[nodiscard]] inline Error no_such_family(std::string_view architecture, std::string_view place) {
  return {ErrorCode::unsupported, concat("\"", printable(architecture), "\" is none of: ", family_names), place};
}
}  // namespace detail

/// Loads one family's model as an AnyModel. A class, so that nihao::compiled can have each family in a unit of its own.
template <class Family>
struct FamilyLoader {
  [[nodiscard]] static Expected<AnyModel> load(Config config, WeightSource source, const typename Family::Device& device,
                                               const Hooks& hooks, AnyModel::Text text) {
    NIHAO_TRY(Family model, Family::load(std::move(config), std::move(source), device, hooks));
    return AnyModel::from(std::move(model), std::move(text));
  }
};

#if NIHAO_COMPILED
extern template struct FamilyLoader<Cohere2<>>;
extern template struct FamilyLoader<Dbrx<>>;
extern template struct FamilyLoader<DeepSeekV2<>>;
extern template struct FamilyLoader<DeepSeekV3<>>;
extern template struct FamilyLoader<Gemma2<>>;
extern template struct FamilyLoader<Gemma3<>>;
extern template struct FamilyLoader<GptOss<>>;
extern template struct FamilyLoader<Llama<>>;
extern template struct FamilyLoader<Llama4<>>;
extern template struct FamilyLoader<Mixtral<>>;
extern template struct FamilyLoader<Olmo2<>>;
extern template struct FamilyLoader<PhiMoe<>>;
extern template struct FamilyLoader<Qwen3<>>;
extern template struct FamilyLoader<Qwen3Moe<>>;
#endif

/// The model of `config.architecture` on `device`, with what text needs of it. `place` is where the file names its architecture.
/// Errors: unsupported (no such family, a tensor too many), missing, mismatch, out_of_memory, cancelled.
template <class D>
[[nodiscard]] Expected<AnyModel> load_family(Config config, WeightSource source, const D& device, const Hooks& hooks,
                                             AnyModel::Text text, std::string_view place) {
  Expected<AnyModel> result = detail::no_such_family(config.architecture, place);
  const Config what = config;
  visit_family<D>(what, [&]<class Family>(std::type_identity<Family>) {
    result = FamilyLoader<Family>::load(std::move(config), std::move(source), device, hooks, std::move(text));
  });
  return result;
}

#if NIHAO_COMPILED
extern template Expected<AnyModel> load_family<Cpu>(Config, WeightSource, const Cpu&, const Hooks&, AnyModel::Text,
                                                    std::string_view);
#endif

}  // namespace nihao
