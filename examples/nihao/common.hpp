// What the commands share: flags, text from arguments and files, and how results and errors are printed.
#pragma once

#include <nihao/files/json.hpp>
#include <nihao/models/any_model.hpp>
#include <nihao/sampling/sampler.hpp>

#include <charconv>
#include <chrono>
#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace nihao::program {

/// A check that the whole of a value is a number in [least, most]; goes to transform(), for it also writes the number in plain
/// decimal. (Without it the parser takes "" for 0, "010" for 8, "-1" for 2^64 - 1, and NaN for anything.)
template <class T>
[[nodiscard]] CLI::Validator within(T least, T most) {
  return CLI::Validator(
      [least, most](std::string& text) {
        T value{};
        const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool whole = !text.empty() && end == text.data() + text.size() && problem == std::errc{};
        if (!whole || !(value >= least && value <= most))
          return concat("'", text, "' is no ", std::is_integral_v<T> ? "integer" : "number", " from ", least, " to ", most);
        if constexpr (std::is_integral_v<T>) text = concat(value);
        return std::string();
      },
      "");
}
/// A check that there is something: for names of files, where "" would read as if the flag were not there.
[[nodiscard]] inline CLI::Validator not_empty() {
  return CLI::Validator([](std::string& text) { return std::string(text.empty() ? "it is empty" : ""); }, "");
}
/// A check that a word is one of these; the option's text lists them.
[[nodiscard]] inline CLI::Validator one_of(std::vector<std::string> words) {
  return CLI::IsMember(std::move(words)).description("");
}

/// The commands of the program: the parser of each, and what it does once its flags are read. The action returns the exit status.
struct Commands {
  CLI::App& app;
  std::vector<std::pair<CLI::App*, std::function<Expected<int>()>>> actions = {};

  CLI::App& add(const char* name, const char* description, std::function<Expected<int>()> action) {
    actions.emplace_back(app.add_subcommand(name, description), std::move(action));
    return *actions.back().first;
  }
};

/// Which model, and how it is run.
struct ModelFlags {
  std::string path;
  int threads = 0;
  std::size_t chunk = 512;
  std::size_t context = 0;
  std::string kv;  ///< as --kv says; "": see kv_type()
  std::string isa;
  std::string device = "cpu";
  std::string mla = "absorbed";
  std::string lora;
  bool exact = false;

  /// --model alone: for commands that do not compute.
  void add_path(CLI::App& app);
  /// All of them. `context_default` says what --ctx is when it is not given.
  void add(CLI::App& app, const char* context_default = "the model's, at most 4096", int least_context = 1);
  /// All but --threads and --ctx.
  void add_common(CLI::App& app);
  [[nodiscard]] CpuOptions cpu() const;
  [[nodiscard]] LoadOptions load_options() const;
  /// How keys and values are stored: f16, or f32 where all is exact, unless --kv says otherwise.
  [[nodiscard]] KvType kv_type() const;
  [[nodiscard]] ContextOptions context_options() const;
};

/// A text given as an argument, or by --file, or `-` for standard input.
struct TextFlags {
  std::string text, file;
  CLI::Option* text_option = nullptr;
  CLI::Option* file_option = nullptr;

  void add(CLI::App& app, const char* what);
  /// Whether the user gave one.
  [[nodiscard]] bool given() const;
  [[nodiscard]] Expected<std::string> read() const;
};

/// A check that a text is a sampler chain.
[[nodiscard]] CLI::Validator valid_chain();

/// How a token is chosen.
struct SamplingFlags {
  SamplingParams params;
  std::string chain;

  void add(CLI::App& app);
};

/// Throws UsageError if `output`, which `flag` names, is `other` by any path, a file of that folder, or another of its shards.
/// Empty names are no files.
void keep_apart(const std::string& output, const char* flag, const std::string& other, const char* what);

/// An option of numbers in [least, most] with commas between them; what `values` holds before is its default.
template <class T>
CLI::Option* add_list(CLI::App& app, const char* names, const char* type, std::vector<T>& values, const std::string& what,
                      T least, T most) {
  const auto read = [&values, least, most](std::string& text) {
    values.clear();
    std::string problem;
    for (std::size_t from = 0; from <= text.size() && problem.empty();) {
      const std::size_t comma = std::min(text.find(',', from), text.size());
      std::string item = text.substr(from, comma - from);
      problem = within(least, most)(item);
      std::from_chars(item.data(), item.data() + item.size(), values.emplace_back());
      from = comma + 1;
    }
    return problem;
  };
  std::string usual;
  for (const T value : values) usual += concat(usual.empty() ? "" : ",", value);
  return app.add_option_function<std::string>(
                names, [](const std::string&) {}, what)
      ->type_name(type)
      ->default_str(usual)
      ->check(CLI::Validator(read, ""));
}

/// A file's content, or standard input's for "-". Errors: io.
[[nodiscard]] Expected<std::string> read_file(const std::string& path);

/// Bad usage that the parser cannot see. main prints it and leaves with 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One JSON document on standard output.
void print_json(const Json& json);
/// A string that may not be UTF-8, as a JSON string: U+FFFD where it is not.
[[nodiscard]] Json json_text(std::string_view text);
[[nodiscard]] std::string base64(std::string_view bytes);
/// A line for a terminal: control characters as \n, \t, \xNN, everything else as it is.
[[nodiscard]] std::string one_line(std::string_view text);
/// "97.1 MB"
[[nodiscard]] std::string in_bytes(double bytes);

/// Standard error's lines about what the program does, in grey where it is a terminal.
void note(std::string_view line);

/// The moment, as the wall shows it.
[[nodiscard]] jinja::DateTime local_time();

/// Since the program started, in seconds.
[[nodiscard]] double seconds_since_start();

}  // namespace nihao::program
