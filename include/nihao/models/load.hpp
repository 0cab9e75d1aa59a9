// nihao::load: from a GGUF file (or its bytes) to a model. Hugging Face folders: models/load_hf.hpp.
#pragma once

#include "gguf_config.hpp"
#include "load_family.hpp"

namespace nihao {

namespace detail {

/// The tokenizer and the chat template that a GGUF file carries. Errors: those of Tokenizer::from_gguf and ChatTemplate::parse.
[[nodiscard]] inline Expected<AnyModel::Text> text_from_gguf(const Gguf& gguf) {
  NIHAO_TRY(auto tokenizer, Tokenizer::from_gguf(gguf));
  std::optional<ChatTemplate> chat_template;
  if (gguf.has("tokenizer.chat_template")) {
    NIHAO_TRY(const auto source, gguf.get<std::string_view>("tokenizer.chat_template"));
    NIHAO_TRY(chat_template, ChatTemplate::parse(source));
  }
  return AnyModel::Text{std::move(tokenizer), std::move(chat_template)};
}

template <class M>
[[nodiscard]] Expected<M> load_gguf(std::shared_ptr<const Gguf> gguf, const LoadOptions& options) {
  NIHAO_TRY(const Cpu cpu, Cpu::create(options.cpu));
  NIHAO_TRY(Config config, config_from_gguf(*gguf));
  const TensorFile* tensors = &gguf->tensors();
  if constexpr (!std::is_same_v<M, AnyModel>) {
    return M::load(std::move(config), WeightSource{tensors, std::move(gguf), NameStyle::gguf}, cpu, options.hooks);
  } else {
    NIHAO_TRY(AnyModel::Text text, text_from_gguf(*gguf));
    return load_family<Cpu>(std::move(config), WeightSource{tensors, std::move(gguf), NameStyle::gguf}, cpu, options.hooks,
                            std::move(text), "general.architecture");
  }
}

}  // namespace detail

/// Loads a GGUF file, or the shards that it is the first of. M: a decoder type such as Llama<...>, whose sizes and formats the
/// file must meet; or, by default, whatever architecture the file has. Errors: io, truncated, malformed, unsupported, missing,
/// mismatch, out_of_memory, cancelled; each names the file and the place.
template <class M = AnyModel>
[[nodiscard]] Expected<M> load(const std::string& path, const LoadOptions& options = {}) {
  auto gguf = Gguf::open(path);
  if (!gguf) return std::move(gguf).error();
  auto model = detail::load_gguf<M>(std::make_shared<const Gguf>(*std::move(gguf)), options);
  if (!model) return std::move(model).error().in(path);
  return model;
}

/// The same from bytes that the host keeps as long as the model lives.
template <class M = AnyModel>
[[nodiscard]] Expected<M> load(std::span<const std::byte> bytes, const LoadOptions& options = {}) {
  NIHAO_TRY(auto gguf, Gguf::from_bytes(bytes));
  return detail::load_gguf<M>(std::make_shared<const Gguf>(std::move(gguf)), options);
}

#if NIHAO_COMPILED  // nihao::compiled has all families
extern template Expected<AnyModel> detail::load_gguf<AnyModel>(std::shared_ptr<const Gguf>, const LoadOptions&);
#endif

}  // namespace nihao
