// Text to token ids and back. The way of a text: special tokens are cut out; what lies between is normalized, cut into words
// and merged. docs/tokenizers.md tells each step, and where vendors and llama.cpp differ.
#pragma once

#include "bpe.hpp"
#include "nfc.hpp"
#include "pretokenize.hpp"
#include "special_tokens.hpp"
#include "spm.hpp"
#include "tokenizer_data.hpp"
#include "tokenizer_gguf.hpp"
#include "tokenizer_input.hpp"
#include "vocabulary.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace nihao {

struct EncodeOptions {
  bool add_special = true;     ///< put BOS before and EOS after, if the model wants them
  bool parse_special = false;  ///< "<|im_end|>" in the text is that token; never for text that a user wrote
};

struct DecodeOptions {
  bool skip_special = false;  ///< leave control tokens out
  bool clean_spaces = true;   ///< drop the space of "a ?", if the vocabulary says so; StreamDecoder never does
};

/// A model's tokenizer. Owns all it needs: the file may be closed. Const calls may run in several threads at once.
class Tokenizer {
 public:
  /// Errors: those of tokenizer_data() and from_data().
  [[nodiscard]] static Expected<Tokenizer> from_gguf(const Gguf& file) {
    NIHAO_TRY(const TokenizerData data, tokenizer_data(file));
    return from_data(data);
  }

  /// Errors: mismatch (lists of different lengths), malformed (a byte token, a merge), missing (no tokens), limit.
  [[nodiscard]] static Expected<Tokenizer> from_data(const TokenizerData& data) {
    if (data.tokens.empty()) return Error{ErrorCode::missing, "the vocabulary is empty"};
    Tokenizer t;
    const bool byte_pair = data.model == TokenizerData::Model::byte_pair;
    NIHAO_TRY(t.vocabulary_,
              Vocabulary::build(byte_pair ? PieceSpelling::byte_level : PieceSpelling::sentencepiece, data.tokens, data.types));
    const auto known = [&](TokenId id) { return t.vocabulary_.contains(id) ? id : no_token; };
    t.bos_ = known(data.bos), t.eos_ = known(data.eos), t.eot_ = known(data.eot), t.pad_ = known(data.pad);
    t.unknown_ = known(data.unknown);
    t.words_ = data.words;
    t.nfc_ = data.nfc;
    t.add_space_prefix_ = !byte_pair && data.add_space_prefix;
    t.clean_spaces_ = data.clean_spaces;
    t.add_bos_ = data.add_bos && t.bos_ != no_token;
    t.add_eos_ = data.add_eos && t.eos_ != no_token;
    t.find_special_tokens(data, known(data.eom));
    if (byte_pair) {
      NIHAO_TRY(t.encoder_, BytePairEncoder::build(t.vocabulary_, data.merges, data.whole_words_first));
    } else {
      NIHAO_TRY(t.encoder_, SentencePieceEncoder::build(t.vocabulary_, data.scores, t.unknown_));
    }
    return t;
  }

  /// The ids of a text. It need not be UTF-8: see docs/tokenizers.md for what becomes of other bytes.
  /// Errors: limit (2 GiB of text or more).
  [[nodiscard]] Expected<std::vector<TokenId>> encode(std::string_view text, EncodeOptions options = {}) const {
    if (text.size() > INT32_MAX) return Error{ErrorCode::limit, "a text may have at most 2^31 - 1 bytes"};
    std::vector<TokenId> out;
    out.reserve(text.size() / 4 + 8);
    if (options.add_special && add_bos_) out.push_back(bos_);
    if (const auto* byte_pair = std::get_if<BytePairEncoder>(&encoder_))
      encode_words(*byte_pair, text, options.parse_special, out);
    else if (const auto* spm = std::get_if<SentencePieceEncoder>(&encoder_))
      encode_stretches(*spm, text, options.parse_special, out);
    if (options.add_special && add_eos_) out.push_back(eos_);
    return out;
  }

  /// The bytes of all ids in a row: UTF-8 if the ids were whole characters. The space that encode() put in front is taken off
  /// again. Ids out of range are passed over.
  [[nodiscard]] std::string decode(std::span<const TokenId> ids, DecodeOptions options = {}) const {
    std::string out;
    bool first = true;
    for (const TokenId id : ids) {
      if (options.skip_special && is_special(id)) continue;
      out += text_of(id, first);
      first = false;
    }
    if (clean_spaces_ && options.clean_spaces) clean_up_spaces(out);
    return out;
  }

  /// The bytes of one token (Vocabulary::piece). They may be part of a character; a control token's are its name.
  [[nodiscard]] std::string_view piece(TokenId id) const noexcept { return vocabulary_.piece(id); }
  [[nodiscard]] TokenType type(TokenId id) const noexcept { return vocabulary_.type(id); }
  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return vocabulary_.size(); }
  [[nodiscard]] const Vocabulary& vocabulary() const noexcept { return vocabulary_; }

  /// The token of exactly these bytes: a normal one, else a special one of that name, else the byte token.
  [[nodiscard]] std::optional<TokenId> find(std::string_view piece) const noexcept {
    TokenId id = vocabulary_.find_normal(piece);
    if (id == no_token) id = special_.find(piece);
    if (id == no_token && piece.size() == 1) id = vocabulary_.byte_token(static_cast<std::uint8_t>(piece.front()));
    return id == no_token ? std::nullopt : std::optional(id);
  }

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

  [[nodiscard]] bool adds_bos() const noexcept { return add_bos_; }
  [[nodiscard]] bool adds_eos() const noexcept { return add_eos_; }
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

  void encode_words(const BytePairEncoder& encoder, std::string_view text, bool parse_special, std::vector<TokenId>& out) const {
    BytePairEncoder::Workspace work;
    std::string input, normal;
    const auto plain = [&](std::string_view part) {
      part = detail::byte_level_input(part, input);
      if (nfc_ && nfc_inert_prefix(part) != part.size()) part = normal = to_nfc(part);
      pretokenize(words_, part, [&](std::string_view word) { encoder.encode(vocabulary_, word, out, work); });
    };
    special_.split(text, parse_special, plain, [&](TokenId id) { out.push_back(id); });
  }

  void encode_stretches(const SentencePieceEncoder& encoder, std::string_view text, bool parse_special,
                        std::vector<TokenId>& out) const {
    SentencePieceEncoder::Workspace work;
    std::string input;
    bool prefix = add_space_prefix_;  // is the space in front still to come
    const auto plain = [&](std::string_view part) {
      encoder.encode(vocabulary_, detail::sentencepiece_input(part, prefix, input), out, work);
      prefix = false;
    };
    special_.split(text, parse_special, plain, [&](TokenId id) {
      // To SentencePiece a user-defined token is text like any other; where special tokens are parsed, text begins anew after
      // each.
      if (!parse_special && prefix) plain("");
      out.push_back(id);
      prefix = parse_special && add_space_prefix_;
    });
  }

  // Which tokens are found in text, and which end a generation. Files name at most EOS and EOT, and some give such a token the
  // wrong type, so the names that families use count too.
  void find_special_tokens(const TokenizerData& data, TokenId eom) {
    const auto listed = [](const std::vector<TokenId>& list, TokenId id) {
      return std::find(list.begin(), list.end(), id) != list.end();
    };
    const auto add = [&](TokenId id, bool always) {
      special_.add({id, vocabulary_.piece(id), always, listed(data.strip_left, id), listed(data.strip_right, id)});
    };
    for (std::size_t i = 0; i < vocabulary_.size(); ++i) {
      const auto id = static_cast<TokenId>(i);
      if (is_special(id) || type(id) == TokenType::user_defined) add(id, type(id) == TokenType::user_defined);
    }
    const auto end_with = [&](TokenId id) {
      if (id != no_token && !is_eog(id)) eog_.push_back(id);
    };
    end_with(eos_), end_with(eot_), end_with(eom);
    for (const std::string_view name : end_names) {
      const TokenId id = find(name).value_or(no_token);
      if (id == no_token) continue;
      end_with(id);
      if (type(id) == TokenType::normal) {
        vocabulary_.set_type(id, TokenType::control);
        add(id, false);
      }
    }
    // In some vocabularies these are ordinary text (a closing tag), so only the type makes them an end.
    for (const std::string_view name : end_names_if_control) {
      const TokenId id = find(name).value_or(no_token);
      if (id != no_token && type(id) == TokenType::control) end_with(id);
    }
    if (const TokenId id = find("</s>").value_or(no_token); type(id) == TokenType::normal) add(id, false);
    // In the harmony format <|end|> ends a message, not the turn.
    if (find("<|return|>") && find("<|call|>")) {
      if (const auto end = find("<|end|>"); end && *end != eos_ && *end != eot_) std::erase(eog_, *end);
    }
    std::sort(eog_.begin(), eog_.end());
    for (const std::string_view name : turn_end_names) {
      if (eot_ == no_token) eot_ = find(name).value_or(no_token);
    }
  }

  static constexpr std::string_view turn_end_names[] = {"<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>",
                                                        "<turn|>",    "<EOT>",      "[EOT]"};
  static constexpr std::string_view end_names[] = {"<|eot_id|>",
                                                   "<|im_end|>",
                                                   "<|end|>",
                                                   "<|return|>",
                                                   "<|call|>",
                                                   "<|flush|>",
                                                   "<|calls|>",
                                                   "<end_of_turn>",
                                                   "<|endoftext|>",
                                                   "<|eom_id|>",
                                                   "<EOT>",
                                                   "_<EOT>",
                                                   "[EOT]",
                                                   "[EOS]",
                                                   "<|end_of_text|>",
                                                   "<end_of_utterance>",
                                                   "<eos>",
                                                   "<turn|>",
                                                   "<|tool_response>",
                                                   ("<\xEF\xBD\x9C"
                                                    "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>"),
                                                   "[e~["};
  static constexpr std::string_view end_names_if_control[] = {
      "</s>",         "<|fim_pad|>",   "<fim-pad>",  "<fim_pad>", "<PAD>",      "[PAD]",          // where infilled text ends
      "<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>",    "<reponame>", "<|file_sep|>"};  // where another file begins

  static void clean_up_spaces(std::string& text);

  Vocabulary vocabulary_;
  SpecialTokens special_;
  std::variant<std::monostate, BytePairEncoder, SentencePieceEncoder> encoder_;
  std::vector<TokenId> eog_;
  TokenId bos_ = no_token, eos_ = no_token, eot_ = no_token, pad_ = no_token, unknown_ = no_token;
  Pretokenizer words_ = Pretokenizer::gpt2;
  bool nfc_ = false, add_space_prefix_ = false, clean_spaces_ = false, add_bos_ = false, add_eos_ = false;
};

/// What llama.cpp calls clean_up_tokenization_spaces, in its three passes: "a ?" to "a?" (also ! . ,), "a ' b" to "a'b", and
/// "it 's" to "it's" (also 'm 're 've). It loses the spaces of text that really has them.
inline void Tokenizer::clean_up_spaces(std::string& text) {
  std::size_t kept = 0;
  const auto pass = [&](auto&& drops_space_before, auto&& drops_space_after) {
    kept = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const bool after_space = i > 0 && kept > 0 && text[kept - 1] == ' ';
      if (after_space && drops_space_before(i)) --kept;
      const bool skip_next = after_space && drops_space_after(i);
      text[kept++] = text[i];
      if (skip_next) ++i;
    }
    text.resize(kept);
  };
  const auto at = [&](std::size_t i) { return i < text.size() ? text[i] : '\0'; };
  const auto never = [](std::size_t) { return false; };
  pass([&](std::size_t i) { return at(i) == '?' || at(i) == '!' || at(i) == '.' || at(i) == ','; }, never);
  const auto lone = [&](std::size_t i) { return at(i) == '\'' && at(i + 1) == ' '; };
  pass(lone, lone);
  pass(
      [&](std::size_t i) {
        const char a = at(i + 1), b = at(i + 2);
        return at(i) == '\'' && (a == 's' || a == 'm' || ((a == 'r' || a == 'v') && b == 'e'));
      },
      never);
}

}  // namespace nihao
