#include "models/golden_models.hpp"
#include "nihao/models/load.hpp"
#include "nihao/quantize/collect_importance.hpp"
#include "nihao/trace/recorder.hpp"

using namespace nihao;
using namespace nihao::test;

TEST_CASE("an importance matrix is read back as it was written") {
  const TempFolder folder;
  ImportanceMatrix matrix;
  matrix.datasets = {"a text"};
  matrix.chunks = 3, matrix.chunk_size = 512;
  matrix.add({"blk.1.ffn_up_exps.weight", {1, 4, 0, 0}, {2, 0}});
  matrix.add({"blk.0.attn_q.weight", {8, 0, 4, 4}, {4}});
  matrix.add({"blk.0.attn_k_b.weight", {1, 3, 2, 2, 0, 5}, {4}});  // three heads with one count, as llama-imatrix has them
  REQUIRE(matrix.write(folder.path("m")).has_value());
  const ImportanceMatrix read = require(ImportanceMatrix::read(folder.path("m")));
  CHECK(read.datasets == matrix.datasets);
  CHECK(read.chunks == 3);
  CHECK(read.chunk_size == 512);
  REQUIRE(read.entries().size() == 3);
  CHECK(read.entries()[0].tensor == "blk.0.attn_k_b.weight");
  CHECK(read.find("blk.1.ffn_up_exps.weight")->sums == std::vector<float>{1, 4, 0, 0});
  CHECK(read.find("blk.1.ffn_up_exps.weight")->rows == std::vector<float>{2, 0});
  CHECK(read.find("no.weight") == nullptr);

  // Relative to their mean, never quite 0; an expert that no token went to has ones.
  CHECK(require(read.weights("blk.0.attn_q.weight", 1, 4)) == std::vector<float>{2, 1e-3f, 1, 1});
  CHECK(require(read.weights("blk.1.ffn_up_exps.weight", 2, 2)) == std::vector<float>{0.4f, 1.6f, 1, 1});
  CHECK(require(read.weights("blk.0.attn_k_b.weight", 3, 2)) == std::vector<float>{0.5f, 1.5f, 1, 1, 1e-3f, 2});
  CHECK(require(read.weights("blk.0.attn_q.weight", 2, 4)) == std::vector<float>{2, 1e-3f, 1, 1, 2, 1e-3f, 1, 1});
  CHECK(require(read.weights("no.weight", 1, 4)).empty());
  CHECK(read.weights("blk.0.attn_q.weight", 1, 8).error().code == ErrorCode::mismatch);
  CHECK(read.weights("blk.1.ffn_up_exps.weight", 3, 2).error().code == ErrorCode::mismatch);
  CHECK(read.weights("blk.0.attn_k_b.weight", 2, 2).error().code == ErrorCode::mismatch);
}

TEST_CASE("files that are no importance matrices are refused") {
  const TempFolder folder;
  CHECK(ImportanceMatrix::read(folder.path("none")).error().code == ErrorCode::io);
  GgufWriter other;
  other.add("general.type", "model");
  REQUIRE(other.write(folder.path("model")).has_value());
  CHECK(ImportanceMatrix::read(folder.path("model")).error().code == ErrorCode::malformed);
  const auto write = [&](std::vector<float> sums, const char* counts_name) {
    static std::vector<float> kept, one{1};
    kept = std::move(sums);
    GgufWriter writer;
    writer.add("general.type", "imatrix");
    const std::uint64_t size[] = {1, kept.size()}, single[] = {1, 1};
    REQUIRE(writer.add_tensor("a.weight.in_sum2", FormatId::F32, size, std::as_bytes(std::span(kept))).has_value());
    REQUIRE(writer.add_tensor(counts_name, FormatId::F32, single, std::as_bytes(std::span(one))).has_value());
    REQUIRE(writer.write(folder.path("m")).has_value());
    return ImportanceMatrix::read(folder.path("m"));
  };
  CHECK(write({1, 2}, "a.weight.counts").has_value());
  CHECK(write({1, 2}, "b.weight.counts").error().code == ErrorCode::missing);
  CHECK(write({1, -2}, "a.weight.counts").error().code == ErrorCode::malformed);
  CHECK(write({1, std::nanf("")}, "a.weight.counts").error().message().find("a.weight") != std::string::npos);
}

TEST_CASE("the importance of an input is its sum of squares over the text") {
  const auto path = data("golden/quant/gguf/F32.gguf");
  if (!path) NIHAO_SKIP("golden/quant/gguf");
  const AnyModel model = require(load(path->string(), {.cpu = {.threads = 2, .exact = true}}));
  const auto context = require(model.context({.positions = 16, .chunk = 5}));
  std::vector<TokenId> tokens;
  for (TokenId i = 0; i < 37; ++i) tokens.push_back(7 * i % 250 + 3);
  const ImportanceMatrix matrix = require(collect_importance(*context, model.config(), model.tensors(), tokens, {.window = 16}));
  CHECK(matrix.chunks == 2);
  for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"}) {
    const ImportanceEntry* const entry = matrix.find(concat("blk.0.", name, ".weight"));
    REQUIRE_MESSAGE(entry != nullptr, name);
    CHECK(entry->sums.size() == model.tensors().find(entry->tensor)->cols());
    CHECK(entry->rows == std::vector<float>{32});
  }
  // The same inputs as a recorder sees them.
  Recorder recorder;
  const ObserverRef observer(recorder);
  const auto again = require(model.context({.positions = 16}));
  std::vector<double> sums(model.tensors().find("blk.0.ffn_down.weight")->cols());
  for (std::size_t w = 0; w < 2; ++w) {
    again->cache().truncate(0, 0);
    const SequenceTokens part{0, std::span<const TokenId>(tokens).subspan(16 * w, 16), Wanted::none};
    require(again->step(std::span(&part, 1), &observer));
  }
  for (const Record& r : recorder.records())
    if (r.name == "ffn_act" && r.layer == 0)
      for (std::size_t i = 0; i < r.values.size(); ++i)
        sums[i % r.cols] += static_cast<double>(r.values[i]) * static_cast<double>(r.values[i]);
  const auto& found = matrix.find("blk.0.ffn_down.weight")->sums;
  for (std::size_t i = 0; i < sums.size(); ++i) CHECK(static_cast<double>(found[i]) == doctest::Approx(sums[i]).epsilon(1e-4));

  CHECK(collect_importance(*context, model.config(), model.tensors(), tokens, {.window = 64}).error().code ==
        ErrorCode::invalid_argument);
  std::stop_source stop;
  stop.request_stop();
  CollectOptions stopped{.window = 16};
  stopped.hooks.stop = stop.get_token();
  CHECK(collect_importance(*context, model.config(), model.tensors(), tokens, stopped).error().code == ErrorCode::cancelled);
}
