// What a tokenizer is made of, whichever file it comes from.
#pragma once

#include "bpe.hpp"
#include "vocabulary.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace nihao {

/// Which family's word rules. The comment is the expression that the automaton equals, or the expressions one inside another;
/// `'s` stands for the contractions 's 't 'm 'd 're 've 'll, and (?i:'s) for the same in any case.
enum class Pretokenizer : std::uint8_t {
  gpt2,            ///< 's| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  smollm,          ///< \p{N}, then gpt2 (also StarCoder, Command R)
  falcon,          ///< [\p{P}$+<=>^~|`]+, then gpt2, then [0-9]{3}
  llama3,          ///< (?i:'s)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
  qwen2,           ///< as llama3, with \p{N} for \p{N}{1,3}
  qwen35,          ///< as qwen2, with [\p{L}\p{M}] for \p{L} but in [^\r\n\p{L}\p{N}]
  gpt4o,           ///< as llama3, but words [^\r\n\p{L}\p{N}]?U*W+(?i:'s)?|[^\r\n\p{L}\p{N}]?U+W*(?i:'s)? and [\r\n/]* after
                   ///< punctuation; U is [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}], W is [\p{Ll}\p{Lm}\p{Lo}\p{M}]
  tekken,          ///< as gpt4o, without (?i:'s)? and with \p{N} for \p{N}{1,3} (Mistral)
  deepseek_llm,    ///< [\r\n], then \s?L+ and \s?P+ for the two sets of pretokenize.hpp, then \s+$, then the ranges of
                   ///< deepseek_coder, then \p{N}
  deepseek_coder,  ///< [\r\n], then \s?\p{L}+, then \s?\p{P}+, then [U+0800-U+9FA5 U+AC00-U+D7FF]+, then \p{N}
  deepseek3,       ///< \p{N}{1,3}, then [U+4E00-U+9FA5 U+3040-U+30FF]+, then ASCII punctuation [A-Za-z]+|
                   ///< [^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
};

/// The contents of a vocabulary file. All views need only live until Tokenizer::from_data returns.
struct TokenizerData {
  enum class Model : std::uint8_t {
    byte_pair,      ///< BPE with ranked merges: over bytes (GPT-2, Llama 3, Qwen), or over characters (see `spelling`)
    sentencepiece,  ///< BPE by scores, with byte tokens (Llama 2, Gemma)
    unigram,        ///< SentencePiece's unigram model: the cut with the greatest sum of scores (T5, XLM-RoBERTa)
    word_piece,     ///< BERT's words, each the longest pieces that it begins with; U+2581 in front of those that begin a word
  };
  Model model = Model::byte_pair;
  /// byte_pair: how tokens and merges are written. sentencepiece: characters are merged, and those that are no token become
  /// byte tokens, or the unknown token; there are no word rules then.
  PieceSpelling spelling = PieceSpelling::byte_level;

  std::vector<std::string_view> tokens = {};  ///< as the file spells them; a token's number is its place
  std::vector<TokenType> types = {};          ///< one per token, or none: all normal
  std::vector<float> scores = {};             ///< sentencepiece, unigram: one per token, higher is better
  std::vector<MergeText> merges = {};         ///< byte_pair: best first

  Pretokenizer words = Pretokenizer::gpt2;  ///< byte_pair: how text is cut into words
  bool nfc = false;                         ///< byte_pair: text is brought into normalization form C first
  bool whole_words_first = false;           ///< byte_pair: a word that is a token is that token
  bool add_space_prefix = false;            ///< sentencepiece spelling: a space before the text, and after each special token
  bool spaces_part_words = false;           ///< sentencepiece spelling: no token is found across the border before a space
  bool clean_spaces = false;                ///< decode() drops the spaces of "a ?" and "he 's"

  /// unigram: what becomes of characters (Charsmap::read), and whether spaces go at the ends and beside others.
  std::span<const std::byte> charsmap = {};
  bool remove_extra_spaces = false;
  bool lowercase = true, strip_accents = true;  ///< word_piece

  bool add_bos = false, add_eos = false;         ///< what EncodeOptions::add_special adds, unless the next line says it
  std::vector<TokenId> before = {}, after = {};  ///< the same for other tokens than BOS and EOS

  /// The special tokens' numbers; no_token, or one out of range, for none.
  TokenId bos = no_token, eos = no_token, eot = no_token, eom = no_token, unknown = no_token, pad = no_token;
  /// Special tokens that swallow white space to their left or right.
  std::vector<TokenId> strip_left = {}, strip_right = {};
  /// Files of some kinds give special tokens the wrong type: those that families are known to have are then special by their
  /// names.
  bool special_by_name = true;
  /// Tokens that end a generation besides EOS, EOT and those known by name.
  std::vector<TokenId> ends = {};
};

}  // namespace nihao
