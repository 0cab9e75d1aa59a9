// nihao::load: from a GGUF file (or its bytes) to a model. Hugging Face folders: models/load_hf.hpp.
#pragma once

#include "any_model.hpp"

#include <cstddef>
#include <span>
#include <string>

namespace nihao {

namespace detail {
// Defined in load_decoder.hpp, which comes with every family's header.
template <class M>
[[nodiscard]] Expected<M> load_path(const std::string& path, const LoadOptions& options);
template <class M>
[[nodiscard]] Expected<M> load_bytes(std::span<const std::byte> bytes, const LoadOptions& options);
#if NIHAO_COMPILED  // nihao::compiled has all families
extern template Expected<AnyModel> load_path<AnyModel>(const std::string&, const LoadOptions&);
extern template Expected<AnyModel> load_bytes<AnyModel>(std::span<const std::byte>, const LoadOptions&);
#endif
}  // namespace detail

/// Loads a GGUF file, or the shards that it is the first of. M: a decoder type such as Llama<...> (include its header), whose
/// sizes and formats the file must meet; or, by default, whatever architecture the file has. Errors: io, truncated, malformed,
/// unsupported, missing, mismatch, out_of_memory, cancelled; each names the file and the place.
template <class M = AnyModel>
[[nodiscard]] Expected<M> load(const std::string& path, const LoadOptions& options = {}) {
  return detail::load_path<M>(path, options);
}

/// The same from bytes that the host keeps as long as the model lives.
template <class M = AnyModel>
[[nodiscard]] Expected<M> load(std::span<const std::byte> bytes, const LoadOptions& options = {}) {
  return detail::load_bytes<M>(bytes, options);
}

/// The tokenizer and the chat template that a GGUF file carries, without the model. A tokenizer of an unknown kind and a template
/// that does not parse are errors within: the model runs without them. Errors: those of Tokenizer::from_gguf else, mismatch.
[[nodiscard]] Expected<AnyModel::Text> text_from_gguf(const Gguf& gguf);

}  // namespace nihao

#if !NIHAO_COMPILED
#include "load_impl.hpp"
#endif
