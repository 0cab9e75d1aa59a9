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

/// The model of `config.architecture` on `device`, with what text needs of it. `place` is where the file names its architecture.
/// Errors: unsupported (no such family, a tensor too many), missing, mismatch, out_of_memory, cancelled.
template <class D>
[[nodiscard]] Expected<AnyModel> load_family(Config config, WeightSource source, const D& device, const Hooks& hooks,
                                             AnyModel::Text text, std::string_view place) {
  Expected<AnyModel> result = detail::no_such_family(config.architecture, place);
  const std::string architecture = config.architecture;
  visit_family<D>(architecture, [&]<class Family>(std::type_identity<Family>) {
    auto model = Family::load(std::move(config), std::move(source), device, hooks);
    if (model) result = AnyModel::from(*std::move(model), std::move(text));
    else result = std::move(model).error();
  });
  return result;
}

#if NIHAO_COMPILED  // nihao::compiled has all families
extern template Expected<AnyModel> load_family<Cpu>(Config, WeightSource, const Cpu&, const Hooks&, AnyModel::Text,
                                                    std::string_view);
#endif

}  // namespace nihao
