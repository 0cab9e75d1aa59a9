// The step that all file kinds share: from a config and its tensors to a model of the family that the config names.
#pragma once

#include "any_model.hpp"
#include "context.hpp"
#include "families.hpp"

#include <optional>

namespace nihao {

/// Loads the models of a group of families. A class, so that nihao::compiled can have each group in a unit of its own.
template <class Group>
struct GroupLoader {
  /// Nothing, and its arguments as they were, if the config is of none of the group's families.
  [[nodiscard]] static std::optional<Expected<AnyModel>> load(const Config& config, WeightSource& source,
                                                              const typename Group::Device& device, const Hooks& hooks,
                                                              AnyModel::Text& text) {
    std::optional<Expected<AnyModel>> result;
    Group::visit(config, [&]<class Family>(std::type_identity<Family>) {
      auto model = Family::load(config, std::move(source), device, hooks);
      if (model) result.emplace(AnyModel::from(*std::move(model), std::move(text)));
      else result.emplace(std::move(model).error());
    });
    return result;
  }
};

#if NIHAO_COMPILED
extern template struct GroupLoader<DenseFamilies<Cpu>>;
extern template struct GroupLoader<ExpertFamilies<Cpu>>;
extern template struct GroupLoader<MixedFamilies<Cpu>>;
#endif

/// The model of `config.architecture` on `device`, with what text needs of it. `place` is where the file names its architecture.
/// Errors: unsupported (no such family, a tensor too many), missing, mismatch, out_of_memory, cancelled.
template <class D>
[[nodiscard]] Expected<AnyModel> load_family(const Config& config, WeightSource source, const D& device, const Hooks& hooks,
                                             AnyModel::Text text, std::string_view place) {
  auto model = GroupLoader<DenseFamilies<D>>::load(config, source, device, hooks, text);
  if (!model) model = GroupLoader<ExpertFamilies<D>>::load(config, source, device, hooks, text);
  if (!model) model = GroupLoader<MixedFamilies<D>>::load(config, source, device, hooks, text);
  if (!model) return Error{ErrorCode::unsupported, concat("no family is called \"", printable(config.architecture), "\""), place};
  return *std::move(model);
}

#if NIHAO_COMPILED
extern template Expected<AnyModel> load_family<Cpu>(const Config&, WeightSource, const Cpu&, const Hooks&, AnyModel::Text,
                                                    std::string_view);
#endif

}  // namespace nihao
