// The chat template goldens.
#pragma once

#include "nihao/text/chat_template.hpp"
#include "nihao/text/json_value.hpp"
#include "support/data.hpp"

#include <nlohmann/json.hpp>
#include <string>

namespace nihao::test {

using Json = nlohmann::ordered_json;

/// "2026-11-29T14:05:09".
inline jinja::DateTime parse_now(const std::string& text) {
  jinja::DateTime t;
  std::sscanf(text.c_str(), "%d-%d-%dT%d:%d:%d", &t.year, &t.month, &t.day, &t.hour, &t.minute, &t.second);
  return t;
}

/// Why a case fails, or nothing. A case has an output, or an error: the template's own must have its exact text, any other need
/// only be an error.
inline std::string failure_of(const Expected<ChatTemplate>& chat, const Json& context, const Json& wanted,
                              const std::string& now) {
  RenderOptions options;
  options.now = parse_now(now);
  auto got = chat.has_value() ? chat->render(to_value(context), options) : Expected<std::string>(chat.error());
  if (wanted.contains("output")) {
    if (!got) return "error: " + got.error().message();
    if (*got != wanted.at("output").get<std::string>()) return "other text: " + *got;
    return "";
  }
  if (got) return "no error, but: " + *got;
  const bool own = wanted.value("error_type", "") == "TemplateError";
  if (own != (got.error().code == ErrorCode::template_error)) return "another kind of error: " + got.error().message();
  if (own && got.error().what != wanted.at("error").get<std::string>()) return "another message: " + got.error().what;
  return "";
}

}  // namespace nihao::test
