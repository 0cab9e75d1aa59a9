// A host application with nihao inside. The library has no globals: what it may print, who is told of progress, whose threads it
// uses, whose memory the model lies in and when to stop are all the host's to say.
#include <nihao/nihao.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <fmt/core.h>
#include <mutex>
#include <thread>
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

// The host's threads. Work is cut by output, so any executor gives the same bits; this one has the caller and `helpers` more.
class HostThreads final : public nihao::Executor {
 public:
  explicit HostThreads(int helpers) {
    for (int i = 1; i <= helpers; ++i) threads_.emplace_back([this, i](const std::stop_token& stop) { serve(stop, i); });
  }
  ~HostThreads() override {
    for (std::jthread& thread : threads_) thread.request_stop();
    wake_.notify_all();
  }

  [[nodiscard]] int workers() const noexcept override { return static_cast<int>(threads_.size()) + 1; }

  void run(int count, nihao::FunctionRef<void(int, int)> task) noexcept override {
    ++operations_;
    const std::unique_lock only_one(running_, std::try_to_lock);
    if (!only_one || count <= 1) {  // two sessions at once: the second does its work itself
      for (int i = 0; i < count; ++i) task(i, 0);
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      task_ = task, count_ = count, next_ = 0, busy_ = static_cast<int>(threads_.size()), ++job_;
    }
    wake_.notify_all();
    work(0);
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return busy_ == 0; });
  }
  [[nodiscard]] std::uint64_t operations() const noexcept { return operations_; }

 private:
  void work(int worker) {
    for (int i = next_++; i < count_; i = next_++) task_(i, worker);
  }
  void serve(const std::stop_token& stop, int worker) {
    for (std::uint64_t seen = 0;;) {
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return job_ != seen || stop.stop_requested(); });
        if (stop.stop_requested()) return;
        seen = job_;
      }
      work(worker);
      const std::lock_guard lock(mutex_);
      if (--busy_ == 0) done_.notify_one();
    }
  }

  std::mutex running_, mutex_;
  std::condition_variable wake_, done_;
  nihao::FunctionRef<void(int, int)> task_;
  std::atomic<int> next_{0};
  std::atomic<std::uint64_t> operations_{0};
  int count_ = 0, busy_ = 0;
  std::uint64_t job_ = 0;
  std::vector<std::jthread> threads_;
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

std::string complete(const nihao::AnyModel& model, std::string_view text, std::size_t tokens) {
  nihao::Session session(model, {.context = {.positions = 128}});
  nihao::GenerateOptions options{.max_tokens = tokens};
  options.sampling.temperature = 0;
  for (const std::string_view piece : session.complete(text, options)) static_cast<void>(piece);
  return session.result() ? session.result()->text : session.result().error().message();
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::byte> bytes = argc == 2 ? read_file(argv[1]) : std::vector<std::byte>();
  if (bytes.empty()) {
    fmt::print(stderr, "usage: embed_in_host smollm2-135m-q4_1.gguf\n");
    return 2;
  }
  const auto threads = std::make_shared<HostThreads>(1);
  const nihao::LoadOptions options{.cpu = {.executor = threads},
                                   .hooks = {std::make_shared<HostLog>(), std::make_shared<HostProgress>()}};

  // From the host's own bytes, which have to stay. Errors are values: nothing throws, nothing exits.
  const auto model = nihao::load(std::span<const std::byte>(bytes), options);
  if (!model) {
    fmt::print(stderr, "{}\n", model.error().message());
    return 1;
  }
  fmt::print("a file cut short: {}\n\n", nihao::load(std::span<const std::byte>(bytes).first(8), options).error().message());
  chat(*model);

  // Two sessions of one model in two threads: the weights are shared and read-only, everything else is each session's own.
  std::string first, second;
  {
    const std::jthread a([&] { first = complete(*model, "The capital of France is", 8); });
    const std::jthread b([&] { second = complete(*model, "A llama is", 8); });
  }
  fmt::print("\nfirst thread: The capital of France is{}\nsecond thread: A llama is{}\n", first, second);
  const bool equal = first == complete(*model, "The capital of France is", 8);  // alone now: the same bits

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
  fmt::print("{} by the host after {} pieces\n", stopped ? "stopped" : "NOT stopped", pieces);
  fmt::print("The host's threads ran {} operations.\n", threads->operations());
  return equal && stopped ? 0 : 1;
}
