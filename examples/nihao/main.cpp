// nihao: runs large language models from a terminal. A file a command; docs/program.md is the manual.
#include "commands.hpp"

#include <fmt/core.h>

#include <cstdio>

using namespace nihao;
using namespace nihao::program;

namespace {

// Every failure is one line that says what and where.
int fail(std::string_view message, int status) {
  std::fflush(stdout);
  fmt::print(stderr, "nihao: {}\n", one_line(message));
  return status;
}

int run(int argc, char** argv) {
  CLI::App app("Runs large language models on this machine.", "nihao");
  app.set_version_flag("--version", "nihao " NIHAO_VERSION);
  app.require_subcommand(1);
  app.failure_message([](const CLI::App*, const CLI::Error&) { return std::string(); });
  Commands commands{app};
  for (const auto add :
       {add_inspect, add_tokenize, add_detokenize, add_render, add_logits, add_run, add_chat, add_perplexity, add_bench})
    add(commands);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& wanted) {  // --help, --version
    return app.exit(wanted);
  } catch (const CLI::ParseError& error) {
    std::string command = "nihao";
    const auto named = [&](const auto& entry) { return entry.first->get_name() == argv[1]; };
    if (argc > 1 && argv[1][0] != '-' && std::none_of(commands.actions.begin(), commands.actions.end(), named))
      return fail(fmt::format("there is no command {} (nihao --help tells what there is)", argv[1]), 2);
    for (const auto& [parser, action] : commands.actions)
      if (parser->parsed()) command += " " + parser->get_name();
    return fail(fmt::format("{} ({} --help tells the usage)", error.what(), command), 2);
  }
  for (const auto& [parser, action] : commands.actions) {
    if (!parser->parsed()) continue;
    try {
      const Expected<int> status = action();
      if (!status) return fail(status.error().message(), 1);
      if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) return fail("standard output could not be written", 1);
      return *status;
    } catch (const UsageError& error) {
      return fail(fmt::format("{} (nihao {} --help tells the usage)", error.what(), parser->get_name()), 2);
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) { return fail("out of memory", 1); } catch (const std::exception& error) {
    return fail(error.what(), 1);
  }
}
