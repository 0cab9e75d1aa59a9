// Tokenizer, defined.
#pragma once

#include "nfc.hpp"
#include "pretokenize.hpp"
#include "tokenizer.hpp"
#include "tokenizer_gguf.hpp"
#include "tokenizer_input.hpp"

namespace nihao {

NIHAO_INLINE Expected<Tokenizer> Tokenizer::from_gguf(const Gguf& file) {
  NIHAO_TRY(const TokenizerData data, tokenizer_data(file));
  return from_data(data);
}

NIHAO_INLINE Expected<Tokenizer> Tokenizer::from_data(const TokenizerData& data) {
  if (data.tokens.empty()) return Error{ErrorCode::missing, "the vocabulary is empty"};
  Tokenizer t;
  const bool byte_pair = data.model == TokenizerData::Model::byte_pair;
  NIHAO_TRY(t.vocabulary_, Vocabulary::build(byte_pair ? data.spelling : PieceSpelling::sentencepiece, data.tokens, data.types));
  const auto known = [&](TokenId id) { return t.vocabulary_.contains(id) ? id : no_token; };
  t.bos_ = known(data.bos), t.eos_ = known(data.eos), t.eot_ = known(data.eot), t.pad_ = known(data.pad);
  t.unknown_ = known(data.unknown);
  t.words_ = data.words;
  t.nfc_ = data.nfc;
  t.add_space_prefix_ = t.vocabulary_.spelling() == PieceSpelling::sentencepiece && data.add_space_prefix;
  t.clean_spaces_ = data.clean_spaces;
  t.bert_words_ = {.lowercase = data.lowercase, .strip_accents = data.strip_accents};
  const auto around = [&](const std::vector<TokenId>& said, bool flag, TokenId id) {
    return said.empty() && flag && id != no_token ? std::vector<TokenId>{id} : said;
  };
  t.before_ = around(data.before, data.add_bos, t.bos_);
  t.after_ = around(data.after, data.add_eos, t.eos_);
  for (const std::vector<TokenId>* list : {&t.before_, &t.after_})
    for (const TokenId id : *list)
      if (!t.vocabulary_.contains(id)) return Error{ErrorCode::malformed, concat("token ", id, " is not in the vocabulary")};
  t.find_special_tokens(data, known(data.eom));
  if (byte_pair) {
    NIHAO_TRY(t.encoder_, BytePairEncoder::build(t.vocabulary_, data.merges,
                                                 {.whole_words_first = data.whole_words_first,
                                                  .unknown = t.unknown_,
                                                  .spaces_part_words = data.spaces_part_words}));
  } else if (data.model == TokenizerData::Model::word_piece) {
    NIHAO_TRY(t.encoder_, WordPieceEncoder::build(t.vocabulary_, t.unknown_));
  } else if (data.model == TokenizerData::Model::unigram) {
    NIHAO_TRY(auto map, Charsmap::read(data.charsmap));
    t.normalizer_ = SentencePieceNormalizer(
        std::move(map), {.space_in_front = t.add_space_prefix_, .remove_extra_spaces = data.remove_extra_spaces});
    NIHAO_TRY(t.encoder_, UnigramEncoder::build(t.vocabulary_, data.scores, t.unknown_));
  } else {
    NIHAO_TRY(t.encoder_, SentencePieceEncoder::build(t.vocabulary_, data.scores, t.unknown_));
  }
  return t;
}

NIHAO_INLINE Expected<std::vector<TokenId>> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  if (text.size() > INT32_MAX) return Error{ErrorCode::limit, "a text may have at most 2^31 - 1 bytes"};
  std::vector<TokenId> out;
  if (options.add_special) out = before_;
  out.reserve(text.size() / 4 + 8);
  if (const auto* byte_pair = std::get_if<BytePairEncoder>(&encoder_); byte_pair && !byte_pair->merges_characters())
    encode_words(*byte_pair, text, options, out);
  else if (byte_pair) encode_stretches(*byte_pair, text, options, out);
  else if (const auto* spm = std::get_if<SentencePieceEncoder>(&encoder_)) encode_stretches(*spm, text, options, out);
  else if (const auto* unigram = std::get_if<UnigramEncoder>(&encoder_)) encode_normalized(*unigram, text, options, out);
  else if (const auto* pieces = std::get_if<WordPieceEncoder>(&encoder_)) encode_bert(*pieces, text, options, out);
  if (options.add_special) out.insert(out.end(), after_.begin(), after_.end());
  return out;
}

NIHAO_INLINE std::string Tokenizer::decode(std::span<const TokenId> ids, DecodeOptions options) const {
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

NIHAO_INLINE std::optional<TokenId> Tokenizer::find(std::string_view piece) const noexcept {
  TokenId id = vocabulary_.find_normal(piece);
  if (id == no_token) id = special_.find(piece);
  if (id == no_token && piece.size() == 1) id = vocabulary_.byte_token(static_cast<std::uint8_t>(piece.front()));
  return id == no_token ? std::nullopt : std::optional(id);
}

NIHAO_INLINE void Tokenizer::encode_words(const BytePairEncoder& encoder, std::string_view text, const EncodeOptions& options,
                                          std::vector<TokenId>& out) const {
  BytePairEncoder::Workspace work;
  std::string input, normal;
  const auto plain = [&](std::string_view part) {
    part = detail::byte_level_input(part, input);
    if (nfc_ && nfc_inert_prefix(part) != part.size()) part = normal = to_nfc(part);
    pretokenize(words_, part, [&](std::string_view word) { encoder.encode(vocabulary_, word, out, work); });
  };
  special_.split(text, options.parse_special, plain, [&](TokenId id) { out.push_back(id); }, options.breaks);
}

template <class Encoder>
void Tokenizer::encode_stretches(const Encoder& encoder, std::string_view text, const EncodeOptions& options,
                                 std::vector<TokenId>& out) const {
  typename Encoder::Workspace work;
  std::string input;
  bool prefix = add_space_prefix_;  // is the space in front still to come
  const auto plain = [&](std::string_view part) {
    encoder.encode(vocabulary_, detail::sentencepiece_input(part, prefix, input), out, work);
    prefix = false;
  };
  const auto token = [&](TokenId id) {
    // To SentencePiece a user-defined token is text like any other; where special tokens are parsed, text begins anew after
    // each.
    if (!options.parse_special && prefix) plain("");
    out.push_back(id);
    prefix = options.parse_special && add_space_prefix_;
  };
  special_.split(text, options.parse_special, plain, token, options.breaks);
}

NIHAO_INLINE void Tokenizer::encode_normalized(const UnigramEncoder& encoder, std::string_view text, const EncodeOptions& options,
                                               std::vector<TokenId>& out) const {
  UnigramEncoder::Workspace work;
  std::string normal;
  const auto plain = [&](std::string_view part) { encoder.encode(vocabulary_, normalizer_.normalize(part, normal), out, work); };
  special_.split(text, options.parse_special, plain, [&](TokenId id) { out.push_back(id); }, options.breaks);
}

NIHAO_INLINE void Tokenizer::encode_bert(const WordPieceEncoder& encoder, std::string_view text, const EncodeOptions& options,
                                         std::vector<TokenId>& out) const {
  BertWords words(bert_words_);
  std::string input;
  const auto plain = [&](std::string_view part) {
    words.cut(detail::byte_level_input(part, input),
              [&](std::string_view word, std::size_t characters) { encoder.encode(word, characters, out); });
  };
  special_.split(text, options.parse_special, plain, [&](TokenId id) { out.push_back(id); }, options.breaks);
}

namespace detail {
inline constexpr std::string_view turn_end_names[] = {"<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>",
                                                      "<turn|>",    "<EOT>",      "[EOT]"};
inline constexpr std::string_view end_names[] = {"<|eot_id|>",
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
inline constexpr std::string_view end_names_if_control[] = {
    "</s>",         "<|fim_pad|>",   "<fim-pad>",  "<fim_pad>", "<PAD>",      "[PAD]",          // where infilled text ends
    "<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>",    "<reponame>", "<|file_sep|>"};  // where another file begins
}  // namespace detail

// Which tokens are found in text, and which end a generation. Files name at most EOS and EOT, and some give such a token the
// wrong type, so the names that families use count too.
NIHAO_INLINE void Tokenizer::find_special_tokens(const TokenizerData& data, TokenId eom) {
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
  for (const TokenId id : data.ends) end_with(vocabulary_.contains(id) ? id : no_token);
  for (const std::string_view name : detail::end_names) {
    const TokenId id = find(name).value_or(no_token);
    if (id == no_token || (!data.special_by_name && type(id) == TokenType::normal)) continue;
    end_with(id);
    if (type(id) == TokenType::normal) {
      vocabulary_.set_type(id, TokenType::control);
      add(id, false);
    }
  }
  // In some vocabularies these are ordinary text (a closing tag), so only the type makes them an end.
  for (const std::string_view name : detail::end_names_if_control) {
    const TokenId id = find(name).value_or(no_token);
    if (id != no_token && type(id) == TokenType::control) end_with(id);
  }
  if (const TokenId id = find("</s>").value_or(no_token); data.special_by_name && type(id) == TokenType::normal) add(id, false);
  // In the harmony format <|end|> ends a message, not the turn.
  if (find("<|return|>") && find("<|call|>")) {
    if (const auto end = find("<|end|>"); end && *end != eos_ && *end != eot_) std::erase(eog_, *end);
  }
  std::sort(eog_.begin(), eog_.end());
  for (const std::string_view name : detail::turn_end_names) {
    if (eot_ == no_token) eot_ = find(name).value_or(no_token);
  }
}

/// What llama.cpp calls clean_up_tokenization_spaces, in its three passes: "a ?" to "a?" (also ! . ,), "a ' b" to "a'b", and
/// "it 's" to "it's" (also 'm 're 've). It loses the spaces of text that really has them.
NIHAO_INLINE void Tokenizer::clean_up_spaces(std::string& text) {
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
