// nihao inspect: what a model's file says of itself. Nothing is loaded, and the architecture need not be one that runs here.
#include "commands.hpp"
#include "inspect_block.hpp"
#include "inspect_presets.hpp"
#include "inspect_roles.hpp"
#include "model.hpp"

#include <nihao/cache/kv_cache.hpp>
#include <nihao/files/gguf.hpp>
#include <nihao/files/safetensors.hpp>
#include <nihao/models/gguf_config.hpp>
#include <nihao/models/hf_config.hpp>
#include <nihao/models/hf_quantization.hpp>
#include <nihao/models/shape.hpp>

#include <fmt/core.h>

#include <filesystem>

namespace nihao::program {

namespace {

struct InspectFlags {
  std::string path, preset, families, kv = "f16", block, type;
  std::size_t context = 0;
  bool arrays = false, roles = false, json = false;
};

// A tensor of any type, also of one that the library does not compute with.
struct ShownTensor {
  std::string_view name, format;
  std::vector<std::uint64_t> shape;
  std::uint64_t bytes, offset;
  std::uint32_t file;

  [[nodiscard]] std::uint64_t elements() const {
    std::uint64_t product = 1;
    for (const std::uint64_t size : shape) product *= size;
    return product;
  }
};

[[nodiscard]] std::vector<ShownTensor> shown(const TensorFile& file) {
  std::vector<ShownTensor> out;
  for (const TensorInfo& t : file.tensors())
    out.push_back(
        {t.name, format_info(t.format).name, {t.shape.begin(), t.shape.begin() + t.rank}, t.bytes.size(), t.offset, t.file});
  return out;
}

// A file of either kind, as far as it is shown.
struct Inspected {
  std::string kind, architecture;
  std::vector<ShownTensor> tensors;
  TensorFile file;  // what the names and bytes lie in
  Json metadata = Json(Json::value_t::object);
  std::vector<std::pair<std::string, std::string>> lines;  // of the metadata, for people
  std::optional<Config> config;                            // where the family is known here
};

// Arrays longer than this are shown by their size and first items.
constexpr std::size_t shown_items = 8;

template <class T>
Json shorten(const std::vector<T>& items, bool whole) {
  const auto value = [](const T& item) {
    if constexpr (std::is_same_v<T, std::string_view>) return json_text(item);
    else return Json(item);
  };
  Json list(Json::value_t::array);
  for (std::size_t i = 0; i < (whole ? items.size() : std::min(items.size(), shown_items)); ++i) list.push_back(value(items[i]));
  if (list.size() == items.size()) return list;
  return {{"count", items.size()}, {"first", std::move(list)}};
}

Expected<Json> gguf_value(const GgufEntry& entry, bool whole) {
  const GgufType type = entry.item_type;
  const bool array = entry.type == GgufType::array;
  if (type == GgufType::string) {
    if (!array) return json_text(*entry.as<std::string_view>());
    NIHAO_TRY(const auto items, entry.strings());
    return shorten(items, whole);
  }
  if (type == GgufType::boolean) {
    if (!array) return Json(*entry.as<bool>());
    NIHAO_TRY(const auto items, entry.items<bool>());
    Json list(Json::value_t::array);
    for (const bool item : items) list.push_back(item);
    return list;
  }
  if (type == GgufType::array) return Json({{"count", entry.count}});  // arrays of arrays: no known key has one
  if (type == GgufType::f32 || type == GgufType::f64) {
    if (!array) return Json(*entry.as<double>());
    NIHAO_TRY(const auto items, entry.items<double>());
    return shorten(items, whole);
  }
  if (type == GgufType::u64) {
    if (!array) return Json(*entry.as<std::uint64_t>());
    NIHAO_TRY(const auto items, entry.items<std::uint64_t>());
    return shorten(items, whole);
  }
  if (!array) return Json(*entry.as<std::int64_t>());
  NIHAO_TRY(const auto items, entry.items<std::int64_t>());
  return shorten(items, whole);
}

Expected<Inspected> inspect_gguf(const InspectFlags& flags) {
  NIHAO_TRY(Gguf gguf, Gguf::open(flags.path, GgufTypes::listed));
  Inspected out;
  out.kind = concat("GGUF v", gguf.version());
  NIHAO_TRY(const auto architecture, gguf.get_or<std::string_view>("general.architecture", ""));
  out.architecture = architecture;
  for (const GgufEntry& entry : gguf.metadata()) {
    NIHAO_TRY(out.metadata[std::string(entry.key)], gguf_value(entry, flags.arrays));
    out.lines.emplace_back(entry.key, entry.describe(100));
  }
  if (auto config = config_from_gguf(gguf)) out.config = *std::move(config);
  const std::vector<ShownTensor> computed = shown(gguf.tensors());
  auto next = computed.begin();
  for (const GgufOtherTensor& t : gguf.other_tensors()) {  // each to its place among the others
    while (out.tensors.size() < t.index) out.tensors.push_back(*next++);
    out.tensors.push_back({t.name, t.type.name, {t.shape.begin(), t.shape.begin() + t.rank}, t.bytes.size(), t.offset, t.file});
  }
  out.tensors.insert(out.tensors.end(), next, computed.end());
  out.file = std::move(gguf).take_tensors();
  return out;
}

Expected<Inspected> inspect_folder(const InspectFlags& flags) {
  NIHAO_TRY(Safetensors file, Safetensors::open(flags.path));
  const std::string config_file = flags.path + "/config.json";
  NIHAO_TRY(const MappedFile text, MappedFile::open(config_file));
  auto json = parse_json({reinterpret_cast<const char*>(text.bytes().data()), text.bytes().size()});
  if (!json) return std::move(json).error().in(config_file);
  Inspected out;
  out.kind = "Hugging Face folder";
  NIHAO_TRY(out.architecture, json_get_or<std::string>(*json, "model_type", ""));
  if (const auto* members = json->get_ptr<const Json::object_t*>())
    for (const auto& [key, value] : *members)
      out.lines.emplace_back(key, value.dump(-1, ' ', false, Json::error_handler_t::replace));
  if (auto config = config_from_hf(*json)) out.config = std::move(config->config);
  out.metadata = *std::move(json);
  out.file = std::move(file).take_tensors();
  out.tensors = shown(out.file);
  return out;
}

std::string shape_text(const ShownTensor& tensor) {
  std::string out;
  for (const std::uint64_t size : tensor.shape) out += fmt::format("{}{}", out.empty() ? "" : " x ", size);
  return out;
}

// What running it takes: the weights, and a cache of `positions`.
struct Memory {
  std::uint64_t weights = 0, kv_per_position = 0, positions = 0;
  [[nodiscard]] std::uint64_t kv() const { return kv_per_position * positions; }
};
Memory memory_of(const Inspected& file, const InspectFlags& flags) {
  Memory m;
  for (const ShownTensor& t : file.tensors) m.weights += t.bytes;
  if (!file.config) return m;
  const Config& c = *file.config;
  m.kv_per_position = cache_bytes_per_token(c, kv_type_from_name(flags.kv).value_or(KvType::f16));
  m.positions = flags.context > 0 ? flags.context : std::min<std::size_t>(c.context, 4096);
  return m;
}

// --block and --roles: a part of the file, closely.
Expected<int> inspect_part(const InspectFlags& flags, bool folder) {
  auto shown = [&]() -> Expected<int> {
    if (flags.roles) {
      if (folder) throw UsageError("--roles is for GGUF files");
      NIHAO_TRY(const Gguf gguf, Gguf::open(flags.path));
      return inspect_roles(gguf, flags.type, flags.json);
    }
    const auto place = parse_block_place(flags.block);
    if (!place) throw UsageError(concat("--block ", flags.block, " is not TENSOR:ROW:BLOCK"));
    if (folder) {  // matrices that a method has quantized are shown as what they become
      NIHAO_TRY(Safetensors safetensors, Safetensors::open(flags.path));
      NIHAO_TRY(const Json config, detail::read_config_json(concat(flags.path, "/config.json")));
      NIHAO_TRY(const TensorFile tensors, quantized_tensors(config, std::move(safetensors)));
      return inspect_block(tensors, *place, flags.json);
    }
    NIHAO_TRY(const Gguf gguf, Gguf::open(flags.path, GgufTypes::listed));
    return inspect_block(gguf.tensors(), *place, flags.json);
  }();
  if (!shown && shown.error().where.find(flags.path) == std::string::npos) return std::move(shown).error().in(flags.path);
  return shown;
}

Expected<int> inspect(const InspectFlags& flags) {
  const KvType kv = kv_type_from_name(flags.kv).value_or(KvType::f16);
  if (!flags.preset.empty()) return inspect_preset(flags.preset, kv, flags.json);
  if (!flags.families.empty()) return inspect_families(flags.families, kv, flags.json);
  if (flags.path.empty()) throw UsageError("inspect takes a MODEL, --preset NAME or --families KIND");
  std::error_code ignored;
  if (flags.roles || !flags.block.empty()) return inspect_part(flags, std::filesystem::is_directory(flags.path, ignored));
  NIHAO_TRY(const Inspected file,
            std::filesystem::is_directory(flags.path, ignored) ? inspect_folder(flags) : inspect_gguf(flags));
  const Memory memory = memory_of(file, flags);
  std::uint64_t parameters = 0;
  for (const ShownTensor& t : file.tensors) parameters += t.elements();

  if (flags.json) {
    Json tensors(Json::value_t::array);
    for (const ShownTensor& t : file.tensors)
      tensors.push_back({{"name", json_text(t.name)},
                         {"format", t.format},
                         {"shape", t.shape},
                         {"offset", t.offset},
                         {"bytes", t.bytes},
                         {"file", t.file}});
    print_json({{"architecture", json_text(file.architecture)},
                {"parameters", parameters},
                {"memory",
                 {{"weights_bytes", memory.weights},
                  {"kv_bytes_per_token", memory.kv_per_position},
                  {"context", memory.positions},
                  {"kv_bytes", memory.kv()}}},
                {"tensors", std::move(tensors)},
                {"metadata", file.metadata}});
    return 0;
  }
  fmt::print("{}, {}, {:.1f} M parameters in {} tensors\n", file.kind,
             file.architecture.empty() ? "no architecture" : one_line(file.architecture), static_cast<double>(parameters) / 1e6,
             file.tensors.size());
  fmt::print("memory: {} of weights", in_bytes(static_cast<double>(memory.weights)));
  if (memory.positions > 0)
    fmt::print(", {} of {} keys and values for {} positions ({} each)", in_bytes(static_cast<double>(memory.kv())), flags.kv,
               memory.positions, in_bytes(static_cast<double>(memory.kv_per_position)));
  fmt::print("\n\nmetadata\n");
  for (const auto& [key, value] : file.lines) fmt::print("  {} = {}\n", one_line(key), one_line(value));
  fmt::print("\ntensors{:>37} {:>16} {:>10} {:>12}\n", "format", "shape", "bytes", "offset");
  for (const ShownTensor& t : file.tensors)
    fmt::print("  {:<34} {:>7} {:>16} {:>10} {:>12}\n", one_line(t.name), t.format, shape_text(t), t.bytes, t.offset);
  return 0;
}

}  // namespace

void add_inspect(Commands& commands) {
  const auto flags = std::make_shared<InspectFlags>();
  CLI::App& app = commands.add("inspect", "What a model's file says of itself", [flags] { return inspect(*flags); });
  CLI::Option* model =
      app.add_option("MODEL", flags->path, "a GGUF file, or a Hugging Face folder")->type_name("")->check(not_empty());
  CLI::Option* preset = app.add_option("--preset", flags->preset, "a well-known model's shape, instead of a file")
                            ->type_name("NAME")
                            ->check(not_empty())
                            ->excludes(model);
  CLI::Option* families = app.add_option("--families", flags->families, "a comparison of the presets: moe, dense, mla or all")
                              ->type_name("KIND")
                              ->check(one_of(family_kinds()))
                              ->excludes(model)
                              ->excludes(preset);
  app.add_option("--ctx", flags->context, "positions to count the memory for (default: the model's, at most 4096)")
      ->type_name("N")
      ->transform(within(1, 1 << 28))
      ->excludes(preset)
      ->excludes(families);
  app.add_option("--kv", flags->kv, "how keys and values would be stored: f32, f16, bf16 or q8_0")
      ->type_name("NAME")
      ->check(one_of({"f32", "f16", "bf16", "q8_0"}))
      ->capture_default_str();
  CLI::Option* block = app.add_option("--block", flags->block, "the fields and the values of one block, instead")
                           ->type_name("TENSOR:ROW:BLOCK")
                           ->check(not_empty());
  CLI::Option* roles = app.add_flag("--roles", flags->roles, "the format of each role's tensors, layer by layer, instead");
  roles->excludes(block);
  app.add_option("--type", flags->type, concat("with --roles: what quantizing to this would give: ", mix_names()))
      ->type_name("NAME")
      ->needs(roles);
  CLI::Option* arrays =
      app.add_flag("--arrays", flags->arrays, "with --json: arrays of the metadata whole, not their first items");
  arrays->excludes(preset)->excludes(families)->excludes(block)->excludes(roles);
  arrays->needs(app.add_flag("--json", flags->json, "print one JSON document"));
  for (CLI::Option* const of_a_file : {block, roles}) of_a_file->excludes(preset)->excludes(families);
}

}  // namespace nihao::program
