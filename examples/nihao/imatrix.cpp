// nihao imatrix: how much each input of a model's matrices matters, from a text, for nihao quantize.
#include "commands.hpp"
#include "interrupts.hpp"
#include "model.hpp"

#include <nihao/quantize/collect_importance.hpp>

#include <fmt/core.h>

#include <filesystem>

namespace nihao::program {

namespace {

struct ImatrixFlags {
  ModelFlags model;
  TextFlags text;
  std::string out;
  std::size_t chunks = 0;
  bool force = false, json = false;
};

Expected<int> imatrix(const ImatrixFlags& flags) {
  keep_apart(flags.out, "--out", flags.model.path, "the model");
  keep_apart(flags.out, "--out", flags.text.file, "the text");
  std::error_code ignored;
  if (!flags.force && std::filesystem::is_regular_file(flags.out, ignored))
    throw UsageError(concat(flags.out, " is there already: --force replaces it"));
  NIHAO_TRY(const std::string text, flags.text.read());
  ContextOptions context_options = flags.model.context_options();
  if (context_options.positions == 0) context_options.positions = 512;
  Interrupts interrupts;
  const std::stop_token stop = interrupts.work();
  NIHAO_TRY(const AnyModel model, load_model(flags.model, stop));
  if (auto tokenizer = model.require_tokenizer(); !tokenizer) return std::move(tokenizer).error().in(flags.model.path);
  NIHAO_TRY(const auto context, model.context(context_options));
  NIHAO_TRY(const auto tokens, model.tokenizer()->encode(text));
  CollectOptions options{.window = context_options.positions, .most_windows = flags.chunks};
  if (model.tokenizer()->adds_bos()) options.begin = model.tokenizer()->bos();
  options.hooks.stop = stop;
  options.hooks.progress = progress_bar();
  auto made = collect_importance(*context, model.config(), model.tensors(), tokens, options);
  options.hooks.progress.reset();  // the bar goes before the result comes
  if (!made) return std::move(made).error();
  made->datasets = {flags.text.file.empty() || flags.text.file == "-" ? "a text" : flags.text.file};
  NIHAO_CHECK(made->write(flags.out));
  if (flags.json) {
    print_json({{"entries", made->entries().size()}, {"chunks", made->chunks}, {"chunk_size", made->chunk_size}});
    return 0;
  }
  fmt::print("{}: inputs of {} tensors over {} tokens ({} windows of {})\n", flags.out, made->entries().size(),
             std::size_t{made->chunks} * made->chunk_size, made->chunks, made->chunk_size);
  return 0;
}

}  // namespace

void add_imatrix(Commands& commands) {
  const auto flags = std::make_shared<ImatrixFlags>();
  CLI::App& app =
      commands.add("imatrix", "How much each input matters, for quantize --imatrix", [flags] { return imatrix(*flags); });
  flags->model.add(app, "512; the text is cut into windows of as many", 4);
  flags->text.add(app, "the text");
  app.add_option("-o,--out", flags->out, "the GGUF file to write")->type_name("F")->required()->check(not_empty());
  app.add_option("--chunks", flags->chunks, "most windows to read (default: all)")->type_name("N")->transform(within(1, 1 << 24));
  app.add_flag("--force", flags->force, "replace the file if it is there");
  app.add_flag("--json", flags->json, "print one JSON document");
}

}  // namespace nihao::program
