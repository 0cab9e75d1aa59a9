// Opening what a command needs of a model: its tokenizer and template alone, or all of it with a progress bar.
#pragma once

#include "common.hpp"

#include <memory>

namespace nihao::program {

/// Loads the model that the flags name; a progress bar is drawn while standard error is a terminal.
[[nodiscard]] Expected<AnyModel> load_model(const ModelFlags& flags, std::stop_token stop = {});
/// The same with other options.
[[nodiscard]] Expected<AnyModel> load_model(const std::string& path, LoadOptions options, std::stop_token stop = {});

/// The tokenizer and the chat template of a model's files; the weights are not touched.
[[nodiscard]] Expected<AnyModel::Text> load_text(const std::string& path);
/// The same, or an error where the files carry no tokenizer.
[[nodiscard]] Expected<Tokenizer> load_tokenizer(const std::string& path);

/// A chat template from a file.
[[nodiscard]] Expected<ChatTemplate> load_template(const std::string& path);

/// A bar on standard error, where that is a terminal.
[[nodiscard]] std::shared_ptr<ProgressSink> progress_bar();

/// "llama, 134.5 M parameters, 97.1 MB"
[[nodiscard]] std::string describe(const Config& config, const TensorFile& tensors);

}  // namespace nihao::program
