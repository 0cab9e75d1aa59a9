// nihao perplexity: how well a model predicts a text, and how far the fast arithmetic is from the exact one.
#include "commands.hpp"
#include "model.hpp"

#include <nihao/engine/perplexity.hpp>

#include <fmt/core.h>

namespace nihao::program {

namespace {

struct PerplexityFlags {
  ModelFlags model;
  TextFlags text;
  bool against_exact = false, json = false;
};

Expected<int> score(PerplexityFlags& flags) {
  NIHAO_TRY(const std::string text, flags.text.read());
  ContextOptions context_options = flags.model.context_options();
  if (context_options.positions == 0) context_options.positions = 512;
  NIHAO_TRY(const AnyModel model, load_model(flags.model));
  if (auto tokenizer = model.require_tokenizer(); !tokenizer) return std::move(tokenizer).error().in(flags.model.path);
  NIHAO_TRY(const auto context, model.context(context_options));

  std::shared_ptr<ModelContext> exact;
  if (flags.against_exact) {
    LoadOptions options = flags.model.load_options();
    options.cpu.exact = true;
    NIHAO_TRY(const AnyModel exact_model, load_model(flags.model.path, options));
    ContextOptions exact_options = context_options;
    exact_options.kv = KvType::f32;
    NIHAO_TRY(exact, exact_model.context(exact_options));
  }
  NIHAO_TRY(const auto tokens, model.tokenizer()->encode(text));
  PerplexityOptions options{.window = context_options.positions};
  if (model.tokenizer()->adds_bos()) options.begin = model.tokenizer()->bos();
  options.hooks.progress = progress_bar();
  auto scored = perplexity(*context, tokens, options, exact.get());
  options.hooks.progress.reset();  // the bar goes before the result comes
  if (!scored) return std::move(scored).error();
  const PerplexityResult& result = *scored;

  if (flags.json) {
    Json json = {{"perplexity", result.perplexity}, {"tokens", result.tokens}, {"windows", result.windows}};
    if (const auto& d = result.divergence) {
      json["kl_mean"] = d->kl_mean;
      json["kl_p99"] = d->kl_p99;
      json["kl_max"] = d->kl_max;
      json["top1_agreement"] = d->top1_agreement;
    }
    print_json(json);
    return 0;
  }
  fmt::print("perplexity {:.4f} over {} tokens ({} windows of {})\n", result.perplexity, result.tokens, result.windows,
             options.window);
  if (const auto& d = result.divergence)
    fmt::print(
        "against exact: KL mean {:.6f}, 99th percentile {:.6f}, max {:.6f}; the same likeliest token at {:.2f} % of {} "
        "positions\n",
        d->kl_mean, d->kl_p99, d->kl_max, 100 * d->top1_agreement, d->positions);
  return 0;
}

}  // namespace

void add_perplexity(Commands& commands) {
  const auto flags = std::make_shared<PerplexityFlags>();
  CLI::App& app = commands.add("perplexity", "How well a model predicts a text", [flags] { return score(*flags); });
  flags->model.add(app, "512; the text is cut into windows of as many", 4);
  flags->text.add(app, "the text");
  app.add_flag("--against-exact", flags->against_exact, "compare every distribution with that of --exact --kv f32");
  app.add_flag("--json", flags->json, "print one JSON document");
}

}  // namespace nihao::program
