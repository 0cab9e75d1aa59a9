// nihao: runs large language models from a terminal. A file a command; docs/program.md is the manual.
#include "commands.hpp"

#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

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
  app.require_subcommand(0, 1);  // one is asked for below
  app.failure_message([](const CLI::App*, const CLI::Error&) { return std::string(); });
  Commands commands{app};
  for (const auto add : {add_inspect, add_tokenize, add_detokenize, add_render, add_logits, add_run, add_chat, add_perplexity,
                         add_bench, add_sample, add_quantize, add_imatrix})
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
    if (argc > 1 && argv[1][0] == '-')  // the parser would speak of what the command after it lacks
      return fail(fmt::format("there is no flag {} before a command (nihao --help tells what there is)", argv[1]), 2);
    for (const auto& [parser, action] : commands.actions)
      if (parser->parsed()) command += " " + parser->get_name();
    return fail(fmt::format("{} ({} --help tells the usage)", error.what(), command), 2);
  }
  for (const auto& [parser, action] : commands.actions) {
    if (!parser->parsed()) continue;
    try {
      const Expected<int> status = action();
      if (!status) return fail(status.error().message(), status.error().code == ErrorCode::cancelled ? 130 : 1);
      if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) return fail("standard output could not be written", 1);
      return *status;
    } catch (const UsageError& error) {
      return fail(fmt::format("{} (nihao {} --help tells the usage)", error.what(), parser->get_name()), 2);
    }
  }
  return fail("a command is required (nihao --help tells what there is)", 2);
}

// A standard stream that the program was started without would be the next file that is opened: a pipe read as if somebody typed
// there, results written into a model. What takes its place fails as the closed one would.
void occupy_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF)
      static_cast<void>(::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY));  // the lowest number that is free
}

}  // namespace

int main(int argc, char** argv) {
  occupy_standard_streams();
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) { return fail("out of memory", 1); } catch (const std::exception& error) {
    return fail(error.what(), 1);
  }
}
