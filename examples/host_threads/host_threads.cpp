// A host application whose threads nihao works on: an executor is all it takes, and any gives the same bits.
#include <nihao/nihao.hpp>

#include <atomic>
#include <condition_variable>
#include <fmt/core.h>
#include <mutex>
#include <thread>
#include <vector>

namespace {

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

std::string complete(const nihao::AnyModel& model, std::string_view text, std::size_t tokens) {
  nihao::Session session(model, {.context = {.positions = 128}});
  nihao::GenerateOptions options{.max_tokens = tokens};
  options.sampling.temperature = 0;
  for (const std::string_view piece : session.complete(text, options)) static_cast<void>(piece);
  return session.result() ? session.result()->text : session.result().error().message();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: host_threads smollm2-135m-q4_1.gguf\n");
    return 2;
  }
  const auto threads = std::make_shared<HostThreads>(1);
  const auto model = nihao::load(argv[1], {.cpu = {.executor = threads}});
  if (!model) {
    fmt::print(stderr, "{}\n", model.error().message());
    return 1;
  }

  // Two sessions of one model in two threads: the weights are shared and read-only, everything else is each session's own.
  std::string first, second;
  {
    const std::jthread a([&] { first = complete(*model, "The capital of France is", 8); });
    const std::jthread b([&] { second = complete(*model, "A llama is", 8); });
  }
  fmt::print("first thread: The capital of France is{}\nsecond thread: A llama is{}\n", first, second);
  const bool equal = first == complete(*model, "The capital of France is", 8);  // alone now: the same bits

  fmt::print("The host's threads ran {} operations.\n", threads->operations());
  return equal ? 0 : 1;
}
