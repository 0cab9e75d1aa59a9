// load() for a decoder type: comes with every family's header.
#pragma once

#include "adapter_file.hpp"
#include "any_model.hpp"
#include "gguf_config.hpp"
#include "loader.hpp"

#include <memory>
#include <type_traits>
#include <utility>

namespace nihao {

namespace detail {

/// What a GGUF file says of a decoder, and where it is to run.
struct GgufModel {
  std::shared_ptr<const Gguf> file;
  Config config;
  WeightSource weights;
  Cpu cpu;
};
[[nodiscard]] inline Expected<GgufModel> read_gguf(Gguf file, const LoadOptions& options) {
  NIHAO_TRY(Cpu cpu, Cpu::create(options.cpu));
  NIHAO_TRY(Config config, config_from_gguf(file));
  config.mla.mode = options.mla;
  const auto kept = std::make_shared<const Gguf>(std::move(file));
  WeightSource weights{std::shared_ptr<const TensorFile>(kept, &kept->tensors()), NameStyle::gguf};
  for (const std::string& path : options.adapters) { NIHAO_TRY(weights.adapters.emplace_back(), adapter_from_gguf(path)); }
  return GgufModel{kept, std::move(config), std::move(weights), std::move(cpu)};
}

template <class D>  // load_impl.hpp; a template, so that a program of one family does not instantiate all
[[nodiscard]] Expected<AnyModel> load_any_gguf(Gguf file, const LoadOptions& options);

template <class M>
[[nodiscard]] Expected<M> load_gguf(Gguf file, const LoadOptions& options) {
  if constexpr (std::is_same_v<M, AnyModel>) {
    return load_any_gguf<Cpu>(std::move(file), options);
  } else {
    NIHAO_TRY(GgufModel gguf, read_gguf(std::move(file), options));
    return M::load(std::move(gguf.config), std::move(gguf.weights), gguf.cpu, options.hooks);
  }
}

template <class M>
[[nodiscard]] Expected<M> load_path(const std::string& path, const LoadOptions& options) {
  NIHAO_TRY(Gguf file, Gguf::open(path));
  auto model = load_gguf<M>(std::move(file), options);
  if (!model) return std::move(model).error().in(path);
  return model;
}

template <class M>
[[nodiscard]] Expected<M> load_bytes(std::span<const std::byte> bytes, const LoadOptions& options) {
  NIHAO_TRY(Gguf file, Gguf::from_bytes(bytes));
  return load_gguf<M>(std::move(file), options);
}

}  // namespace detail
}  // namespace nihao
