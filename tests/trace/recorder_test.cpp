#include "models/golden_models.hpp"
#include "nihao/models/load_hf.hpp"
#include "nihao/trace/reference_tensors.hpp"

#include <set>

using namespace nihao;
using namespace nihao::test;

namespace {

Seen seen(std::string_view name, int layer, const std::vector<float>& values, std::size_t rows, Work work = {}) {
  return {name, layer, MatrixView<const float>(values.data(), rows, values.size() / rows), work};
}

const NamedTensor& named(const std::vector<NamedTensor>& tensors, const std::string& name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const auto& t) { return t.name == name; });
  REQUIRE_MESSAGE(found != tensors.end(), name);
  return *found;
}

Config two_heads() {
  Config config;
  config.heads = 2;
  config.kv_heads = 1;
  config.head_dim = 2;
  config.ropes.resize(1);
  return config;
}

}  // namespace

TEST_CASE("a recorder keeps copies, in order, with the step, the time and the work of each") {
  Recorder recorder;
  std::vector<float> x{1, 2, 3, 4, 5, 6};
  recorder.see({"begin", -1, {}});
  recorder.see(seen("embed", -1, x, 2));
  x[0] = 9;
  recorder.see(seen("q_proj", 3, x, 3, {100, 7}));
  recorder.see({"begin", -1, {}});
  recorder.see(seen("embed", -1, x, 1, {1, 1}));
  REQUIRE(recorder.records().size() == 3);
  const Record& first = recorder.records()[0];
  CHECK(first.name == "embed");
  CHECK(first.layer == -1);
  CHECK(first.rows == 2);
  CHECK(first.cols == 3);
  CHECK(first.values[0] == 1);
  CHECK(recorder.records()[1].values[0] == 9);
  CHECK(recorder.records()[1].layer == 3);
  CHECK(recorder.records()[1].step == 0);
  CHECK(recorder.records()[2].step == 1);
  for (const Record& r : recorder.records()) CHECK((r.seconds >= 0 && r.seconds < 60));
  CHECK(recorder.steps() == 2);
  CHECK(recorder.work().bytes == 101);
  CHECK(recorder.work().flops == 8);
  recorder.clear();
  CHECK(recorder.records().empty());
  CHECK(recorder.bytes() == 0);
}

TEST_CASE("rows of a view that is wider than they are kept without what lies between them") {
  const std::vector<float> x{1, 2, -1, 3, 4, -1};
  Recorder recorder;
  recorder.see({"v_proj", 0, MatrixView<const float>(x.data(), 2, 2, 3)});
  CHECK(std::vector<float>(recorder.records()[0].values.begin(), recorder.records()[0].values.end()) ==
        std::vector<float>{1, 2, 3, 4});
}

TEST_CASE("a full recorder still counts and times, and leaves out what it did not keep") {
  const std::vector<float> x(100, 1.0f);
  Recorder recorder({.max_bytes = 1000});
  recorder.see(seen("embed", -1, x, 10));
  CHECK_FALSE(recorder.full());
  for (int i = 0; i < 3; ++i) recorder.see(seen("hidden", i, x, 10, {5, 5}));
  CHECK(recorder.full());
  CHECK(recorder.bytes() <= 1000);
  CHECK(recorder.records().size() == 4);
  CHECK(recorder.work().flops == 15);
  const auto tensors = reference_tensors(recorder.records(), two_heads());
  CHECK(tensors.size() == 2);
  CHECK(named(tensors, "hidden.layer0").values == x);
}

TEST_CASE("tensors of several steps are joined by rows, and heads are set apart") {
  Recorder recorder;
  recorder.see({"begin", -1, {}});
  recorder.see(seen("embed", -1, {1, 2, 3, 4}, 2));
  recorder.see(seen("q_after_rope", 0, {10, 11, 20, 21, 12, 13, 22, 23}, 2));
  recorder.see(seen("k_after_rope", 0, {1, 2, 3, 4}, 2));
  recorder.see(seen("rope.cos", 0, {0.5f, 0.25f}, 2));
  recorder.see(seen("rope.cos", 1, {0.5f, 0.25f}, 2));
  recorder.see({"begin", -1, {}});
  recorder.see(seen("embed", -1, {5, 6}, 1));
  recorder.see(seen("q_after_rope", 0, {14, 15, 24, 25}, 1));
  recorder.see(seen("logits", -1, {7, 8, 9}, 1));
  const auto tensors = reference_tensors(recorder.records(), two_heads());
  const NamedTensor& embed = named(tensors, "hidden.embed");
  CHECK(embed.shape == std::vector<std::uint64_t>{3, 2});
  CHECK(embed.values == std::vector<float>{1, 2, 3, 4, 5, 6});
  const NamedTensor& q = named(tensors, "layer0.q_after_rope");
  CHECK(q.shape == std::vector<std::uint64_t>{2, 3, 2});
  CHECK(q.values == std::vector<float>{10, 11, 12, 13, 14, 15, 20, 21, 22, 23, 24, 25});
  CHECK(named(tensors, "layer0.k_after_rope").shape == std::vector<std::uint64_t>{1, 2, 2});
  CHECK(named(tensors, "rope.cos").values == std::vector<float>{0.5f, 0.5f, 0.25f, 0.25f});
  CHECK(named(tensors, "logits").shape == std::vector<std::uint64_t>{1, 3});
  CHECK(tensors.size() == 5);

  Config two_kinds = two_heads();
  two_kinds.ropes.resize(2);
  CHECK(named(reference_tensors(recorder.records(), two_kinds), "layer1.rope.cos").shape == std::vector<std::uint64_t>{2, 2});
}

TEST_CASE("a prompt in pieces gives the recording of the prompt in one, attention's probabilities and tiles among it") {
  const auto models = data("golden/models");
  if (!models) NIHAO_SKIP("golden/models");
  for (const std::string name : {"llama_gqa", "gemma3_text", "olmo2"}) {
    const AnyModel model = require(load_hf((*models / name).string()));
    const std::vector<TokenId> ids{3, 14, 15, 92, 65, 35, 89, 79, 32, 38, 46, 26, 43, 38, 32, 79, 50, 28, 84, 19};
    const auto record = [&](std::size_t chunk) {
      const auto context = require(model.context({.positions = 32}));
      Recorder recorder({.attention_probabilities = true, .attention_tiles = true});
      const ObserverRef observer(recorder);
      for (std::size_t done = 0; done < ids.size(); done += chunk) {
        const SequenceTokens part{0, std::span(ids).subspan(done, std::min(chunk, ids.size() - done)), Wanted::all};
        require(context->step(std::span(&part, 1), &observer));
      }
      return std::pair(recorder.work(), reference_tensors(recorder.records(), model.config()));
    };
    const auto [whole_work, whole_tensors] = record(ids.size());
    const auto [parts_work, parts_tensors] = record(7);
    const std::vector<NamedTensor>&whole = whole_tensors, &parts = parts_tensors;  // a structured binding cannot be captured
    CHECK(parts_work.flops == whole_work.flops);
    CHECK(parts_work.bytes > whole_work.bytes);  // weights are read in every step
    REQUIRE(parts.size() == whole.size());
    for (std::size_t i = 0; i < whole.size(); ++i) {
      CAPTURE(whole[i].name);
      CHECK(parts[i].name == whole[i].name);
      CHECK(parts[i].shape == whole[i].shape);
      CHECK(parts[i].values == whole[i].values);
    }
    const NamedTensor& probabilities = named(whole, "layer0.attn_probs");
    const std::size_t heads = model.config().heads, n = ids.size();
    CHECK(probabilities.shape == std::vector<std::uint64_t>{heads, n, n});
    for (std::size_t row = 0; row < heads * n; ++row) {
      double total = 0;
      for (std::size_t p = 0; p < n; ++p) total += static_cast<double>(probabilities.values[row * n + p]);
      CHECK(total == doctest::Approx(1.0).epsilon(1e-6));
    }
    // One tile: its maximum and denominator make the largest probability, 1 / l.
    const NamedTensor& tiles = named(whole, "layer0.attn_tiles");
    CHECK(tiles.shape == std::vector<std::uint64_t>{heads, n, 3});
    for (std::size_t row = 0; row < heads * n; ++row) {
      const float* all = probabilities.values.data() + row * n;
      CHECK(1.0f / tiles.values[3 * row + 1] == doctest::Approx(*std::max_element(all, all + n)).epsilon(1e-5));
      CHECK(tiles.values[3 * row + 2] == 0);
    }
  }
}

TEST_CASE("the recorded work is the model's: two operations for every weight and token, the weights' bytes once a step") {
  const auto models = data("golden/models");
  if (!models) NIHAO_SKIP("golden/models");
  const AnyModel model = require(load_hf((*models / "llama_gqa").string()));
  const auto context = require(model.context({.positions = 32}));
  Recorder recorder;
  const ObserverRef observer(recorder);
  const TokenId ids[] = {1, 2, 3, 4, 5};
  const SequenceTokens part{0, ids, Wanted::last};
  require(context->step(std::span(&part, 1), &observer));
  const Config& c = model.config();
  const std::uint64_t layer = 2ull * 64 * 64 + 2ull * 64 * 32 + 3ull * 64 * 128, head = 256ull * 64, scores = 15;  // 1 + ... + 5
  std::uint64_t attention = 0;
  for (const Record& r : recorder.records())
    if (r.name == "attn_heads_concat") attention += r.work.flops;
  CHECK(attention == c.layers.size() * scores * 4 * c.heads * c.head_dim);
  CHECK(recorder.work().flops - attention == 2 * (5 * c.layers.size() * layer + head));
  std::uint64_t bytes = 0;
  for (const Record& r : recorder.records())
    if (r.name != "attn_heads_concat") bytes += r.work.bytes;
  CHECK(bytes == 4 * (c.layers.size() * layer + head));
  CHECK(recorder.work().bytes - bytes ==
        c.layers.size() * 5 * 2 * c.kv_heads * c.head_dim * 2);  // each key and value once, in f16
}
