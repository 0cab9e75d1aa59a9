// Routers: what each chooses and with what weights, on cases small enough to follow by hand.
#include "nihao/kernels/router.hpp"

#include <nihao/base/small_floats.hpp>

#include <doctest/doctest.h>
#include <vector>

using namespace nihao;

namespace {

template <class Router>
std::vector<Choice> routed(const RouterShape& shape, std::vector<float> logits, std::vector<float> bias = {}) {
  std::vector<Choice> chosen(shape.chosen);
  Router::route(shape, logits, bias, chosen);
  return chosen;
}
std::vector<int> experts(const std::vector<Choice>& chosen) {
  std::vector<int> out;
  for (const Choice& c : chosen) out.push_back(c.expert);
  return out;
}
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
using doctest::Approx;

}  // namespace

TEST_CASE("softmax-then-top-k gives shares of all experts, which sum to one only if they are normalised") {
  const std::vector<float> logits{0.0f, 1.0f, 3.0f, 2.0f};
  const double total = 1 + std::exp(1.0) + std::exp(3.0) + std::exp(2.0);
  const auto plain = routed<SoftmaxTopK>({.experts = 4, .chosen = 2}, logits);
  CHECK(experts(plain) == std::vector<int>{2, 3});
  CHECK(plain[0].weight == Approx(std::exp(3.0) / total));
  CHECK(plain[1].weight == Approx(std::exp(2.0) / total));
  // norm_topk_prob is a flag of the file's, and honoured either way (case C68: flashinfer #2889).
  const auto normalised = routed<SoftmaxTopK>({.experts = 4, .chosen = 2, .normalize = true}, logits);
  CHECK(normalised[0].weight == Approx(1 / (1 + std::exp(-1.0))));
  CHECK(normalised[0].weight + normalised[1].weight == Approx(1));
  const auto scaled = routed<SoftmaxTopK>({.experts = 4, .chosen = 2, .scale = 16}, logits);
  CHECK(scaled[0].weight == Approx(16 * std::exp(3.0) / total));
}

// The other half of case C68, logits in bfloat16 that are read as float: what a router reads is part of its type.
template <class T>
concept Routes = requires(const RouterShape& shape, std::span<const T> logits, std::span<Choice> chosen) {
  SoftmaxTopK::route(shape, logits, std::span<const float>{}, chosen);
};
static_assert(Routes<float> && !Routes<bf16> && !Routes<f16> && !Routes<std::uint16_t>);

TEST_CASE("top-k-then-softmax gives shares among the chosen") {
  const auto chosen = routed<TopKSoftmax>({.experts = 4, .chosen = 2}, {5.0f, 1.0f, -2.0f, 4.0f});
  CHECK(experts(chosen) == std::vector<int>{0, 3});
  CHECK(chosen[0].weight == Approx(1 / (1 + std::exp(-1.0))));
  CHECK(chosen[1].weight == Approx(1 / (1 + std::exp(1.0))));
}

TEST_CASE("the bias of a sigmoid router chooses, and is not in the weights") {  // case C65: vllm #12002, transformers #41647
  const std::vector<float> logits{1.0f, 0.9f, 0.0f, -1.0f}, bias{0.0f, 0.0f, 0.0f, 10.0f};
  const auto chosen = routed<SigmoidGroups>({.experts = 4, .chosen = 2, .scale = 2.5f}, logits, bias);
  CHECK(experts(chosen) == std::vector<int>{0, 3});
  CHECK(chosen[0].weight == Approx(2.5 * sigmoid(1)));
  CHECK(chosen[1].weight == Approx(2.5 * sigmoid(-1)));
  const auto normalised = routed<SigmoidGroups>({.experts = 4, .chosen = 2, .normalize = true}, logits, bias);
  CHECK(normalised[1].weight == Approx(sigmoid(-1) / (sigmoid(1) + sigmoid(-1))));
}

TEST_CASE(
    "a group of a sigmoid router is worth its two best, biases included, and what is outside is out even if all is negative") {
  // Groups of two. The best single expert is in group 0, the best pair is group 1 (case C66: vllm #13474 took the maximum).
  const std::vector<float> logits{4.0f, -9.0f, 2.0f, 2.0f};
  CHECK(experts(routed<SigmoidGroups>({.experts = 4, .chosen = 2, .groups = 2, .groups_kept = 1}, logits)) ==
        std::vector<int>{2, 3});
  // All biased scores of the group that is kept are below 0: masked experts at 0 would win (sglang #3705).
  const std::vector<float> equal{0.0f, 0.0f, 0.0f, 0.0f}, bias{-2.0f, -2.0f, -3.0f, -3.0f};
  CHECK(experts(routed<SigmoidGroups>({.experts = 4, .chosen = 2, .groups = 2, .groups_kept = 1}, equal, bias)) ==
        std::vector<int>{0, 1});
}

TEST_CASE("a group of a softmax router is worth its best expert") {
  const std::vector<float> logits{4.0f, -9.0f, 2.0f, 2.0f};
  CHECK(experts(routed<SoftmaxTopK>({.experts = 4, .chosen = 2, .groups = 2, .groups_kept = 1}, logits)) ==
        std::vector<int>{0, 1});
}

TEST_CASE("Llama 4's router weighs with the sigmoid of the best logit") {
  const auto chosen = routed<SigmoidInput>({.experts = 3, .chosen = 1}, {-1.0f, 0.5f, 0.25f});
  CHECK(experts(chosen) == std::vector<int>{1});
  CHECK(chosen[0].weight == Approx(sigmoid(0.5)));
  CHECK(SigmoidInput::weighs_input);
}

TEST_CASE("a sparse mixer's weights are shares among the logits that are near, one choice after the other") {
  // Near 2 are those with (2 - l) / max(|l|, 2) <= 0.02: 1.98, not 1. Near 1.98 of the others: none.
  const auto chosen = routed<SparseMixer>({.experts = 3, .chosen = 2, .jitter = 0.01f}, {2.0f, 1.98f, 1.0f});
  CHECK(experts(chosen) == std::vector<int>{0, 1});
  CHECK(chosen[0].weight == Approx(1 / (1 + std::exp(1.98f - 2.0))));
  CHECK(chosen[1].weight == Approx(1));
}

TEST_CASE("ties go to the lower expert, and choices come in rising order") {
  const std::vector<float> equal(8, 1.0f);
  CHECK(experts(routed<SoftmaxTopK>({.experts = 8, .chosen = 3}, equal)) == std::vector<int>{0, 1, 2});
  CHECK(experts(routed<TopKSoftmax>({.experts = 8, .chosen = 3}, {0, 1, 0, 9, 0, 5, 0, 0})) == std::vector<int>{1, 3, 5});
  CHECK(experts(routed<SigmoidGroups>({.experts = 8, .chosen = 2, .groups = 4, .groups_kept = 2}, equal)) ==
        std::vector<int>{0, 1});
}
