#include "model.hpp"

#include <nihao/files/gguf.hpp>
#include <nihao/models/load.hpp>
#include <nihao/models/load_hf.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <sys/ioctl.h>
#include <unistd.h>

namespace nihao::program {

namespace {

// Of the terminal that standard error is; 80 where it does not say.
[[nodiscard]] std::size_t terminal_columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

// One line that leaves the last column free, where a cursor would wrap: the bar gets what the rest leaves of it, or nothing.
[[nodiscard]] std::string progress_line(std::string_view stage, int percent, std::size_t columns) {
  std::string line = fmt::format("{} {:3d} %", stage, percent);
  constexpr std::size_t widest = 30, narrowest = 5, frame = std::string_view(" []").size();
  if (const std::size_t taken = line.size() + frame + 1; columns >= taken + narrowest) {
    const std::size_t width = std::min(widest, columns - taken), filled = width * static_cast<std::size_t>(percent) / 100;
    line = fmt::format("{} [{}{}] {:3d} %", stage, std::string(filled, '#'), std::string(width - filled, '.'), percent);
  }
  return line.substr(0, columns - 1);
}

class ProgressBar final : public ProgressSink {
 public:
  ~ProgressBar() override {
    if (shown_ >= 0) fmt::print(stderr, "\r\033[K");
    std::fflush(stderr);
  }
  void progress(std::string_view stage, std::uint64_t done, std::uint64_t total) override {
    const int percent = total == 0 ? 100 : static_cast<int>(static_cast<double>(done) / static_cast<double>(total) * 100);
    if (percent == shown_) return;
    shown_ = percent;
    fmt::print(stderr, "\r{}", progress_line(stage, percent, terminal_columns()));
    std::fflush(stderr);
  }

 private:
  int shown_ = -1;
};

[[nodiscard]] bool is_folder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

}  // namespace

std::shared_ptr<ProgressSink> progress_bar() {
  if (::isatty(STDERR_FILENO) == 0) return nullptr;
  return std::make_shared<ProgressBar>();
}

Expected<AnyModel> load_model(const std::string& path, LoadOptions options, std::stop_token stop) {
  options.hooks.progress = progress_bar();
  options.hooks.stop = std::move(stop);
  return is_folder(path) ? load_hf(path, options) : load(path, options);
}

Expected<AnyModel> load_model(const ModelFlags& flags, std::stop_token stop) {
  return load_model(flags.path, flags.load_options(), std::move(stop));
}

Expected<AnyModel::Text> load_text(const std::string& path) {
  if (is_folder(path)) return text_from_folder(path);
  auto gguf = Gguf::open(path, GgufTypes::listed);  // weights that cannot be computed with do not matter here
  if (!gguf) return std::move(gguf).error();
  auto text = text_from_gguf(*gguf);
  if (!text) return std::move(text).error().in(path);
  return text;
}

Expected<Tokenizer> load_tokenizer(const std::string& path) {
  NIHAO_TRY(AnyModel::Text text, load_text(path));
  if (!text.tokenizer) return std::move(text.tokenizer).error().in(path);
  return std::move(text.tokenizer);
}

Expected<ChatTemplate> load_template(const std::string& path) {
  NIHAO_TRY(const std::string source, read_file(path));
  auto parsed = ChatTemplate::parse(source);
  if (!parsed) return std::move(parsed).error().in(path);
  return parsed;
}

std::string describe(const Config& config, const TensorFile& tensors) {
  double parameters = 0, bytes = 0;
  for (const TensorInfo& t : tensors.tensors())
    parameters += static_cast<double>(t.elements()), bytes += static_cast<double>(t.bytes.size());
  return fmt::format("{}, {:.1f} M parameters, {}", config.architecture, parameters / 1e6, in_bytes(bytes));
}

}  // namespace nihao::program
