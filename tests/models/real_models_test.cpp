// The three real models: bits that depend on nothing but the tokens, and figures next to a float64 reference.
#include "golden_models.hpp"
#include "nihao/files/json.hpp"
#include "nihao/models/load.hpp"
#include "support/build_kind.hpp"

#include <optional>

using namespace nihao;
using namespace nihao::test;

namespace {

constexpr const char* smollm2 = "smollm2-135m-q4_1";
constexpr const char* gemma3 = "gemma3-270m-q4_k_m";
constexpr const char* qwen25 = "qwen2.5-coder-0.5b-q4_k_m";

struct Real {
  std::string file;
  Json reference;
};
std::optional<Real> real(const std::string& name) {
  const auto file = model(name + ".gguf"), reference = data("peers/reference/" + name + ".json");
  if (!file || !reference) return std::nullopt;
  return Real{file->string(), require(parse_json(read_text(*reference)))};
}

std::string at(std::size_t i, const char* key) { return concat("gen.", i, ".", key); }

/// The reference's prompts, and a text of more than a hundred tokens (the prompts have 3 to 40).
std::vector<std::vector<TokenId>> prompts_of(const Json& reference) {
  std::vector<std::vector<TokenId>> prompts;
  for (std::size_t i = 0; i < reference["gen"].size(); ++i)
    prompts.push_back(require(json_array<TokenId>(reference, at(i, "prompt_ids"))));
  prompts.push_back(require(json_array<TokenId>(reference, "ppl.chunk_ids.0")));
  prompts.back().resize(110);
  return prompts;
}

void check_bits(const std::string& name) {
  const auto model_data = real(name);
  if (!model_data) NIHAO_SKIP(name);
  auto prompts = prompts_of(model_data->reference);
  if (!quick_build) prompts.resize(5);
  REQUIRE(prompts.size() >= 5);
  std::vector<std::vector<float>> expected;
  for (const int threads : {1, 2}) {
    CAPTURE(threads);
    const AnyModel model = require(load(model_data->file, {.cpu = {.threads = threads}}));
    const auto context = require(model.context({.positions = 128, .sequences = 5}));
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      CAPTURE(i);
      for (const std::size_t chunk : {prompts[i].size(), std::size_t{1}, std::size_t{7}, std::size_t{64}}) {
        if (sanitized && (chunk == 1 || chunk == 64)) continue;
        context->cache().truncate(0, 0);
        auto logits = logits_of(*context, prompts[i], chunk);
        if (i == expected.size()) {
          CHECK(std::all_of(logits.begin(), logits.end(), [](float v) { return std::isfinite(v); }));
          expected.push_back(std::move(logits));
        } else {
          CHECK_MESSAGE(logits == expected[i], "in chunks of ", chunk);
        }
      }
    }
    // Each prompt in a batch with the four after it.
    for (std::size_t first = 0; first < prompts.size(); first += 5) {
      std::vector<SequenceTokens> batch;
      for (std::size_t s = 0; s < 5; ++s) {
        context->cache().truncate(s, 0);
        batch.push_back({s, prompts[(first + s) % prompts.size()], Wanted::all});
      }
      const auto logits = require(context->step(batch));
      std::size_t row = 0;
      for (std::size_t s = 0; s < 5; ++s) {
        const std::size_t count = batch[s].tokens.size();
        CHECK_MESSAGE(copy(logits.slice_rows(row, count)) == expected[(first + s) % prompts.size()], "prompt ", s,
                      " of the batch from ", first);
        row += count;
      }
    }
  }
}

/// The exact mode with keys and values in f32 against the reference's float64: the ten likeliest tokens after every prompt, and
/// the greedy answer while the choice is clear, up to `most` tokens of it.
void check_figures(const std::string& name, std::size_t most = sanitized ? 2 : 64) {
  const auto model_data = real(name);
  if (!model_data) NIHAO_SKIP(name);
  const Json& reference = model_data->reference;
  const AnyModel model = require(load(model_data->file, {.cpu = {.exact = true}}));
  const auto context = require(model.context({.positions = 128, .kv = KvType::f32}));
  const std::size_t count = quick_build ? reference["gen"].size() : 1;
  REQUIRE(count >= 1);
  double worst = 0;
  for (std::size_t i = 0; i < count; ++i) {
    CAPTURE(i);
    context->cache().truncate(0, 0);
    const auto prompt = require(json_array<TokenId>(reference, at(i, "prompt_ids")));
    auto logits = require(context->prefill(0, prompt));

    const Json& top = reference["gen"][i]["exact"]["top10"];
    REQUIRE(top.size() == 10);
    for (std::size_t k = 0; k < top.size(); ++k) {
      const auto value = static_cast<double>(logits.row(0)[top[k][0].get<std::size_t>()]);
      worst = std::max(worst, std::abs(value - top[k][1].get<double>()));
      if (k == 0 || top[k - 1][1].get<double>() - top[k][1].get<double>() <= 1e-2) continue;
      CHECK(static_cast<double>(logits.row(0)[top[k - 1][0].get<std::size_t>()]) > value);
    }
    // None that is not among the ten is above the tenth, or it would be.
    const double tenth = top[9][1].get<double>();
    CHECK(std::count_if(logits.row(0).begin(), logits.row(0).end(),
                        [&](float v) { return static_cast<double>(v) > tenth + 1e-2; }) < 10);

    const auto ids = require(json_array<TokenId>(reference, at(i, "exact.exact_greedy_ids")));
    const auto margin = require(json_array<double>(reference, at(i, "exact.exact_greedy_margin")));
    REQUIRE(ids.size() == margin.size());
    for (std::size_t t = 0; t < std::min(most, ids.size()) && margin[t] >= 1e-2; ++t) {
      CHECK_MESSAGE(most_likely(logits.row(0)) == ids[t], "token ", t, " of the answer");
      const SequenceTokens next{0, std::span(&ids[t], 1), Wanted::last};
      logits = require(context->step(std::span(&next, 1)));
    }
  }
  CAPTURE(worst);
  CHECK(worst <= 5e-3);
}

}  // namespace

TEST_CASE("every prompt has the same bits on one and two threads, in any chunks, alone and in a batch of five: SmolLM2") {
  check_bits(smollm2);
}
TEST_CASE("every prompt has the same bits on one and two threads, in any chunks, alone and in a batch of five: Gemma 3") {
  check_bits(gemma3);
}
TEST_CASE("every prompt has the same bits on one and two threads, in any chunks, alone and in a batch of five: Qwen2.5") {
  check_bits(qwen25);
}

TEST_CASE("the exact mode has the reference's likeliest tokens and its greedy answers: SmolLM2") { check_figures(smollm2); }
TEST_CASE("the exact mode has the reference's likeliest tokens and its greedy answers: Gemma 3") { check_figures(gemma3); }
TEST_CASE("the exact mode has the reference's likeliest tokens and its greedy answers: Qwen2.5") { check_figures(qwen25); }
