// nihao quantize: writes a model in fewer bits, as GGUF.
#include "commands.hpp"
#include "inspect_roles.hpp"
#include "interrupts.hpp"
#include "model.hpp"

#include <nihao/files/gguf.hpp>
#include <nihao/files/safetensors.hpp>
#include <nihao/models/load_hf.hpp>
#include <nihao/quantize/hf_tensors.hpp>
#include <nihao/quantize/quantize_model.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>

namespace nihao::program {

namespace {

struct QuantizeFlags {
  std::string in, out, type, imatrix;
  int threads = 0;
  bool requantize = false, force = false, json = false;
};

// What the two kinds of sources are, as long as their tensors are read.
struct Source {
  std::optional<Gguf> gguf;
  std::optional<Safetensors> safetensors;
};

Expected<ModelToWrite> open_source(const std::string& path, Source& source) {
  std::error_code ignored;
  auto model = [&]() -> Expected<ModelToWrite> {
    if (std::filesystem::is_directory(path, ignored)) {
      NIHAO_TRY(source.safetensors, Safetensors::open(path));
      NIHAO_TRY(const Json config, detail::read_config_json(concat(path, "/config.json")));
      return tensors_of_folder(*source.safetensors, config, std::filesystem::path(path).filename().string());
    }
    NIHAO_TRY(source.gguf, Gguf::open(path));
    return tensors_of_gguf(*source.gguf);
  }();
  if (!model && model.error().where.find(path) == std::string::npos) return std::move(model).error().in(path);
  return model;
}

Expected<int> quantize(const QuantizeFlags& flags) {
  const Recipe* const mix = recipe_from_name(flags.type);
  if (mix == nullptr) throw UsageError(concat("--type ", flags.type, " is none of: ", mix_names()));
  keep_apart(flags.out, "OUT", flags.in, "the model");
  keep_apart(flags.out, "OUT", flags.imatrix, "the importance matrix");
  std::error_code ignored;
  if (!flags.force && std::filesystem::exists(flags.out, ignored) && std::filesystem::is_regular_file(flags.out, ignored))
    throw UsageError(concat(flags.out, " is there already: --force replaces it"));
  Interrupts interrupts;  // a Ctrl-C leaves no half of a file
  QuantizeOptions options{.importance_file = flags.imatrix, .requantize = flags.requantize};
  options.hooks.stop = interrupts.work();
  std::optional<ImportanceMatrix> importance;
  if (!flags.imatrix.empty()) {
    NIHAO_TRY(importance, ImportanceMatrix::read(flags.imatrix));
    options.importance = &*importance;
  }
  NIHAO_TRY(const Cpu cpu, Cpu::create({.threads = flags.threads}));
  Source source;
  NIHAO_TRY(ModelToWrite model, open_source(flags.in, source));
  options.hooks.progress = progress_bar();
  auto written = quantize_model(std::move(model), *mix, flags.out, cpu, options);
  options.hooks.progress.reset();  // the bar goes before the result comes
  if (!written) {
    Error error = std::move(written).error();
    if (error.code == ErrorCode::invalid_argument && !flags.requantize && error.what.find("lost bits") != std::string::npos)
      error.what += " (--requantize does it all the same)";
    return error.where.find(flags.out) == std::string::npos && error.where != flags.imatrix ? std::move(error).in(flags.in)
                                                                                            : error;
  }

  std::uint64_t bytes = 0, elements = 0, weighted = 0, quantized = 0;
  std::map<std::string_view, std::size_t> formats;
  std::map<std::pair<std::string_view, std::string_view>, std::size_t> instead;
  Json tensors(Json::value_t::array);
  for (const QuantizedTensor& t : *written) {
    bytes += t.bytes, weighted += t.weighted ? 1 : 0;
    const FormatInfo info = format_info(t.to);
    elements += t.bytes / info.block_bytes * info.block_size;
    quantized += info.block_size > 1 ? 1 : 0;
    ++formats[info.name];
    if (t.instead_of) ++instead[{format_info(*t.instead_of).name, info.name}];
    tensors.push_back({{"name", json_text(t.name)}, {"from", format_info(t.from).name}, {"to", info.name}, {"bytes", t.bytes}});
  }
  for (const auto& [pair, count] : instead)
    note(fmt::format("{} tensors have rows that are not whole blocks of {}: they are {}", count, pair.first, pair.second));
  if (options.importance != nullptr && weighted < quantized)
    note(fmt::format("{} of {} quantized tensors have no entry in the importance matrix", quantized - weighted, quantized));
  const double bits = 8.0 * static_cast<double>(bytes) / static_cast<double>(elements);
  if (flags.json) {
    print_json({{"type", mix->name}, {"bytes", bytes}, {"bits_per_weight", bits}, {"tensors", std::move(tensors)}});
    return 0;
  }
  std::string list;
  for (const auto& [name, count] : formats) list += fmt::format("{}{} {}", list.empty() ? "" : ", ", count, name);
  fmt::print("{}: {}, {:.2f} bits a weight; tensors: {}\n", flags.out, in_bytes(static_cast<double>(bytes)), bits, list);
  return 0;
}

}  // namespace

void add_quantize(Commands& commands) {
  const auto flags = std::make_shared<QuantizeFlags>();
  CLI::App& app = commands.add("quantize", "Write a model in fewer bits, as GGUF", [flags] { return quantize(*flags); });
  app.add_option("IN", flags->in, "a GGUF file, or a Hugging Face folder")->type_name("")->required()->check(not_empty());
  app.add_option("OUT", flags->out, "the GGUF file to write")->type_name("")->required()->check(not_empty());
  app.add_option("--type,--to", flags->type, concat("the target: ", mix_names()))->type_name("NAME")->required();
  app.add_option("--imatrix", flags->imatrix, "importance of each input, as nihao imatrix (or llama-imatrix) writes it")
      ->type_name("F")
      ->check(not_empty());
  app.add_option("--threads", flags->threads, "threads (default: all)")->type_name("N")->transform(within(1, Cpu::max_threads));
  app.add_flag("--requantize", flags->requantize, "also from a model that is quantized: what it has lost stays lost");
  app.add_flag("--force", flags->force, "replace OUT if it is there");
  app.add_flag("--json", flags->json, "print one JSON document");
}

}  // namespace nihao::program
