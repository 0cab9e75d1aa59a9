// Station C23, the chat template: a conversation to the one text that the model was trained to continue.
#pragma once

#include "../base/error.hpp"
#include "jinja/options.hpp"
#include "jinja/value.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace nihao {

namespace jinja {
struct Template;
}

/// One turn of a plain conversation. For tool calls, images and the like, build the context as a jinja::Value.
struct Message {
  std::string role;
  std::string content;
};

/// What a render may use and what time it sees.
struct RenderOptions {
  jinja::Limits limits = {};
  /// What strftime_now says. Without it that function is not defined: the library reads no clock, and templates that check
  /// `strftime_now is defined` fall back to a date of their own.
  std::optional<jinja::DateTime> now = {};
};

/// A model's chat template, parsed: a Jinja template, rendered as transformers' apply_chat_template renders it
/// (trim_blocks, lstrip_blocks, loop controls, raise_exception, strftime_now, its tojson; the immutable sandbox).
/// Cheap to copy, and may be rendered from several threads at once.
///
///     auto chat = nihao::ChatTemplate::parse(source).value();
///     auto prompt = chat.render(messages, /*add_generation_prompt*/ true, "<s>", "</s>").value();
class ChatTemplate {
 public:
  /// Errors: malformed (syntax), unsupported (a filter or test that Jinja does not have), limit (nested too deep); `where` is
  /// "chat template: line N".
  [[nodiscard]] static Expected<ChatTemplate> parse(std::string_view source);

  /// Renders with the variables of `context`, a dict: messages, tools, add_generation_prompt, bos_token, ... .
  /// Errors: template_error (the template's own raise_exception; `what` is its text), mismatch (a type or an undefined value),
  /// unsupported, limit, invalid_argument (the context is no dict); `where` is "chat template: line N".
  [[nodiscard]] Expected<std::string> render(const jinja::Value& context, const RenderOptions& options = {}) const;

  /// Renders a plain conversation.
  [[nodiscard]] Expected<std::string> render(std::span<const Message> messages, bool add_generation_prompt,
                                             std::string_view bos_token, std::string_view eos_token,
                                             const RenderOptions& options = {}) const;

  /// The template as it was given.
  [[nodiscard]] std::string_view source() const noexcept;

 private:
  explicit ChatTemplate(std::shared_ptr<const jinja::Template> parsed) : parsed_(std::move(parsed)) {}
  std::shared_ptr<const jinja::Template> parsed_;
};

}  // namespace nihao

#if !NIHAO_COMPILED
#include "chat_template_impl.hpp"
#endif
