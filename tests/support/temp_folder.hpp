// A folder of its own for a test, gone when the test ends.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <unistd.h>

namespace nihao::test {

class TempFolder {
 public:
  TempFolder() {
    static std::atomic<int> next{0};
    root_ = std::filesystem::temp_directory_path() / ("nihao_test_" + std::to_string(::getpid()) + "_" + std::to_string(next++));
    std::filesystem::create_directories(root_);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }

  [[nodiscard]] const std::filesystem::path& root() const { return root_; }
  [[nodiscard]] std::string path(const std::string& name) const { return (root_ / name).string(); }

 private:
  std::filesystem::path root_;
};

}  // namespace nihao::test
