#include "common.hpp"

#include <nihao/base/platform.hpp>
#include <nihao/files/gguf_shard_name.hpp>

#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <unistd.h>

namespace nihao::program {

namespace {
const auto program_start = std::chrono::steady_clock::now();

// Their names as flags want them, and as a sentence does: "portable, avx2 or avx512".
std::vector<std::string> isa_names() {
  std::vector<std::string> names;
  for (const Isa isa : all_isas) names.emplace_back(to_string(isa));
  return names;
}
std::string isa_list() {
  std::string list;
  for (const Isa& isa : all_isas) {
    if (&isa != std::begin(all_isas)) list += &isa + 1 == std::end(all_isas) ? " or " : ", ";
    list += to_string(isa);
  }
  return list;
}
}  // namespace

void ModelFlags::add_path(CLI::App& app) {
  app.add_option("-m,--model", path, "a GGUF file, or a Hugging Face folder")->type_name("M")->required()->check(not_empty());
}

void ModelFlags::add(CLI::App& app, const char* context_default, int least_context) {
  add_common(app);
  app.add_option("--threads", threads, "threads (default: all)")->type_name("N")->transform(within(1, Cpu::max_threads));
  app.add_option("--ctx", context, concat("positions of the context (default: ", context_default, ")"))
      ->type_name("N")
      ->transform(within(least_context, 1 << 28));
}

void ModelFlags::add_common(CLI::App& app) {
  add_path(app);
  app.add_option("--chunk", chunk, "most prompt tokens in one step")
      ->type_name("N")
      ->transform(within(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--kv", kv, "how keys and values are stored: f32, f16, bf16 or q8_0")
      ->type_name("NAME")
      ->check(one_of({"f32", "f16", "bf16", "q8_0"}))
      ->default_str("f16, with --exact f32");
  app.add_option("--mla", mla, "how latent attention (DeepSeek) is computed: naive, absorbed or merged")
      ->type_name("NAME")
      ->check(one_of({"naive", "absorbed", "merged"}))
      ->capture_default_str();
  app.add_option("--lora", lora, "a LoRA adapter: a GGUF file, or a PEFT folder where the model is a folder")
      ->type_name("F")
      ->check(not_empty());
  app.add_flag("--exact", exact, "multiply in f32 with dequantized weights: slow, and as near to the model as f32 is");
  app.add_option("--isa", isa, concat("instruction set: ", isa_list(), " (default: $NIHAO_ISA, or the best of this machine)"))
      ->type_name("NAME")
      ->check(one_of(isa_names()));
  app.add_option("--device", device, "where it runs: cpu")->type_name("NAME")->check(one_of({"cpu"}))->capture_default_str();
}

CpuOptions ModelFlags::cpu() const {
  const char* environment = std::getenv("NIHAO_ISA");
  const std::string name = isa.empty() && environment != nullptr ? std::string(environment) : isa;
  const auto chosen = isa_from_name(name);
  if (!chosen && !name.empty()) throw UsageError(concat("NIHAO_ISA is ", name, ": not ", isa_list()));
  return {.threads = threads, .isa = chosen, .exact = exact};
}

LoadOptions ModelFlags::load_options() const {
  LoadOptions options{.cpu = cpu()};
  options.mla = mla == "naive" ? MlaMode::naive : mla == "merged" ? MlaMode::merged : MlaMode::absorbed;
  if (!lora.empty()) options.adapters = {lora};
  return options;
}

KvType ModelFlags::kv_type() const { return kv_type_from_name(kv).value_or(exact ? KvType::f32 : KvType::f16); }

ContextOptions ModelFlags::context_options() const {
  return {.positions = context, .chunk = chunk, .kv = kv_type(), .adapter = lora.empty() ? no_adapter : 0};
}

namespace {

// Where a file is or would be written: links are followed, also those that lead to nothing yet.
std::filesystem::path place_of(const std::string& path) {
  std::error_code ignored;
  const std::string file = detail::follow_links(path);
  return std::filesystem::weakly_canonical(std::filesystem::absolute(file.empty() ? path : file, ignored), ignored);
}

// "m" of m-00001-of-00002.gguf: what the shards of a model have in common.
std::string without_shard(const std::string& path) {
  const auto shard = GgufShardName::from(path);
  return shard ? shard->prefix : path;
}

}  // namespace

void keep_apart(const std::string& output, const char* flag, const std::string& other, const char* what) {
  if (output.empty() || other.empty()) return;
  std::error_code ignored;  // of paths that do not exist
  const std::filesystem::path to = place_of(output), from = place_of(other);
  const bool in_folder =
      std::filesystem::is_directory(from, ignored) && to.parent_path() == from && std::filesystem::exists(to, ignored);
  if (to == from || in_folder || std::filesystem::equivalent(to, from, ignored) ||
      (std::filesystem::exists(to, ignored) && without_shard(to.string()) == without_shard(from.string())))
    throw UsageError(concat(flag, " would overwrite ", what, ", ", other));
}

void TextFlags::add(CLI::App& app, const char* what) {
  text_option = app.add_option("TEXT", text, std::string(what) + "; - reads standard input")->type_name("");
  file_option = app.add_option("--file", file, "a file with it; - reads standard input")
                    ->type_name("F")
                    ->excludes(text_option)
                    ->check(not_empty());
}

bool TextFlags::given() const { return text_option->count() + file_option->count() > 0; }

Expected<std::string> TextFlags::read() const {
  if (!given()) throw UsageError("TEXT or --file is required");
  if (file_option->count() > 0) return read_file(file);
  if (text == "-") return read_file("-");
  return text;
}

CLI::Validator valid_chain() {
  return CLI::Validator(
      [](std::string& text) {
        const auto plan = parse_chain(text);
        return plan ? std::string() : plan.error().message();
      },
      "");
}

void SamplingFlags::add(CLI::App& app) {
  std::vector<CLI::Option*> stages;
  const auto stage = [&](const char* name, auto& value, const char* what, auto least, auto most) {
    stages.push_back(app.add_option(name, value, what)->type_name("N")->transform(within(least, most))->capture_default_str());
  };
  stage("--temp", params.temperature, "temperature; 0 takes the likeliest token", 0.0f, 1e5f);
  stage("--top-k", params.top_k, "keep the k likeliest; 0: all", 0, 1 << 30);
  stage("--top-p", params.top_p, "keep the fewest with this much probability; 1: all", 0.0f, 1.0f);
  stage("--min-p", params.min_p, "keep those with this share of the likeliest's probability", 0.0f, 1.0f);
  stage("--repeat-penalty", params.repeat_penalty, "of the last 64 tokens; 1: none", 1e-3f, 1e3f);
  app.add_option("--seed", params.seed, "same seed, same answer")
      ->type_name("N")
      ->transform(within(std::uint64_t{0}, UINT64_MAX))
      ->capture_default_str();
  CLI::Option* whole = app.add_option("--chain", chain,
                                      "the whole chain, such as \"top_k=40;min_p=0.05;temperature=0.8\", instead of the flags "
                                      "above")
                           ->type_name("CHAIN")
                           ->check(not_empty())
                           ->check(valid_chain());
  for (CLI::Option* one : stages) whole->excludes(one);
}

Expected<std::string> read_file(const std::string& path) {
  std::FILE* file = path == "-" ? stdin : std::fopen(path.c_str(), "rb");
  if (file == nullptr) return Error{ErrorCode::io, std::strerror(errno), path};
  std::string text;
  char buffer[1 << 16];
  errno = 0;
  while (const std::size_t count = std::fread(buffer, 1, sizeof buffer, file)) text.append(buffer, count);
  const bool failed = std::ferror(file) != 0;
  const int why = errno;
  if (file != stdin) std::fclose(file);
  if (failed) return Error{ErrorCode::io, std::strerror(why), path == "-" ? "standard input" : path};
  return text;
}

void print_json(const Json& json) { fmt::print("{}\n", json.dump(-1, ' ', false, Json::error_handler_t::replace)); }

Json json_text(std::string_view text) {
  // Written and read again: the writer puts U+FFFD where the text is not UTF-8, and then every reader of the value sees it.
  return Json::parse(Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string base64(std::string_view bytes) {
  static constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t word = 0;
    for (std::size_t j = 0; j < 3; ++j) word = word << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (std::size_t j = 0; j < 4; ++j) out += i + j <= bytes.size() ? digits[word >> (18 - 6 * j) & 63] : '=';
  }
  return out;
}

std::string one_line(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') out += "\\n";
    else if (c == '\t') out += "\\t";
    else if (byte < 0x20 || byte == 0x7f) out += fmt::format("\\x{:02x}", byte);
    else out += c;
  }
  return out;
}

std::string in_bytes(double bytes) {
  static constexpr const char* units[] = {"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  for (; bytes >= 1000 && unit + 1 < std::size(units); ++unit) bytes /= 1000;
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, units[unit]);
}

void note(std::string_view line) {
  static const bool terminal = ::isatty(STDERR_FILENO) != 0;
  std::fflush(stdout);
  fmt::print(stderr, "{}{}{}\n", terminal ? "\033[2m" : "", line, terminal ? "\033[0m" : "");
}

jinja::DateTime local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm t{};
  ::localtime_r(&now, &t);
  return {t.tm_year + 1900, t.tm_mon + 1, t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec};
}

double seconds_since_start() { return std::chrono::duration<double>(std::chrono::steady_clock::now() - program_start).count(); }

}  // namespace nihao::program
