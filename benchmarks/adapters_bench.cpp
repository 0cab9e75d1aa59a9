// What LoRA adapters cost: a step of eight sequences without, with one adapter for all, and with another for each.
//   nihao_bench_adapters MODEL.gguf [RANK=16] [THREADS=all]
// Adapters of all linear layers are made up; the three kinds of step are timed in turn, and medians are printed.
#include <nihao/files/gguf_writer.hpp>
#include <nihao/models/load.hpp>
#include <nihao/sampling/random.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>

using namespace nihao;

namespace {

constexpr std::size_t sequences = 8, rounds = 60, before = 64;

// One adapter for every matrix of the blocks of `model`.
Expected<void> write_adapter(const std::string& path, const TensorFile& model, std::uint64_t rank, std::uint64_t seed) {
  GgufWriter out;
  out.add("general.type", "adapter");
  out.add("adapter.type", "lora");
  out.add("adapter.lora.alpha", static_cast<float>(rank));
  Random random(seed);
  std::vector<std::vector<float>> kept;
  const auto add = [&](std::string name, std::uint64_t rows, std::uint64_t cols) {
    std::vector<float>& values = kept.emplace_back(rows * cols);
    for (float& v : values) v = static_cast<float>(0.02 * (random.uniform() - 0.5));
    const std::uint64_t shape[] = {rows, cols};
    return out.add_tensor(name, FormatId::F32, shape, std::as_bytes(std::span(values)));
  };
  for (const TensorInfo& t : model.tensors()) {
    if (t.rank != 2 || t.name.substr(0, 4) != "blk.") continue;
    NIHAO_CHECK(add(concat(t.name, ".lora_a"), rank, t.cols()));
    NIHAO_CHECK(add(concat(t.name, ".lora_b"), t.rows(), rank));
  }
  return out.write(path);
}

Expected<void> measure(const std::string& path, std::uint64_t rank, int threads) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() /
                                       concat("nihao_adapters_", std::chrono::steady_clock::now().time_since_epoch().count());
  std::filesystem::create_directories(folder);
  LoadOptions options{.cpu = {.threads = threads}};
  {
    NIHAO_TRY(const Gguf file, Gguf::open(path));
    for (std::size_t i = 0; i < sequences; ++i) {
      options.adapters.push_back((folder / concat(i, ".gguf")).string());
      NIHAO_CHECK(write_adapter(options.adapters.back(), file.tensors(), rank, i + 1));
    }
  }
  NIHAO_TRY(const AnyModel model, load(path, options));
  std::filesystem::remove_all(folder);
  NIHAO_TRY(const auto context, model.context({.positions = before + 3 * rounds + 1, .sequences = sequences}));
  Random random(1);
  const auto token = [&] { return static_cast<TokenId>(random.next() % model.config().vocab); };
  for (std::size_t s = 0; s < sequences; ++s) {
    std::vector<TokenId> ids(before);
    for (TokenId& id : ids) id = token();
    if (auto read = context->prefill(s, ids); !read) return std::move(read).error();
  }
  const struct {
    std::string_view name;
    std::uint32_t (*adapter)(std::size_t sequence);
  } kinds[] = {{"no adapter", [](std::size_t) { return no_adapter; }},
               {"one for all", [](std::size_t) { return 0u; }},
               {"one for each", [](std::size_t s) { return static_cast<std::uint32_t>(s); }}};
  std::vector<double> seconds[3];
  for (std::size_t round = 0; round < rounds; ++round)
    for (std::size_t kind = 0; kind < 3; ++kind) {
      TokenId ids[sequences];
      std::vector<SequenceTokens> batch;
      for (std::size_t s = 0; s < sequences; ++s) {
        ids[s] = token();
        batch.push_back({s, std::span(&ids[s], 1), Wanted::last, kinds[kind].adapter(s)});
      }
      const auto start = std::chrono::steady_clock::now();
      if (auto step = context->step(batch); !step) return std::move(step).error();
      seconds[kind].push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
  double median[3];
  for (std::size_t kind = 0; kind < 3; ++kind) {
    std::sort(seconds[kind].begin(), seconds[kind].end());
    median[kind] = seconds[kind][rounds / 2];
    fmt::print("{:<14}{:8.3f} ms a step of {}, {:.2f} of no adapter\n", kinds[kind].name, 1e3 * median[kind], sequences,
               median[kind] / median[0]);
  }
  fmt::print("rank {}, {} threads: one for each costs {:.2f} of one for all\n", rank, model.device().workers(),
             median[2] / median[1]);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return fmt::print(stderr, "usage: {} MODEL.gguf [RANK] [THREADS]\n", argv[0]), 2;
  const auto number = [&](int i, int otherwise) { return argc > i ? std::atoi(argv[i]) : otherwise; };
  if (const auto done = measure(argv[1], static_cast<std::uint64_t>(number(2, 16)), number(3, 0)); !done)
    return fmt::print(stderr, "{}\n", done.error().message()), 1;
  return 0;
}
