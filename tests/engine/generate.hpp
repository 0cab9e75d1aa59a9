// How the engine's tests generate.
#pragma once

#include "nihao/engine/session.hpp"

#include <string>
#include <string_view>

namespace nihao::test {

/// Greedy, so that what comes out depends on the model alone.
inline GenerateOptions greedy(std::size_t tokens) {
  return {.max_tokens = tokens, .sampling = {.temperature = 0}, .ignore_eog = true};
}

inline std::string all_of(Session::Generation generation) {
  std::string text;
  for (const std::string_view piece : generation) text += piece;
  return text;
}

}  // namespace nihao::test
