// ChatTemplate, defined: the whole template engine.
#pragma once

#include "chat_template.hpp"
#include "jinja/interpreter.hpp"

#include <utility>
#include <vector>

namespace nihao {

namespace detail {
// Whose line it is: a host that prints the error of a session does not otherwise say.
template <class T>
[[nodiscard]] Expected<T> of_template(Expected<T> result) {
  return std::move(result).transform_error([](Error&& error) { return std::move(error).in("chat template"); });
}
}  // namespace detail

NIHAO_INLINE Expected<ChatTemplate> ChatTemplate::parse(std::string_view source) {
  NIHAO_TRY(jinja::Template parsed, detail::of_template(jinja::parse_template(source)));
  NIHAO_CHECK(detail::of_template(jinja::resolve(parsed)));
  parsed.source = source;
  return ChatTemplate(std::make_shared<const jinja::Template>(std::move(parsed)));
}

NIHAO_INLINE std::string_view ChatTemplate::source() const noexcept { return parsed_->source; }

NIHAO_INLINE Expected<std::string> ChatTemplate::render(const jinja::Value& context, const RenderOptions& options) const {
  if (!context.is(jinja::Kind::dict)) return Error{ErrorCode::invalid_argument, "a template's context is a dict"};
  if (options.now && !options.now->valid()) return Error{ErrorCode::invalid_argument, "RenderOptions::now is no date"};
  return detail::of_template(jinja::render(*parsed_, context, options.limits, options.now));
}

NIHAO_INLINE Expected<std::string> ChatTemplate::render(std::span<const Message> messages, bool add_generation_prompt,
                                                        std::string_view bos_token, std::string_view eos_token,
                                                        const RenderOptions& options) const {
  using jinja::Value;
  std::vector<Value> turns;
  for (const Message& m : messages) turns.push_back(Value::dict({{"role", m.role}, {"content", m.content}}));
  return render(Value::dict({{"messages", Value::list(std::move(turns))},
                             {"tools", Value::none()},
                             {"documents", Value::none()},
                             {"add_generation_prompt", add_generation_prompt},
                             {"bos_token", bos_token},
                             {"eos_token", eos_token}}),
                options);
}

}  // namespace nihao
