// nihao::load_hf: from a Hugging Face folder (config.json and safetensors) to a model. Apart from models/load.hpp because it
// reads JSON: link nihao::json.
#pragma once

#include "any_model.hpp"
#include "loader.hpp"

#include <string>
#include <type_traits>
#include <utility>

namespace nihao {

// models/load_family.hpp, which brings all families along.
template <class D>
[[nodiscard]] Expected<AnyModel> load_family(const Config& config, WeightSource source, const D& device, const Hooks& hooks,
                                             AnyModel::Text text, std::string_view place);

namespace detail {
/// What a Hugging Face folder says of a decoder, and where it is to run.
struct HfModel {
  Config config;
  WeightSource weights;
  Cpu cpu;
};
[[nodiscard]] Expected<HfModel> read_hf(const std::string& folder, const LoadOptions& options);
}  // namespace detail

/// A folder's tokenizer (tokenizer.json) and chat template (chat_template.jinja, else what tokenizer_config.json has). Where
/// there is none, or one that is not known, it holds the error that says so. Errors: malformed and the like, of files that are
/// there.
[[nodiscard]] Expected<AnyModel::Text> text_from_folder(const std::string& folder);

/// Loads the folder of a checkpoint as it is on the hub: config.json, and model.safetensors or its index and shards. M: a decoder
/// type such as Llama<...>, whose sizes and formats the folder must meet; or, by default, whatever architecture it has, with what
/// text_from_folder gives. Errors: io, truncated, malformed, unsupported, missing, mismatch, limit, out_of_memory,
/// cancelled; each names the file and the place.
template <class M = AnyModel>
[[nodiscard]] Expected<M> load_hf(const std::string& folder, const LoadOptions& options = {}) {
  NIHAO_TRY(detail::HfModel hf, detail::read_hf(folder, options));
  auto model = [&]() -> Expected<M> {
    if constexpr (std::is_same_v<M, AnyModel>) {
      NIHAO_TRY(AnyModel::Text text, text_from_folder(folder));
      return load_family<Cpu>(hf.config, std::move(hf.weights), hf.cpu, options.hooks, std::move(text), "model_type");
    } else return M::load(std::move(hf.config), std::move(hf.weights), hf.cpu, options.hooks);
  }();
  if (!model) return std::move(model).error().in(folder);
  return model;
}

#if NIHAO_COMPILED
extern template Expected<AnyModel> load_family<Cpu>(const Config&, WeightSource, const Cpu&, const Hooks&, AnyModel::Text,
                                                    std::string_view);
#endif

}  // namespace nihao

#if !NIHAO_COMPILED
#include "load_family.hpp"
#endif
#if !NIHAO_COMPILED_JSON
#include "load_hf_impl.hpp"
#endif
