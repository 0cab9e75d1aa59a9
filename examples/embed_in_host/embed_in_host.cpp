// A host application with nihao inside. The library has no globals: what it may print, who is told of progress, whose memory the
// model lies in and when to stop are all the host's to say. (So are the threads: examples/host_threads.)
#include <nihao/nihao.hpp>

#include <cstdio>
#include <fmt/core.h>
#include <stop_token>
#include <vector>

namespace {

// The host's log. Without one the library says nothing.
class HostLog final : public nihao::Logger {
 public:
  void log(nihao::LogLevel level, std::string_view line) override {
    fmt::print("log {}: {}\n", level == nihao::LogLevel::warning ? "warning" : "info", line);
  }
};

// The host's progress display: every quarter.
class HostProgress final : public nihao::ProgressSink {
 public:
  void progress(std::string_view stage, std::uint64_t done, std::uint64_t total) override {
    const std::uint64_t quarter = total == 0 ? 4 : 4 * done / total;
    if (quarter != shown_) fmt::print("{} {} %\n", stage, 25 * (shown_ = quarter));
  }

 private:
  std::uint64_t shown_ = 0;
};

std::vector<std::byte> read_file(const char* path) {
  std::vector<std::byte> bytes;
  if (std::FILE* file = std::fopen(path, "rb")) {
    std::fseek(file, 0, SEEK_END);
    bytes.resize(static_cast<std::size_t>(std::max(0L, std::ftell(file))));
    std::rewind(file);
    bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file));
    std::fclose(file);
  }
  return bytes;
}

// A chat in ten lines: the history is the session's, and each question finds the ones before it in the cache.
void chat(const nihao::AnyModel& model) {
  nihao::Session session(model, {.system = "You answer in one short sentence."});
  for (const std::string_view question : {"What is the capital of France?", "And of Italy?"}) {
    fmt::print("> {}\n", question);
    for (const std::string_view piece : session.generate(question, {.max_tokens = 32})) fmt::print("{}", piece);
    const auto& answer = session.result();
    fmt::print("\n  ({})\n",
               answer ? fmt::format("{} of {} prompt tokens were in the cache", answer->reused_tokens, answer->prompt_ids.size())
                      : answer.error().message());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::byte> bytes = argc == 2 ? read_file(argv[1]) : std::vector<std::byte>();
  if (bytes.empty()) {
    fmt::print(stderr, "usage: embed_in_host smollm2-135m-q4_1.gguf\n");
    return 2;
  }
  const nihao::LoadOptions options{.hooks = {std::make_shared<HostLog>(), std::make_shared<HostProgress>()}};

  // From the host's own bytes, which have to stay. Errors are values: nothing throws, nothing exits.
  const auto model = nihao::load(std::span<const std::byte>(bytes), options);
  if (!model) {
    fmt::print(stderr, "{}\n", model.error().message());
    return 1;
  }
  fmt::print("a file cut short: {}\n\n", nihao::load(std::span<const std::byte>(bytes).first(8), options).error().message());
  chat(*model);

  // The host has heard enough. Stopping takes effect within one token, or within one chunk of a prompt.
  std::stop_source host;
  nihao::Session session(*model);
  int pieces = 0;
  for (const std::string_view piece :
       session.generate("Tell me a long story.", {.max_tokens = 400, .stop_token = host.get_token()})) {
    static_cast<void>(piece);
    if (++pieces == 12) host.request_stop();
  }
  const auto& told = session.result();
  const bool stopped = told && told->finish_reason == nihao::FinishReason::cancelled;
  fmt::print("\n{} by the host after {} pieces\n", stopped ? "stopped" : "NOT stopped", pieces);
  return stopped ? 0 : 1;
}
