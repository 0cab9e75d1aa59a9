// A sequence's logits are the same bits alone and in any batch, in any chunking, on any number of threads and any instruction
// set.
#include "golden_models.hpp"
#include "nihao/models/load.hpp"
#include "nihao/models/load_hf.hpp"
#include "support/build_kind.hpp"

using namespace nihao;
using namespace nihao::test;

namespace {

std::vector<TokenId> made_up_prompt(std::uint32_t vocab, std::size_t length, std::size_t seed) {
  std::vector<TokenId> ids;
  for (std::size_t i = 0; i < length; ++i) ids.push_back(static_cast<TokenId>((37 * i * i + 11 * i + 101 * seed + 3) % vocab));
  return ids;
}

/// Logits of the prompt in a batch with four others of other lengths, cut into parts of 1 to 9 tokens that differ by sequence and
/// step: prefill of some beside decode of others.
std::vector<float> in_a_batch(const AnyModel& model, std::span<const TokenId> prompt, KvType kv) {
  std::vector<std::vector<TokenId>> all;
  for (std::size_t s = 0; s < 5; ++s)
    all.push_back(s == 2 ? std::vector<TokenId>(prompt.begin(), prompt.end())
                         : made_up_prompt(model.config().vocab, prompt.size() * (s + 1) / 4 + 1, s + 1));
  const auto context = require(model.context({.positions = 2 * prompt.size() + 8, .sequences = 5, .kv = kv}));
  std::vector<float> logits;
  std::vector<std::size_t> done(5, 0);
  for (std::size_t step = 0; done[2] < prompt.size(); ++step) {
    std::vector<SequenceTokens> batch;
    std::size_t before = 0, mine = 0;  // rows of logits
    for (std::size_t s = 0; s < 5; ++s) {
      const std::size_t count = std::min(1 + (step * (s + 3) + s) % 9, all[s].size() - done[s]);
      if (count == 0) continue;
      batch.push_back({s, std::span(all[s]).subspan(done[s], count),
                       s == 2 || s == 4 ? Wanted::all
                       : s == 1         ? Wanted::none
                                        : Wanted::last});
      done[s] += count;
      if (s == 0) before += 1;
      if (s == 2) mine = count;
    }
    const auto rows = require(context->step(batch));
    const auto part = copy(rows.slice_rows(before, mine));
    logits.insert(logits.end(), part.begin(), part.end());
  }
  return logits;
}

/// Every chunking, thread count and batch on the best set; fewer of them, which must give the same bits, on the others.
template <class Load>
void check_invariance(const std::string& name, const Load& load, std::size_t length, KvType kv = KvType::f16,
                      bool exact = false) {
  CAPTURE(name);
  std::vector<float> expected;
  for (std::size_t i = std::size(all_isas); i-- > 0;) {
    const Isa isa = all_isas[i];
    const bool best = isa == best_isa();
    if (!cpu_supports(isa) || (sanitized && !best && (isa != Isa::portable || length > 500))) continue;
    CAPTURE(to_string(isa));
    for (const int threads : {1, 2}) {
      if (!best && threads == 1) continue;
      CAPTURE(threads);
      const AnyModel model = require(load(LoadOptions{.cpu = {.threads = threads, .isa = isa, .exact = exact}}));
      const auto prompt = made_up_prompt(model.config().vocab, length, 0);
      for (const std::size_t chunk : {length, std::size_t{7}, std::size_t{64}, std::size_t{1}}) {
        if ((!best || (sanitized && length > 500)) && (chunk == 64 || chunk == 1)) continue;
        const auto context = require(model.context({.positions = 2 * length + 8, .chunk = 1024, .kv = kv}));
        const auto logits = logits_of(*context, prompt, chunk);
        if (expected.empty()) {
          expected = logits;
          CHECK(std::all_of(expected.begin(), expected.end(), [](float v) { return std::isfinite(v); }));
        }
        CHECK_MESSAGE(logits == expected, "chunks of ", chunk);
      }
      if (best) CHECK_MESSAGE(in_a_batch(model, prompt, kv) == expected, "in a batch of five");
    }
  }
}

}  // namespace

TEST_CASE(
    "a sequence has the same bits alone, in a batch of five, in any chunks, on one and two threads and every set: families") {
  for (const GoldenCase& one : golden_cases())
    check_invariance(one.name, [&](const LoadOptions& options) { return load_hf(one.folder.string(), options); }, 80);
}

TEST_CASE(
    "a sequence has the same bits alone, in a batch of five, in any chunks, on one and two threads and every set: formats") {
  const auto folder = data("golden/quant/gguf");
  if (!folder) NIHAO_SKIP("golden/quant/gguf");
  for (const FormatId format : all_formats) {
    if (!has_golden_file(format)) continue;
    const std::string path = (*folder / concat(format_info(format).name, ".gguf")).string();
    check_invariance(path, [&](const LoadOptions& options) { return load(path, options); }, sanitized ? 20 : 80);
  }
}

TEST_CASE(
    "a sequence has the same bits alone, in a batch of five, in any chunks, on one and two threads and every set: checkpoints") {
  const auto folder = data("golden/quant/hf");
  if (!folder) NIHAO_SKIP("golden/quant/hf");
  for (const std::string name : quantized_cases)
    check_invariance(
        name, [&](const LoadOptions& options) { return load_hf((*folder / name).string(), options); }, sanitized ? 20 : 80);
}

TEST_CASE("bits do not change over attention's splits, with any type of keys and values, nor in the exact mode") {
  const auto models = data("golden/models");
  const auto folder = data("golden/quant/gguf");
  if (!models || !folder) NIHAO_SKIP("golden/models and golden/quant/gguf");
  const std::string path = (*folder / "Q4_K.gguf").string();
  const auto quantized = [&](const LoadOptions& options) { return load(path, options); };
  const auto windows = [&](const LoadOptions& options) { return load_hf((*models / "gemma3_text").string(), options); };
  check_invariance("Q4_K over 540 positions", quantized, 540, KvType::q8_0);
  check_invariance("gemma3_text over 540 positions", windows, 540, KvType::f16);
  check_invariance("Q4_K, f32", quantized, 70, KvType::f32);
  check_invariance("Q4_K, bf16", quantized, 70, KvType::bf16);
  check_invariance("Q4_K, exact", quantized, 70, KvType::f32, true);
}
