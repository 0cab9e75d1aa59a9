// What run and chat show of a model's thinking.
#pragma once

#include "common.hpp"

#include <nihao/engine/session.hpp>

namespace nihao::program {

/// How long the model may think, and what of it is shown.
struct ThinkFlags {
  std::size_t most = 0, least = 0;
  std::string shown;  ///< hidden, count or stream; empty: neither flag was given, and the text is as the model writes it
  CLI::Option* budget = nullptr;

  void add(CLI::App& app);
  void apply(GenerateOptions& options) const;
  /// Prints a piece of the answer on standard output, or of the thinking, if it is to be seen, on standard error.
  void print(const Session& session, std::string_view piece) const;
  /// After the answer: how many tokens of thinking there were, if they are to be counted.
  void print_count(const GenerationResult& result) const;
  /// The same as fields of a document.
  void add_to(Json& json, const GenerationResult& result) const;
};

}  // namespace nihao::program
