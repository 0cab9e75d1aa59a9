// Where the tests' large data is: `../shared` beside the checkout, else $NIHAO_TEST_DATA. A test that cannot find its data
// says so with NIHAO_SKIP; CI counts those lines and fails if there are any.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace nihao::test {

/// The checkout's folder. Defined in main.cpp, the one unit that is compiled with the path (so that a compiler cache serves the
/// others in every checkout).
extern const char* const source_dir;

/// The path of `relative` under the test data, or nothing.
inline std::optional<std::filesystem::path> data(const std::string& relative) {
  namespace fs = std::filesystem;
  std::vector<fs::path> roots{fs::path(source_dir) / ".." / "shared"};
  if (const char* env = std::getenv("NIHAO_TEST_DATA")) roots.emplace_back(env);
  for (const fs::path& root : roots) {
    std::error_code ignored;
    if (fs::exists(root / relative, ignored)) return root / relative;
  }
  return std::nullopt;
}

/// The path of a real model, in $NIHAO_MODELS or the user's cache (where cmake/demo.sh puts it), or nothing.
inline std::optional<std::filesystem::path> model(const std::string& file) {
  namespace fs = std::filesystem;
  std::vector<fs::path> roots;
  if (const char* env = std::getenv("NIHAO_MODELS")) roots.emplace_back(env);
  if (const char* env = std::getenv("XDG_CACHE_HOME"); env != nullptr && *env != '\0')
    roots.emplace_back(fs::path(env) / "nihao");
  if (const char* env = std::getenv("HOME")) roots.emplace_back(fs::path(env) / ".cache" / "nihao");
  for (const fs::path& root : roots) {
    std::error_code ignored;
    if (fs::exists(root / file, ignored)) return root / file;
  }
  return std::nullopt;
}

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace nihao::test

/// Leaves a test whose data is not there, and says so on a line that CI counts.
#define NIHAO_SKIP(what)                                     \
  do {                                                       \
    std::printf("SKIPPED: %s\n", std::string(what).c_str()); \
    return;                                                  \
  } while (false)
