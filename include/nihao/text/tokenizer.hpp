// Text to token ids and back. The way of a text: special tokens are cut out; what lies between is normalized, cut into words
// and merged. docs/tokenizers.md tells each step, and where vendors and llama.cpp differ.
#pragma once

#include "bert_text.hpp"
#include "bpe.hpp"
#include "sentencepiece_normalizer.hpp"
#include "special_tokens.hpp"
#include "spm.hpp"
#include "tokenizer_data.hpp"
#include "unigram.hpp"
#include "vocabulary.hpp"
#include "word_piece.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace nihao {

class Gguf;

struct EncodeOptions {
  bool add_special = true;     ///< put BOS before and EOS after, if the model wants them
  bool parse_special = false;  ///< "<|im_end|>" in the text is that token; not for text that a user wrote
  std::span<const std::size_t> breaks =
      {};  ///< offsets in rising order across which no special token is found: see render_untrusted()
};

struct DecodeOptions {
  bool skip_special = false;  ///< leave control tokens out
  bool clean_spaces = true;   ///< drop the space of "a ?", if the vocabulary says so; StreamDecoder never does
};

/// A model's tokenizer. Owns all it needs: the file may be closed. Const calls may run in several threads at once.
class Tokenizer {
 public:
  /// Errors: those of tokenizer_data() and from_data().
  [[nodiscard]] static Expected<Tokenizer> from_gguf(const Gguf& file);

  /// Errors: mismatch (lists of different lengths), malformed (a byte token, a merge), missing (no tokens), limit.
  [[nodiscard]] static Expected<Tokenizer> from_data(const TokenizerData& data);

  /// The ids of a text. It need not be UTF-8: see docs/tokenizers.md for what becomes of other bytes.
  /// Errors: limit (2 GiB of text or more).
  [[nodiscard]] Expected<std::vector<TokenId>> encode(std::string_view text, EncodeOptions options = {}) const;

  /// The bytes of all ids in a row: UTF-8 if the ids were whole characters. The space that encode() put in front is taken off
  /// again. Ids out of range are passed over.
  [[nodiscard]] std::string decode(std::span<const TokenId> ids, DecodeOptions options = {}) const;

  /// The bytes of one token (Vocabulary::piece). They may be part of a character; a control token's are its name.
  [[nodiscard]] std::string_view piece(TokenId id) const noexcept { return vocabulary_.piece(id); }
  [[nodiscard]] TokenType type(TokenId id) const noexcept { return vocabulary_.type(id); }
  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return vocabulary_.size(); }
  [[nodiscard]] const Vocabulary& vocabulary() const noexcept { return vocabulary_; }

  /// The token of exactly these bytes: a normal one, else a special one of that name, else the byte token.
  [[nodiscard]] std::optional<TokenId> find(std::string_view piece) const noexcept;

  /// Where in a text a token begins that only EncodeOptions::parse_special finds, in rising order.
  [[nodiscard]] std::vector<std::size_t> special_starts(std::string_view text) const { return special_.starts(text); }

  [[nodiscard]] std::optional<TokenId> bos() const noexcept { return optional(bos_); }
  [[nodiscard]] std::optional<TokenId> eos() const noexcept { return optional(eos_); }
  /// The end of one turn of a conversation: <|im_end|>, <|eot_id|>, <end_of_turn>.
  [[nodiscard]] std::optional<TokenId> eot() const noexcept { return optional(eot_); }
  [[nodiscard]] std::optional<TokenId> pad() const noexcept { return optional(pad_); }
  [[nodiscard]] std::optional<TokenId> unknown() const noexcept { return optional(unknown_); }

  /// True if the model says with this token that it has finished.
  [[nodiscard]] bool is_eog(TokenId id) const noexcept { return std::find(eog_.begin(), eog_.end(), id) != eog_.end(); }
  /// All of those, in rising order.
  [[nodiscard]] std::span<const TokenId> eog() const noexcept { return eog_; }
  /// True for control tokens and the unknown token: what DecodeOptions::skip_special leaves out.
  [[nodiscard]] bool is_special(TokenId id) const noexcept {
    return type(id) == TokenType::control || type(id) == TokenType::unknown;
  }

  /// What EncodeOptions::add_special puts before and after a text.
  [[nodiscard]] std::span<const TokenId> before() const noexcept { return before_; }
  [[nodiscard]] std::span<const TokenId> after() const noexcept { return after_; }
  [[nodiscard]] bool adds_bos() const noexcept { return std::find(before_.begin(), before_.end(), bos_) != before_.end(); }
  [[nodiscard]] bool adds_space_prefix() const noexcept { return add_space_prefix_; }

  /// The bytes a token adds to a text; `first`: at its start, where the space that encode() put in front is taken off.
  [[nodiscard]] std::string_view text_of(TokenId id, bool first) const noexcept {
    std::string_view bytes = piece(id);
    if (first && add_space_prefix_ && !bytes.empty() && bytes.front() == ' ') bytes.remove_prefix(1);
    return bytes;
  }

 private:
  Tokenizer() = default;

  static std::optional<TokenId> optional(TokenId id) noexcept { return id == no_token ? std::nullopt : std::optional(id); }

  void encode_words(const BytePairEncoder& encoder, std::string_view text, const EncodeOptions& options,
                    std::vector<TokenId>& out) const;

  template <class Encoder>
  void encode_stretches(const Encoder& encoder, std::string_view text, const EncodeOptions& options,
                        std::vector<TokenId>& out) const;

  void encode_normalized(const UnigramEncoder& encoder, std::string_view text, const EncodeOptions& options,
                         std::vector<TokenId>& out) const;

  void encode_bert(const WordPieceEncoder& encoder, std::string_view text, const EncodeOptions& options,
                   std::vector<TokenId>& out) const;

  void find_special_tokens(const TokenizerData& data, TokenId eom);

  static void clean_up_spaces(std::string& text);

  Vocabulary vocabulary_;
  SpecialTokens special_;
  std::variant<std::monostate, BytePairEncoder, SentencePieceEncoder, UnigramEncoder, WordPieceEncoder> encoder_;
  SentencePieceNormalizer normalizer_;
  BertWords::Options bert_words_;
  std::vector<TokenId> eog_, before_, after_;
  TokenId bos_ = no_token, eos_ = no_token, eot_ = no_token, pad_ = no_token, unknown_ = no_token;
  Pretokenizer words_ = Pretokenizer::gpt2;
  bool nfc_ = false, add_space_prefix_ = false, clean_spaces_ = false;
};

}  // namespace nihao

#if !NIHAO_COMPILED
#include "tokenizer_impl.hpp"
#endif
