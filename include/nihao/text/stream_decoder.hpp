// Ids to text while they are being generated: what comes out is always whole UTF-8.
#pragma once

#include "tokenizer.hpp"
#include "utf8.hpp"

#include <string>
#include <string_view>

namespace nihao {

struct StreamDecoderOptions {
  bool skip_special = true;  ///< leave control tokens out
  bool at_start = true;      ///< the first id begins a text; false: it goes on after a prompt, and its leading space is kept
};

/// Decodes one id after another. All pieces in a row are decode() of all ids without clean_spaces, with U+FFFD for each
/// maximal subpart of bytes that are not UTF-8, however the ids cut the characters.
class StreamDecoder {
 public:
  /// `tokenizer` must outlive this.
  explicit StreamDecoder(const Tokenizer& tokenizer, StreamDecoderOptions options = {}) noexcept
      : tokenizer_(&tokenizer), skip_special_(options.skip_special), first_(options.at_start) {}

  /// The text that is now certain, perhaps none; valid until the next call. An id out of range adds none. `keep`: this one is
  /// not left out, though it is a control token.
  std::string_view push(TokenId id, bool keep = false) {
    text_.clear();
    if (keep || !(skip_special_ && tokenizer_->is_special(id))) {
      bytes_.push(tokenizer_->text_of(id, first_), text_);
      first_ = false;
    }
    return text_;
  }

  /// The end: a character that was never completed becomes U+FFFD. Valid until the next call; ids may follow.
  std::string_view flush() {
    text_.clear();
    bytes_.finish(text_);
    return text_;
  }

  /// True if bytes wait for the rest of their character.
  [[nodiscard]] bool holds_bytes() const noexcept { return bytes_.waiting() != 0; }

 private:
  const Tokenizer* tokenizer_;
  Utf8Stream bytes_;
  std::string text_;
  bool skip_special_, first_;
};

}  // namespace nihao
