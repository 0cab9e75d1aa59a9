#include "nihao/engine/perplexity.hpp"

#include <doctest/doctest.h>

#include "engine/models.hpp"
#include "nihao/files/json.hpp"
#include "nihao/files/safetensors.hpp"
#include "support/build_kind.hpp"

#include <thread>

using namespace nihao;

namespace {

std::shared_ptr<ModelContext> context_of(const AnyModel& model, KvType kv = KvType::f32, std::size_t positions = 512,
                                         std::size_t chunk = 512) {
  auto context = model.context({.positions = positions, .chunk = chunk, .kv = kv});
  REQUIRE(context.has_value());
  return *std::move(context);
}

std::vector<TokenId> text_tokens(std::size_t count, std::uint32_t vocab) {
  std::vector<TokenId> ids(count);
  std::uint32_t state = 1;
  for (TokenId& id : ids) id = static_cast<TokenId>((state = state * 1664525u + 1013904223u) >> 8) % static_cast<TokenId>(vocab);
  return ids;
}

}  // namespace

TEST_CASE("perplexity is what the logits of each window say, computed the long way") {
  const auto model = test::tiny_model(1, true);
  if (!model) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const auto ids = text_tokens(70, model->config().vocab);
  const auto context = context_of(*model);
  const auto result = perplexity(*context, ids, {.window = 32, .begin = TokenId{1}});
  REQUIRE(result.has_value());
  CHECK(result->windows == 2);
  CHECK(result->tokens == 2 * 15);
  double sum = 0;
  for (std::size_t w = 0; w < 2; ++w) {
    std::vector<TokenId> window(ids.begin() + static_cast<std::ptrdiff_t>(32 * w),
                                ids.begin() + static_cast<std::ptrdiff_t>(32 * w + 32));
    window[0] = 1;
    for (std::size_t i = 16; i + 1 < 32; ++i) {
      const auto alone = context_of(*model);
      const auto logits = alone->prefill(0, std::span(window).first(i + 1));
      REQUIRE(logits.has_value());
      double total = 0;
      for (const float x : logits->row(0)) total += std::exp(static_cast<double>(x));
      const double nll = std::log(total) - static_cast<double>(logits->row(0)[static_cast<std::size_t>(window[i + 1])]);
      CHECK(result->token_nll[15 * w + i - 16] == doctest::Approx(nll).epsilon(1e-9));
      sum += nll;
    }
  }
  CHECK(result->perplexity == doctest::Approx(std::exp(sum / 30)).epsilon(1e-9));
}

TEST_CASE("perplexity does not depend on the chunk or the number of threads, to the bit") {
  const auto one = test::tiny_model(1, false, "Q4_K"), two = test::tiny_model(2, false, "Q4_K");
  if (!one) NIHAO_SKIP("golden/quant/gguf/Q4_K.gguf");
  const auto ids = text_tokens(200, one->config().vocab);
  const auto first = perplexity(*context_of(*one), ids, {.window = 100});
  REQUIRE(first.has_value());
  for (const std::size_t chunk : {1u, 7u, 64u}) {
    const auto again = perplexity(*context_of(*two, KvType::f32, 100, chunk), ids, {.window = 100});
    REQUIRE(again.has_value());
    CHECK(again->token_nll == first->token_nll);
  }
}

TEST_CASE("a model is at no distance from itself, and a coarser one at some") {
  const auto exact = test::tiny_model(1, true, "Q4_0"), fast = test::tiny_model(1, false, "Q4_0");
  if (!exact) NIHAO_SKIP("golden/quant/gguf/Q4_0.gguf");
  const auto ids = text_tokens(128, exact->config().vocab);
  const auto a = context_of(*exact), b = context_of(*exact), c = context_of(*fast);
  const auto same = perplexity(*a, ids, {.window = 64}, b.get());
  REQUIRE(same.has_value());
  CHECK(same->divergence->positions == 2 * 32);
  CHECK(same->divergence->kl_max == doctest::Approx(0).epsilon(1e-12));
  CHECK(same->divergence->top1_agreement == 1);
  const auto other = perplexity(*c, ids, {.window = 64}, a.get());
  REQUIRE(other.has_value());
  CHECK(other->divergence->kl_mean > 0);
  CHECK(other->divergence->kl_mean < 0.1);
  CHECK(other->divergence->kl_mean <= other->divergence->kl_p99);
  CHECK(other->divergence->kl_p99 <= other->divergence->kl_max);
  CHECK(same->token_nll == perplexity(*a, ids, {.window = 64})->token_nll);  // being compared changes nothing
}

TEST_CASE("the divergence of two rows is the sum of p ln(p / q), also where a token is impossible") {
  const std::vector<float> a = {1, 2, 3}, b = {3, 1, 0}, masked = {1, 2, -std::numeric_limits<float>::infinity()};
  double za = 0, zb = 0, kl = 0;
  for (std::size_t i = 0; i < 3; ++i) za += std::exp(static_cast<double>(a[i])), zb += std::exp(static_cast<double>(b[i]));
  for (std::size_t i = 0; i < 3; ++i) {
    const double p = std::exp(static_cast<double>(a[i])) / za, q = std::exp(static_cast<double>(b[i])) / zb;
    kl += p * std::log(p / q);
  }
  CHECK(detail::kl_divergence(a, b) == doctest::Approx(kl).epsilon(1e-12));
  CHECK(detail::kl_divergence(masked, masked) == 0);
  CHECK(std::isfinite(detail::kl_divergence(masked, a)));
  CHECK(detail::log_sum_exp(a) == doctest::Approx(std::log(za)).epsilon(1e-14));
}

TEST_CASE("perplexity says what is wrong with its arguments, and stops when asked") {
  const auto model = test::tiny_model();
  if (!model) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const auto ids = text_tokens(100, model->config().vocab);
  const auto context = context_of(*model);
  CHECK(perplexity(*context, ids, {.window = 3}).error().code == ErrorCode::invalid_argument);
  CHECK(perplexity(*context, ids, {.window = 101}).error().what == "the text has 100 tokens, and a window takes 101");
  CHECK(perplexity(*context_of(*model, KvType::f32, 50), ids, {.window = 64}).error().code == ErrorCode::context_full);
  std::vector<TokenId> wrong = ids;
  wrong[90] = 5000;
  CHECK(perplexity(*context, wrong, {.window = 100}).error().code == ErrorCode::invalid_argument);
  std::stop_source source;
  source.request_stop();
  PerplexityOptions stopped{.window = 64};
  stopped.hooks.stop = source.get_token();
  CHECK(perplexity(*context, ids, stopped).error().code == ErrorCode::cancelled);
}

namespace {

// The first window alone: all of them take minutes. `nihao perplexity --exact --kv f32` and `--against-exact` give the whole
// figures (docs/numbers.md). The fast mode's divergence is at most what llama.cpp's is over all windows, `llama_cpp_kl`.
void check_against_reference(const std::string& name, double llama_cpp_kl) {
  const auto file = test::model(name + ".gguf"), reference = test::data("peers/reference/" + name + ".json");
  if (!file || !reference) NIHAO_SKIP(name);
  const auto json = parse_json(test::read_text(*reference));
  REQUIRE(json.has_value());
  const auto ids = *json_array<TokenId>(*json, "ppl.chunk_ids.0");
  const auto expected = *json_array<double>(*json, "ppl.exact.token_nll");
  const auto model = load(file->string(), {.cpu = {.exact = true}});
  REQUIRE(model.has_value());
  const auto exact = context_of(*model);
  const auto result = perplexity(*exact, ids);
  REQUIRE(result.has_value());
  REQUIRE(result->token_nll.size() == 255);
  double worst = 0;
  for (std::size_t i = 0; i < 255; ++i) worst = std::max(worst, std::abs(expected[i] - result->token_nll[i]));
  CHECK(worst < 1e-3);
  const auto fast = load(file->string());
  REQUIRE(fast.has_value());
  const auto compared = perplexity(*context_of(*fast, KvType::f16), ids, {}, exact.get());
  REQUIRE(compared.has_value());
  CAPTURE(compared->divergence->kl_mean);
  CHECK(compared->divergence->kl_mean > 0);
  CHECK(compared->divergence->kl_mean <= llama_cpp_kl);
}

}  // namespace

TEST_CASE("the exact mode scores a text as the reference does, and the fast mode stays near it: SmolLM2" *
          doctest::skip(test::sanitized)) {
  check_against_reference("smollm2-135m-q4_1", 0.00273);
}
TEST_CASE("the exact mode scores a text as the reference does, and the fast mode stays near it: Gemma 3" *
          doctest::skip(test::sanitized)) {
  check_against_reference("gemma3-270m-q4_k_m", 0.00491);
}
TEST_CASE("the exact mode scores a text as the reference does, and the fast mode stays near it: Qwen2.5" *
          doctest::skip(test::sanitized)) {
  check_against_reference("qwen2.5-coder-0.5b-q4_k_m", 0.00105);
}
