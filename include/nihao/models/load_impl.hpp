// load() for whatever architecture a file has: every family is compiled here.
#pragma once

#include "load.hpp"
#include "load_family.hpp"

namespace nihao {

NIHAO_INLINE Expected<AnyModel::Text> text_from_gguf(const Gguf& gguf) {
  NIHAO_TRY(auto tokenizer, Tokenizer::from_gguf(gguf));
  std::optional<ChatTemplate> chat_template;
  if (gguf.has("tokenizer.chat_template")) {
    NIHAO_TRY(const auto source, gguf.get<std::string_view>("tokenizer.chat_template"));
    NIHAO_TRY(chat_template, ChatTemplate::parse(source));
  }
  return AnyModel::Text{std::move(tokenizer), std::move(chat_template)};
}

namespace detail {

template <class D>
Expected<AnyModel> load_any_gguf(Gguf file, const LoadOptions& options) {
  NIHAO_TRY(GgufModel gguf, read_gguf(std::move(file), options));
  NIHAO_TRY(AnyModel::Text text, text_from_gguf(*gguf.file));
  return load_family<D>(std::move(gguf.config), gguf.weights(), gguf.cpu, options.hooks, std::move(text), "general.architecture");
}

}  // namespace detail
}  // namespace nihao
