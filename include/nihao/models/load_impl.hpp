// load() for whatever architecture a file has: every family is compiled here.
#pragma once

#include "load.hpp"
#include "load_family.hpp"

namespace nihao {

NIHAO_INLINE Expected<AnyModel::Text> text_from_gguf(const Gguf& gguf) {
  AnyModel::Text text;
  if (gguf.has("tokenizer.ggml.model")) {
    text.tokenizer = Tokenizer::from_gguf(gguf);
    const bool unknown = !text.tokenizer && (text.tokenizer.error().code == ErrorCode::unsupported ||
                                             text.tokenizer.error().code == ErrorCode::missing);
    if (!text.tokenizer && !unknown) return std::move(text.tokenizer).error();
  }
  if (gguf.has("tokenizer.chat_template")) {
    NIHAO_TRY(const auto source, gguf.get<std::string_view>("tokenizer.chat_template"));
    text.chat_template = ChatTemplate::parse(source);
  }
  return text;
}

namespace detail {

template <class D>
Expected<AnyModel> load_any_gguf(Gguf file, const LoadOptions& options) {
  NIHAO_TRY(GgufModel gguf, read_gguf(std::move(file), options));
  NIHAO_TRY(AnyModel::Text text, text_from_gguf(*gguf.file));
  if (!text.tokenizer) options.hooks.log(LogLevel::warning, text.tokenizer.error().message());
  if (!text.chat_template && gguf.file->has("tokenizer.chat_template"))
    options.hooks.log(LogLevel::warning, text.chat_template.error().message());
  return load_family<D>(gguf.config, std::move(gguf.weights), gguf.cpu, options.hooks, std::move(text), "general.architecture");
}

}  // namespace detail
}  // namespace nihao
