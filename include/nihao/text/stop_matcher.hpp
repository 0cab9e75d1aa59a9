// Station C15, stop strings in streamed text: found wherever the tokens cut them, and never let out half.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nihao {

/// Lets text through until one of the stop strings appears. The text ends at the first byte that completes a stop string; if that
/// byte completes several, the longest is cut off. What could still become a stop string is held back until it cannot. So all
/// that is let out, in a row, is the same however the text was cut into pieces.
///
/// Each stop string is followed as in Knuth, Morris and Pratt 1977 (SIAM J. Comput. 6): a byte costs a few steps per stop string.
class StopMatcher {
 public:
  /// Empty strings are ignored. `keep`: the stop string itself is let out too.
  explicit StopMatcher(std::vector<std::string> stops = {}, bool keep = false) : keep_(keep) {
    for (std::string& text : stops)
      if (!text.empty()) stops_.emplace_back(std::move(text));
  }

  /// The text that is now certain; valid until the next call. After a match nothing more comes out.
  std::string_view push(std::string_view text) {
    out_.clear();
    consumed_ = 0;
    if (matched()) return out_;
    for (const char byte : text) {
      ++consumed_;
      held_ += byte;
      const Stop* longest = nullptr;
      for (Stop& stop : stops_) {
        stop.advance(byte);
        if (stop.length == stop.text.size() && (longest == nullptr || stop.length > longest->length)) longest = &stop;
      }
      if (longest == nullptr) continue;
      hit_ = longest->text;
      if (!keep_) held_.resize(held_.size() - hit_.size());
      return flush();
    }
    std::size_t open = 0;  // the longest end of held_ that begins a stop string
    for (const Stop& stop : stops_) open = std::max(open, stop.length);
    out_.assign(held_, 0, held_.size() - open);
    held_.erase(0, held_.size() - open);
    return out_;
  }

  /// The end of the text: what was held back is no stop string after all.
  std::string_view flush() {
    out_ = std::exchange(held_, {});
    return out_;
  }

  [[nodiscard]] bool matched() const noexcept { return !hit_.empty(); }
  /// The stop string that ended the text; empty while there is none.
  [[nodiscard]] std::string_view hit() const noexcept { return hit_; }
  /// How many bytes of the last push were read: all of them, or up to the end of the stop string.
  [[nodiscard]] std::size_t consumed() const noexcept { return consumed_; }

 private:
  struct Stop {
    explicit Stop(std::string t) : text(std::move(t)), fallback(text.size(), 0) {
      for (std::size_t i = 1, n = 0; i < text.size(); ++i) {
        while (n > 0 && text[n] != text[i]) n = fallback[n - 1];
        n += text[n] == text[i];
        fallback[i] = static_cast<std::uint32_t>(n);
      }
    }
    void advance(char byte) noexcept {
      while (length > 0 && (length == text.size() || text[length] != byte)) length = fallback[length - 1];
      length += text[length] == byte;
    }

    std::string text;
    std::vector<std::uint32_t> fallback;  // [text] the longest proper prefix that also ends text[0..i]
    std::size_t length = 0;               // how much of it the text ends with
  };

  std::vector<Stop> stops_;
  std::string held_, out_, hit_;
  std::size_t consumed_ = 0;
  bool keep_;
};

}  // namespace nihao
