// Stop strings in streamed text: found wherever the tokens cut them, and never let out half.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace nihao {

/// Lets text through until one of the stop strings appears. Text that could still become a stop string is held back until it
/// cannot; all that is let out, in a row, is the text before the first stop string.
class StopMatcher {
 public:
  /// Empty strings are ignored.
  explicit StopMatcher(std::vector<std::string> stops = {}) : stops_(std::move(stops)) {
    std::erase_if(stops_, [](const std::string& s) { return s.empty(); });
  }

  /// The text that is now certain; valid until the next call. After a match nothing more comes out.
  std::string_view push(std::string_view text) {
    out_.clear();
    if (matched_) return out_;
    held_ += text;
    std::size_t first = std::string::npos;
    for (const std::string& stop : stops_) first = std::min(first, held_.find(stop));
    if (first != std::string::npos) {
      matched_ = true;
      out_.assign(held_, 0, first);
      held_.clear();
      return out_;
    }
    const std::size_t keep = longest_possible_start();
    out_.assign(held_, 0, held_.size() - keep);
    held_.erase(0, held_.size() - keep);
    return out_;
  }

  /// The end of the text: what was held back is no stop string after all.
  std::string_view flush() {
    out_ = std::move(held_);
    held_.clear();
    return out_;
  }

  [[nodiscard]] bool matched() const noexcept { return matched_; }

 private:
  // The longest end of held_ that begins a stop string.
  [[nodiscard]] std::size_t longest_possible_start() const noexcept {
    std::size_t longest = 0;
    for (const std::string& stop : stops_)
      for (std::size_t n = std::min(stop.size() - 1, held_.size()); n > longest; --n)
        if (std::string_view(held_).substr(held_.size() - n) == std::string_view(stop).substr(0, n)) {
          longest = n;
          break;
        }
    return longest;
  }

  std::vector<std::string> stops_;
  std::string held_, out_;
  bool matched_ = false;
};

}  // namespace nihao
