#include "thinking.hpp"

#include <fmt/core.h>

#include <cstdio>

namespace nihao::program {

void ThinkFlags::add(CLI::App& app) {
  budget = app.add_option("--think-budget", most, "end the thinking after exactly so many tokens of it")
               ->type_name("N")
               ->transform(within(0, 1 << 28));
  app.add_option("--think-least", least, "an end of the thinking before so many tokens becomes \"Wait\"")
      ->type_name("N")
      ->transform(within(1, 1 << 28));
  app.add_option(
         "--thinking", shown,
         "tell thinking from answer, and of the thinking show: nothing (hidden), how many tokens it had (count), all of it, "
         "on standard error (stream, and so with a budget)")
      ->type_name("hidden|count|stream")
      ->check(one_of({"hidden", "count", "stream"}));
}

void ThinkFlags::apply(GenerateOptions& options) const {
  options.split_thinking = !shown.empty();
  if (budget->count() > 0) options.think_budget.most = most;
  options.think_budget.least = least;
}

void ThinkFlags::print(const Session& session, std::string_view piece) const {
  if (!session.thinking()) {
    fmt::print("{}", piece);
    std::fflush(stdout);
  } else if (shown.empty() || shown == "stream") {
    fmt::print(stderr, "{}", piece);
  }
}

void ThinkFlags::print_count(const GenerationResult& result) const {
  if (shown == "count") note(fmt::format("thinking {} tokens", result.thinking_tokens));
}

void ThinkFlags::add_to(Json& json, const GenerationResult& result) const {
  const bool all = shown == "stream" || (shown.empty() && (budget->count() > 0 || least > 0));
  if (all) json["thinking"] = json_text(result.thinking);
  if (all || shown == "count") json["thinking_tokens"] = result.thinking_tokens;
}

}  // namespace nihao::program
