// What the program takes at most: the file nearly once, and keys and values of what was read.
#include "nihao/kernels/kv_view.hpp"
#include "program/child.hpp"
#include "support/build_kind.hpp"
#include "support/data.hpp"

using namespace nihao;

namespace {

struct RealModel {
  std::string file;
  std::size_t layers;
  std::uint32_t kv_heads, head_dim;
};

/// The peak of `nihao run` over a text may be 1.3 times the file, and the cache's blocks for `positions`.
void check_peak(const RealModel& model, const std::vector<std::string>& text, std::size_t positions) {
  const auto file = test::model(model.file);
  if (!file) NIHAO_SKIP(model.file);
  std::vector<std::string> arguments{"run", "--model", file->string(), "-n", "4", "--temp", "0", "--ignore-eos"};
  arguments.insert(arguments.end(), text.begin(), text.end());
  test::Child child(arguments);
  REQUIRE(child.finish() == 0);
  const auto file_size = static_cast<double>(std::filesystem::file_size(*file));
  const std::size_t blocks = (positions + kv_block - 1) / kv_block;
  const auto cache =
      static_cast<double>(KvLayout{KvType::f16, model.kv_heads, model.head_dim}.block_bytes() * blocks * model.layers);
  const auto peak = static_cast<double>(child.peak_rss_bytes());
  MESSAGE(model.file, ", ", positions, " positions: ", peak / 1e6, " MB of ", (1.3 * file_size + cache) / 1e6);
  CHECK(peak > 0.5 * file_size);  // or nothing was measured; a table whose rows are looked up stays in the file
  CHECK(peak <= 1.3 * file_size + cache);
}

constexpr const char* reference_text = "peers/reference_text.txt";

void check_long_and_short(const RealModel& model) {
  if (!test::quick_build) return;  // sanitizers take memory of their own
  const auto text = test::data(reference_text);
  if (!text) NIHAO_SKIP(reference_text);
  // 4071 tokens of SmolLM2; --json measures the machine, after the model.
  check_peak(model, {"--file", text->string(), "--json"}, 4096);
  check_peak(model, {"The capital of France is"}, 16);
}

}  // namespace

TEST_CASE("a run takes 1.3 times the file and what was written of the cache at most: SmolLM2") {
  check_long_and_short({"smollm2-135m-q4_1.gguf", 30, 3, 64});
}
TEST_CASE("a run takes 1.3 times the file and what was written of the cache at most: Gemma 3") {
  check_long_and_short({"gemma3-270m-q4_k_m.gguf", 18, 1, 256});
}
TEST_CASE("a run takes 1.3 times the file and what was written of the cache at most: Qwen2.5") {
  check_long_and_short({"qwen2.5-coder-0.5b-q4_k_m.gguf", 24, 2, 64});
}
