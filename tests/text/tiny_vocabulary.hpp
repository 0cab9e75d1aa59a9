// Small vocabularies made in memory, for tests that need no file.
#pragma once

#include <nihao/text/tokenizer.hpp>

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>

namespace nihao::test {

/// GPT-2's spelling of bytes: the reverse of what Vocabulary reads.
inline std::string byte_level_spelling(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) {
    for (std::size_t code = 0; code < detail::byte_of_char.size(); ++code) {
      if (detail::byte_of_char[code] == static_cast<unsigned char>(byte)) append_utf8(out, static_cast<char32_t>(code));
    }
  }
  return out;
}

/// Builds a TokenizerData and owns the texts it views, so it moves but is not copied.
class TinyVocabulary {
 public:
  TinyVocabulary() = default;
  TinyVocabulary(TinyVocabulary&&) = default;
  TinyVocabulary& operator=(TinyVocabulary&&) = default;

  TokenizerData data;

  TokenId add(std::string text, TokenType type = TokenType::normal, float score = 0) {
    texts_.push_back(std::move(text));
    data.tokens.push_back(texts_.back());
    data.types.push_back(type);
    data.scores.push_back(score);
    return static_cast<TokenId>(data.tokens.size()) - 1;
  }
  /// Adds the rule left + right and, if it is new, the token it makes. Both sides are plain bytes.
  void merge(std::string_view left, std::string_view right) {
    const std::string both = byte_level_spelling(std::string(left) + std::string(right));
    bool known = false;
    for (const std::string& text : texts_) known = known || text == both;
    if (!known) add(both);
    texts_.push_back(byte_level_spelling(left));
    const std::string_view spelled_left = texts_.back();
    texts_.push_back(byte_level_spelling(right));
    data.merges.push_back({spelled_left, texts_.back()});
  }

 private:
  std::deque<std::string> texts_;
};

/// A byte-level vocabulary: token b is the byte b, then the tokens of a few rules, then <|end|> (control, EOS and BOS) and
/// <tool> (user-defined).
inline TinyVocabulary tiny_byte_level(Pretokenizer words = Pretokenizer::gpt2) {
  TinyVocabulary v;
  for (int byte = 0; byte < 256; ++byte) v.add(byte_level_spelling(std::string(1, static_cast<char>(byte))));
  v.merge("l", "o");
  v.merge("lo", "w");
  v.merge("e", "r");
  v.merge(" ", "low");
  v.merge("a", "a");
  v.merge("aa", "aa");
  v.merge(" ", " ");
  v.merge("\xE4", "\xBD");
  v.merge("\xE4\xBD", "\xA0");  // 你
  v.data.words = words;
  v.data.bos = v.data.eos = v.add("<|end|>", TokenType::control);
  v.add("<tool>", TokenType::user_defined);
  return v;
}

/// A SentencePiece vocabulary: <unk> <s> </s>, the 256 byte tokens, and a few pieces with scores.
inline TinyVocabulary tiny_sentencepiece(bool byte_tokens = true) {
  TinyVocabulary v;
  v.data.model = TokenizerData::Model::sentencepiece;
  v.data.unknown = v.add("<unk>", TokenType::unknown);
  v.data.bos = v.add("<s>", TokenType::control);
  v.data.eos = v.add("</s>", TokenType::control);
  static constexpr char hex[] = "0123456789ABCDEF";
  for (int byte = 0; byte < 256 && byte_tokens; ++byte)
    v.add(std::string("<0x") + hex[byte / 16] + hex[byte % 16] + ">", TokenType::byte);
  const std::string space = "\xE2\x96\x81";
  float score = -1;
  for (const char* piece : {"er", "lo", "low", "aa", "aaaa"}) v.add(piece, TokenType::normal, score--);
  v.add(space + "low", TokenType::normal, score--);
  v.add(space + space, TokenType::normal, score--);
  v.add(space, TokenType::normal, score--);
  for (const char* piece : {"l", "o", "w", "e", "r", "a", "\xE4\xBD\xA0"}) v.add(piece, TokenType::normal, score--);
  v.data.add_bos = v.data.add_space_prefix = true;
  return v;
}

/// A WordPiece vocabulary: [UNK] [CLS] [SEP], words, and pieces that go on.
inline TinyVocabulary tiny_word_piece() {
  TinyVocabulary v;
  v.data.model = TokenizerData::Model::word_piece;
  v.data.unknown = v.add("[UNK]", TokenType::unknown);
  v.data.bos = v.add("[CLS]", TokenType::control);
  v.data.after = {v.add("[SEP]", TokenType::control)};
  v.data.add_bos = v.data.clean_spaces = true;
  for (const char* word : {"low", "l", "o", "w", "a", "e", "!", "\xE4\xBD\xA0"}) v.add(std::string("\xE2\x96\x81") + word);
  for (const char* rest : {"er", "est", "l", "o", "w", "a", "aa", "e"}) v.add(rest);
  return v;
}

/// A unigram vocabulary: the tokens and scores of tiny_sentencepiece(), and text that is put in order as SentencePiece does.
inline TinyVocabulary tiny_unigram(bool byte_tokens = true) {
  TinyVocabulary v = tiny_sentencepiece(byte_tokens);
  v.data.model = TokenizerData::Model::unigram;
  v.data.remove_extra_spaces = true;
  return v;
}

}  // namespace nihao::test
