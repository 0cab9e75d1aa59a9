// What the stations share: the model, the prompt that the journey follows, and an observer that keeps what a forward pass makes.
#pragma once

#include <nihao/nihao.hpp>
#include <nihao/trace/recorder.hpp>

#include <cstdlib>
#include <fmt/core.h>
#include <string>
#include <vector>

namespace station {

inline constexpr std::string_view prompt = "你好,llama";

/// What a station works on.
struct Model {
  std::string path;
  nihao::AnyModel model;
  std::vector<nihao::TokenId> ids;  ///< the prompt's

  [[nodiscard]] const nihao::Config& config() const { return model.config(); }
  [[nodiscard]] const nihao::Tokenizer& tokenizer() const { return *model.tokenizer(); }
  /// A token's bytes as they may be printed: text, or \xNN where a token is only part of a character.
  [[nodiscard]] std::string shown(nihao::TokenId id) const {
    const std::string_view bytes = tokenizer().piece(id);
    const bool whole = nihao::StreamDecoder(tokenizer(), {.skip_special = false, .at_start = false}).push(id) == bytes;
    const bool control = std::any_of(bytes.begin(), bytes.end(), [](char c) { return c >= 0 && c < ' '; });
    return whole && !control ? std::string(bytes) : nihao::printable(bytes);
  }
};

/// An observer that keeps the tensors of a forward pass, and finds them by name.
struct Kept : nihao::Recorder {
  /// [rows of the prompt, width]; empty if no station has that name.
  [[nodiscard]] nihao::MatrixView<const float> at(std::string_view name, int layer = -1) const {
    for (const nihao::Record& r : records())
      if (r.name == name && r.layer == layer) return {r.values.data(), r.rows, r.cols};
    return {};
  }
};

/// Runs `ids` through the model under `observer`; the logits of the last position, [vocab].
template <nihao::Observer O>
[[nodiscard]] nihao::Expected<std::vector<float>> forward(const Model& m, O& observer) {
  NIHAO_TRY(const auto context, m.model.context({.positions = 64, .kv = nihao::KvType::f32}));
  const nihao::SequenceTokens all{0, m.ids};
  const nihao::ObserverRef reference(observer);
  NIHAO_TRY(const auto logits, context->step(std::span(&all, 1), &reference));
  return std::vector<float>(logits.row(0).begin(), logits.row(0).end());
}

/// "0.1234 -0.5678 ...": the first `count` values.
[[nodiscard]] inline std::string head(std::span<const float> values, std::size_t count = 4) {
  std::string out;
  for (const float v : values.first(std::min(count, values.size()))) out += fmt::format("{:.4f} ", v);
  return values.size() > count ? out + "..." : out;
}

/// The usual path of SmolLM2-135M, where cmake/demo.sh puts it.
[[nodiscard]] inline std::string default_path() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const std::string folder = cache != nullptr && *cache != '\0' ? cache : std::string(home != nullptr ? home : ".") + "/.cache";
  return folder + "/nihao/smollm2-135m-q4_1.gguf";
}

/// Opens the model that the command line names (else the default one) and lets `tell` speak. Most stations multiply exactly
/// (weights as floats, sums in f32), so that sums made by hand come out the same.
inline int run(int argc, char** argv, nihao::Expected<void> (*tell)(const Model&), bool exact = true) {
  const auto told = [&]() -> nihao::Expected<void> {
    const std::string path = argc > 1 ? argv[1] : default_path();
    NIHAO_TRY(auto model, nihao::load(path, {.cpu = {.exact = exact}}));
    if (model.tokenizer() == nullptr) return nihao::Error{nihao::ErrorCode::missing, "the file has no tokenizer", path};
    NIHAO_TRY(auto ids, model.tokenizer()->encode(prompt));
    return tell({path, std::move(model), std::move(ids)});
  }();
  if (told) return 0;
  fmt::print(stderr, "{}\nusage: {} [model.gguf]    (bash cmake/demo.sh fetches the default model)\n", told.error().message(),
             argv[0]);
  return 1;
}

}  // namespace station
