// C12, mixture of experts: a router sends each token to a few of many feed-forwards, so that a model has more weights than a
// token pays for. Read: kernels/router.hpp, layers/moe.hpp.
#include "made_up.hpp"

#include <nihao/models/presets.hpp>
#include <nihao/trace/recorder.hpp>

namespace {

nihao::Config shape() {
  nihao::Config c;
  c.architecture = "llama";
  c.vocab = 256, c.d_model = 128, c.heads = 4, c.kv_heads = 2, c.head_dim = 32, c.d_ff = c.expert_ff = 256, c.context = 64;
  c.attention_scale = static_cast<float>(1 / std::sqrt(32.0));
  c.ropes.emplace_back();
  c.layers.resize(1);
  c.router = {.experts = 8, .chosen = 2, .normalize = true};
  return c;
}
station::MadeUp weights(const nihao::Config& c) {
  station::MadeUp made(12);
  return std::move(made.ends(c).norms(c, 0).grouped_attention(c, 0).experts(c, 0));
}

nihao::Expected<void> tell() {
  const nihao::Config c = shape();
  const station::MadeUp made = weights(c);
  NIHAO_TRY(const nihao::AnyModel model, station::load(c, made));
  NIHAO_TRY(const auto context, model.context({.positions = 32, .kv = nihao::KvType::f32}));
  const std::vector<nihao::TokenId> ids{228, 189, 160, 229, 165, 189, 44, 108, 108, 97, 109, 97};
  nihao::Recorder recorder;
  const nihao::ObserverRef observer(recorder);
  const nihao::SequenceTokens all{0, ids};
  if (auto step = context->step(std::span(&all, 1), &observer); !step) return std::move(step).error();
  const auto at = [&](std::string_view name) -> const nihao::Record& {
    return *std::find_if(recorder.records().begin(), recorder.records().end(), [&](const auto& r) { return r.name == name; });
  };
  const nihao::Record &logits = at("router.logits"), &experts = at("router.experts"), &weight = at("router.weights");

  fmt::print(
      "C12 experts: {} of {}, each {} -> {} -> {}; made-up weights\n\n1. The router's logits of token 0, and its choice:\n   ",
      c.router.chosen, c.router.experts, c.d_model, c.expert_ff, c.d_model);
  for (std::size_t e = 0; e < c.router.experts; ++e) fmt::print("{:9.4f}", logits.values[e]);
  double share[2], total = 0;  // by hand: softmax over all, the two largest, divided by their sum
  for (std::size_t j = 0; j < 2; ++j) {
    const auto e = static_cast<std::size_t>(experts.values[j]);
    total += share[j] = std::exp(static_cast<double>(logits.values[e]));
  }
  double worst = 0;
  for (std::size_t j = 0; j < 2; ++j) {
    fmt::print("{}expert {:.0f} with weight {:.4f} (by hand {:.4f})", j == 0 ? "\n    " : ", ", experts.values[j],
               weight.values[j], share[j] / total);
    worst = std::max(worst, std::abs(share[j] / total - static_cast<double>(weight.values[j])));
  }

  fmt::print(
      "\n\n2. Tokens sorted by expert: each expert that was chosen is read once, and multiplies its rows in one product.\n");
  std::size_t used = 0;
  for (std::size_t e = 0; e < c.router.experts; ++e) {
    std::string rows;
    for (std::size_t i = 0; i < experts.values.size(); ++i)
      if (static_cast<std::size_t>(experts.values[i]) == e) rows += fmt::format(" {}", i / c.router.chosen);
    if (!rows.empty()) ++used;
    fmt::print("    expert {}: {}\n", e, rows.empty() ? "nobody, and not read" : "tokens" + rows);
  }
  fmt::print("    {} rows of feed-forward for {} tokens, by {} of {} experts\n\n", experts.values.size(), ids.size(), used,
             c.router.experts);

  fmt::print("3. One set of logits, five routers:\n");
  const std::vector<float> scores{2.0f, -1.0f, 0.5f, 1.5f, 1.0f, 1.0f, -2.0f, 3.0f};
  std::vector<float> bias(8, 0.0f);
  bias[5] = 1.0f;
  nihao::RouterShape r{.experts = 8, .chosen = 2};
  std::vector<nihao::Choice> chosen(2);
  const auto show = [&](std::string_view name) {
    fmt::print("    {:<58}", name);
    for (const nihao::Choice& choice : chosen) fmt::print("  {}: {:.4f}", choice.expert, choice.weight);
    fmt::print("\n");
  };
  nihao::SoftmaxTopK::route(r, scores, {}, chosen), show("softmax, then the best two (DeepSeek-V2)");
  r.normalize = true;
  nihao::SoftmaxTopK::route(r, scores, {}, chosen), show("the same, normalised (Mixtral, Qwen 3)");
  nihao::TopKSoftmax::route(r, scores, {}, chosen), show("the best two, then softmax (gpt-oss): the same numbers");
  nihao::SigmoidGroups::route(r, scores, bias, chosen), show("sigmoid, a bias of 1 on expert 5's choice (DeepSeek-V3)");
  r.groups = 4, r.groups_kept = 1;
  nihao::SigmoidGroups::route(r, scores, {}, chosen), show("sigmoid, in the best of four groups of two");

  fmt::print("\n4. What that buys, by shape:\n    {:<18}{:>10}{:>10}{:>9}\n", "", "total", "active", "share");
  for (const std::string_view name : {"mixtral-8x7b", "qwen3-235b-a22b", "deepseek-v3", "gpt-oss-120b"}) {
    const auto n = nihao::count_parameters(nihao::find_preset(name)->config, false);
    fmt::print("    {:<18}{:>8.1f} B{:>8.1f} B{:>7.1f} %\n", name, static_cast<double>(n.total) / 1e9,
               static_cast<double>(n.active) / 1e9, 100 * static_cast<double>(n.active) / static_cast<double>(n.total));
  }
  if (worst > 1e-5) return nihao::Error{nihao::ErrorCode::mismatch, "the router's weights are not those made by hand"};
  return {};
}

}  // namespace

int main() { return station::run_alone(tell); }
