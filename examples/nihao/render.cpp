// nihao render: what a chat template makes of a conversation. The weights are not loaded.
#include "commands.hpp"
#include "model.hpp"

#include <nihao/text/json_value.hpp>

#include <fmt/core.h>

#include <cstdio>

namespace nihao::program {

namespace {

// "2026-10-05" or "2026-10-05T12:30:00", also with a space for the T.
std::optional<jinja::DateTime> parse_time(const std::string& text) {
  jinja::DateTime t;
  int read = 0, rest = 0;
  if (std::sscanf(text.c_str(), "%d-%d-%d%n", &t.year, &t.month, &t.day, &read) != 3) return std::nullopt;
  if (static_cast<std::size_t>(read) != text.size()) {
    if (text[static_cast<std::size_t>(read)] != 'T' && text[static_cast<std::size_t>(read)] != ' ') return std::nullopt;
    if (std::sscanf(text.c_str() + read + 1, "%d:%d:%d%n", &t.hour, &t.minute, &t.second, &rest) != 3) return std::nullopt;
    if (static_cast<std::size_t>(read + 1 + rest) != text.size()) return std::nullopt;
  }
  return t.valid() ? std::optional(t) : std::nullopt;
}

Expected<Json> read_json(const std::string& path) {
  NIHAO_TRY(const std::string text, read_file(path));
  auto json = parse_json(text);
  if (!json) return std::move(json).error().in(path);
  return json;
}

struct RenderFlags {
  std::string model, file, messages, tools, context, now;
  bool no_generation_prompt = false, json = false;
};

Expected<int> render(const RenderFlags& flags) {
  std::optional<ChatTemplate> chat_template;
  std::string bos, eos;
  if (!flags.model.empty()) {
    NIHAO_TRY(AnyModel::Text text, load_text(flags.model));
    if (text.tokenizer) {
      const auto name = [&](std::optional<TokenId> id) { return std::string(id ? text.tokenizer->piece(*id) : ""); };
      bos = name(text.tokenizer->bos()), eos = name(text.tokenizer->eos());
    }
    if (text.chat_template) chat_template = *std::move(text.chat_template);
    else if (flags.file.empty()) return std::move(text.chat_template).error().in(flags.model);
  }
  if (!flags.file.empty()) { NIHAO_TRY(chat_template, load_template(flags.file)); }
  RenderOptions options;
  options.now = flags.now.empty() ? local_time() : parse_time(flags.now);
  if (!options.now) throw UsageError("--now is no time such as 2026-10-05T12:30:00");

  Json context;
  if (!flags.context.empty()) {
    NIHAO_TRY(context, read_json(flags.context));
  } else {
    NIHAO_TRY(Json messages, read_json(flags.messages));
    Json tools;
    if (!flags.tools.empty()) { NIHAO_TRY(tools, read_json(flags.tools)); }
    context = {{"messages", std::move(messages)},
               {"tools", std::move(tools)},
               {"documents", nullptr},
               {"add_generation_prompt", !flags.no_generation_prompt},
               {"bos_token", json_text(bos)},
               {"eos_token", json_text(eos)}};
  }
  NIHAO_TRY(const std::string text, chat_template->render(to_value(context), options));
  if (flags.json) print_json({{"text", json_text(text)}});
  else fmt::print("{}", text);
  return 0;
}

}  // namespace

void add_render(Commands& commands) {
  const auto flags = std::make_shared<RenderFlags>();
  CLI::App& app = commands.add("render", "A conversation through a chat template", [flags]() -> Expected<int> {
    if (flags->model.empty() && flags->file.empty()) throw UsageError("--model or --template is required");
    if (flags->messages.empty() == flags->context.empty()) throw UsageError("--messages or --context is required, and not both");
    return render(*flags);
  });
  const auto option = [&](const char* name, std::string& value, const char* what, const char* type) {
    return app.add_option(name, value, what)->type_name(type)->check(not_empty());
  };
  option("-m,--model", flags->model, "the model whose template, BOS and EOS are used", "M");
  option("--template", flags->file, "a file with a template, instead of the model's", "F");
  option("--messages", flags->messages, "a JSON file with the messages: [{\"role\": \"user\", \"content\": \"...\"}, ...]", "F");
  CLI::Option* tools = option("--tools", flags->tools, "a JSON file with the tools", "F");
  CLI::Option* context = option("--context", flags->context, "a JSON file with all of the template's variables, instead", "F");
  CLI::Option* no_prompt = app.add_flag("--no-generation-prompt", flags->no_generation_prompt, "do not begin the answer");
  context->excludes(tools)->excludes(no_prompt);  // it says both itself
  option("--now", flags->now, "the time that the template sees (default: now)", "TIME");
  app.add_flag("--json", flags->json, "print one JSON document");
}

}  // namespace nihao::program
