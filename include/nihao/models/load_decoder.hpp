// load() for a decoder type: comes with every family's header.
#pragma once

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
  Cpu cpu;
  [[nodiscard]] WeightSource weights() const { return {&file->tensors(), file, NameStyle::gguf}; }
};
[[nodiscard]] inline Expected<GgufModel> read_gguf(Gguf file, const LoadOptions& options) {
  NIHAO_TRY(Cpu cpu, Cpu::create(options.cpu));
  NIHAO_TRY(Config config, config_from_gguf(file));
  return GgufModel{std::make_shared<const Gguf>(std::move(file)), std::move(config), std::move(cpu)};
}

template <class D>  // load_impl.hpp; a template, so that a program of one family does not instantiate all
[[nodiscard]] Expected<AnyModel> load_any_gguf(Gguf file, const LoadOptions& options);

template <class M>
[[nodiscard]] Expected<M> load_gguf(Gguf file, const LoadOptions& options) {
  if constexpr (std::is_same_v<M, AnyModel>) {
    return load_any_gguf<Cpu>(std::move(file), options);
  } else {
    NIHAO_TRY(GgufModel gguf, read_gguf(std::move(file), options));
    return M::load(std::move(gguf.config), gguf.weights(), gguf.cpu, options.hooks);
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
