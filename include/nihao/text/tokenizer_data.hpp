// What a tokenizer is made of, whichever file it comes from.
#pragma once

#include "bpe.hpp"
#include "pretokenize.hpp"
#include "vocabulary.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace nihao {

/// The contents of a vocabulary file. All views need only live until Tokenizer::from_data returns.
struct TokenizerData {
  enum class Model : std::uint8_t {
    byte_pair,      ///< byte-level BPE with ranked merges (GPT-2, Llama 3, Qwen)
    sentencepiece,  ///< BPE by scores, with byte tokens (Llama 2, Gemma)
  };
  Model model = Model::byte_pair;

  std::vector<std::string_view> tokens = {};  ///< as the file spells them; a token's number is its place
  std::vector<TokenType> types = {};          ///< one per token, or none: all normal
  std::vector<float> scores = {};             ///< sentencepiece: one per token, higher joins first
  std::vector<MergeText> merges = {};         ///< byte_pair: best first

  Pretokenizer words = Pretokenizer::gpt2;  ///< byte_pair: how text is cut into words
  bool nfc = false;                         ///< byte_pair: text is brought into normalization form C first
  bool whole_words_first = false;           ///< byte_pair: a word that is a token is that token
  bool add_space_prefix = false;            ///< sentencepiece: a space before the text, and after each special token
  bool clean_spaces = false;                ///< decode() drops the spaces of "a ?" and "he 's"
  bool add_bos = false, add_eos = false;    ///< what EncodeOptions::add_special adds

  /// The special tokens' numbers; no_token, or one out of range, for none.
  TokenId bos = no_token, eos = no_token, eot = no_token, eom = no_token, unknown = no_token, pad = no_token;
  /// Special tokens that swallow white space to their left or right.
  std::vector<TokenId> strip_left = {}, strip_right = {};
};

}  // namespace nihao
