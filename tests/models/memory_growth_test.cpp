// What memory grows with: a prompt's length, not its square, since a row of scores is never stored; and a file's size, once.
#include "models/golden_models.hpp"
#include "nihao/files/gguf_writer.hpp"
#include "nihao/kernels/cpu/ops.hpp"
#include "nihao/models/load.hpp"
#include "nihao/models/load_hf.hpp"
#include "support/build_kind.hpp"
#include "support/child_memory.hpp"

using namespace nihao;
using namespace nihao::test;

namespace {

constexpr std::uint64_t mib = 1 << 20;
double megabytes(std::uint64_t bytes) { return static_cast<double>(bytes) / 1e6; }

/// A llama of four layers of width 1024 in Q8_0, some 71 MB, without a tokenizer. Its weights are zeros, in pages of their own.
void write_model(const std::string& path) {
  GgufWriter file;
  const auto number = [&](const char* key, std::uint32_t value) { file.add(concat("llama.", key), value); };
  file.add("general.architecture", "llama");
  number("embedding_length", 1024), number("block_count", 4), number("feed_forward_length", 4096);
  number("attention.head_count", 16), number("attention.head_count_kv", 16), number("context_length", 64);
  number("vocab_size", 256);
  file.add("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  const std::vector<std::byte> zeros(row_bytes(FormatId::Q8_0, 4096) * 1024);
  const auto matrix = [&](const std::string& name, std::uint64_t rows, std::uint64_t cols) {
    const std::uint64_t shape[] = {rows, cols};
    REQUIRE(file.add_tensor(name, FormatId::Q8_0, shape, std::span(zeros).first(rows * row_bytes(FormatId::Q8_0, cols))));
  };
  const auto norm = [&](const std::string& name) {
    const std::uint64_t shape[] = {1024};
    REQUIRE(file.add_tensor(name, FormatId::F32, shape, std::span(zeros).first(4096)));
  };
  matrix("token_embd.weight", 256, 1024), norm("output_norm.weight");
  for (int i = 0; i < 4; ++i) {
    const std::string block = concat("blk.", i, ".");
    norm(block + "attn_norm.weight"), norm(block + "ffn_norm.weight");
    for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output"}) matrix(concat(block, name, ".weight"), 1024, 1024);
    matrix(block + "ffn_gate.weight", 4096, 1024), matrix(block + "ffn_up.weight", 4096, 1024);
    matrix(block + "ffn_down.weight", 1024, 4096);
  }
  REQUIRE(file.write(path));
}

}  // namespace

TEST_CASE("loading a model takes its file's size once, on one thread and on two") {
  if (!quick_build) return;  // a sanitizer takes memory of its own
  const TempFolder folder;
  const std::string path = (folder.root() / "model.gguf").string();
  write_model(path);
  const std::uint64_t size = std::filesystem::file_size(path);
  REQUIRE(size > 64 * mib);
  for (const int threads : {1, 2}) {
    const auto growth = peak_growth([&] {
      const auto model = load(path, {.cpu = {.threads = threads}});
      return model.has_value() && model->config().layers.size() == 4;
    });
    REQUIRE(growth.has_value());
    MESSAGE(threads, " threads: ", megabytes(*growth), " MB for a file of ", megabytes(size), " MB");
    CHECK(*growth > size / 2);  // or nothing was measured
    // What is packed lies in chunks of 32 MiB, of which huge pages may make a little more than is used.
    CHECK(*growth < size + size / 10 + 8 * mib);
  }
}

TEST_CASE("scores are never stored: memory for a prompt read in one step grows with its length, not with its square") {
  const auto models = data("golden/models");
  if (!models) NIHAO_SKIP("golden/models");
  // What is reserved.
  const Cpu cpu = *Cpu::create({.threads = 2});
  const CacheSpec spec{2, 16};
  const auto reserved = [&](std::size_t positions) {
    return require(CpuScratch::create(cpu, {positions, 128, 16, 4, positions})).bytes() +
           require(KvCache::create(std::span(&spec, 1), KvType::f16, positions)).bytes();
  };
  for (std::size_t positions = 1024; positions <= 4096; positions *= 2)
    CHECK(reserved(4 * positions) - reserved(2 * positions) <= 2 * (reserved(2 * positions) - reserved(positions)) + 4096);
  if (!quick_build) return;
  // What is in memory at the peak.
  const AnyModel model = require(load_hf((*models / "llama_gqa").string(), {.cpu = {.threads = 1}}));
  std::vector<TokenId> ids;
  for (std::size_t i = 0; i < 8192; ++i) ids.push_back(static_cast<TokenId>((i * 7 + i / 31) % 256));
  std::vector<std::uint64_t> growth;
  for (std::size_t positions = 1024; positions <= 8192; positions *= 2) {
    const auto grown = peak_growth([&] {
      const auto context = model.context({.positions = positions, .chunk = positions});
      return context.has_value() && (*context)->prefill(0, std::span(ids).first(positions)).has_value();
    });
    REQUIRE(grown.has_value());
    MESSAGE(positions, " positions: ", megabytes(*grown), " MB");
    if (!growth.empty()) CHECK(*grown <= 2 * growth.back() + 8 * mib);  // huge pages come 2 MiB at a time
    growth.push_back(*grown);
  }
  CHECK(growth.back() > mib);
  CHECK(growth.back() < std::uint64_t{8192} * 8192 * sizeof(float) / 4);  // a quarter of one head's scores
}
