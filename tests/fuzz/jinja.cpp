// Any bytes as a chat template: refused with an error that says where, or rendered within its limits. The same template and
// conversation twice give the same.
#include "nihao/text/chat_template.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

using namespace nihao;
using jinja::Value;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  const auto chat = ChatTemplate::parse(source);
  if (!chat) {
    if (chat.error().what.empty() || chat.error().where.empty()) std::abort();
    return 0;
  }
  const Value tool = Value::dict(
      {{"name", "f"}, {"parameters", Value::dict({{"type", "object"}, {"n", 1}, {"x", 0.5}, {"items", Value::list({1, "a"})}})}});
  const Value context =
      Value::dict({{"messages", Value::list({Value::dict({{"role", "user"}, {"content", "你好 <b>\n x"}}),
                                             Value::dict({{"role", "assistant"}, {"content", Value::none()}})})},
                   {"tools", Value::list({tool})},
                   {"add_generation_prompt", true},
                   {"bos_token", "<s>"},
                   {"n", 7},
                   {"f", -2.5}});
  RenderOptions options;
  options.limits = {.steps = 200'000, .depth = 100, .output_bytes = 1u << 20, .memory_bytes = 8u << 20};
  options.now = jinja::DateTime{2026, 11, 29, 14, 5, 9};
  const auto once = chat->render(context, options), twice = chat->render(context, options);
  if (once.has_value() != twice.has_value()) std::abort();
  if (once && (*once != *twice || once->size() > options.limits.output_bytes)) std::abort();
  if (!once && (once.error().message() != twice.error().message() ||
                (once.error().what.empty() && once.error().code != ErrorCode::template_error))) {
    std::abort();
  }
  return 0;
}
