// Reading a tokenizer from GGUF metadata (`tokenizer.ggml.*`). The file names the word rules only by a family's name, and says
// nothing of normalization, of whole words first, or of white space around special tokens: the table here does.
#pragma once

#include "tokenizer_data.hpp"

#include "../files/gguf.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace nihao {

namespace detail {

/// What `tokenizer.ggml.pre` implies.
struct PretokenizerName {
  std::string_view name;
  Pretokenizer words;
  bool nfc = false, whole_words_first = false, add_bos = false, clean_spaces = false;
};

// Sources: each family's tokenizer.json (words, normalizer, ignore_merges), and llama.cpp's llama-vocab.cpp, whose
// convert_hf_to_gguf.py gives the names, for BOS and spaces.
inline constexpr PretokenizerName pretokenizer_names[] = {
    {.name = "gpt-2", .words = Pretokenizer::gpt2, .clean_spaces = true},
    {.name = "phi-2", .words = Pretokenizer::gpt2, .clean_spaces = true},
    {.name = "jina-es", .words = Pretokenizer::gpt2, .clean_spaces = true},
    {.name = "jina-de", .words = Pretokenizer::gpt2, .clean_spaces = true},
    {.name = "jina-v2-es", .words = Pretokenizer::gpt2, .clean_spaces = true},
    {.name = "jina-v2-de", .words = Pretokenizer::gpt2, .clean_spaces = true},
    {.name = "gigachat", .words = Pretokenizer::gpt2, .clean_spaces = true},
    {.name = "a.x-4.0", .words = Pretokenizer::gpt2, .clean_spaces = true},
    {.name = "mellum", .words = Pretokenizer::gpt2, .clean_spaces = true},
    {.name = "exaone4", .words = Pretokenizer::gpt2, .clean_spaces = true},
    {.name = "jais", .words = Pretokenizer::gpt2, .clean_spaces = true},
    {.name = "mpt", .words = Pretokenizer::gpt2, .nfc = true, .clean_spaces = true},
    {.name = "olmo", .words = Pretokenizer::gpt2, .nfc = true, .clean_spaces = true},
    {.name = "modern-bert", .words = Pretokenizer::gpt2, .nfc = true, .clean_spaces = true},
    {.name = "trillion", .words = Pretokenizer::gpt2},
    {.name = "granite-docling", .words = Pretokenizer::gpt2},
    {.name = "smollm", .words = Pretokenizer::smollm},
    {.name = "starcoder", .words = Pretokenizer::smollm, .clean_spaces = true},
    {.name = "refact", .words = Pretokenizer::smollm, .clean_spaces = true},
    {.name = "codeshell", .words = Pretokenizer::smollm, .clean_spaces = true},
    {.name = "exaone", .words = Pretokenizer::smollm, .clean_spaces = true},
    {.name = "minerva-7b", .words = Pretokenizer::smollm, .clean_spaces = true},
    {.name = "mellum2", .words = Pretokenizer::smollm, .clean_spaces = true},
    {.name = "command-r", .words = Pretokenizer::smollm, .nfc = true},
    {.name = "falcon", .words = Pretokenizer::falcon, .clean_spaces = true},
    {.name = "llama-bpe", .words = Pretokenizer::llama3, .whole_words_first = true, .add_bos = true, .clean_spaces = true},
    {.name = "llama3", .words = Pretokenizer::llama3, .whole_words_first = true, .add_bos = true, .clean_spaces = true},
    {.name = "llama-v3", .words = Pretokenizer::llama3, .whole_words_first = true, .add_bos = true, .clean_spaces = true},
    {.name = "falcon3", .words = Pretokenizer::llama3, .whole_words_first = true, .add_bos = true, .clean_spaces = true},
    {.name = "falcon-h1", .words = Pretokenizer::llama3, .whole_words_first = true, .add_bos = true, .clean_spaces = true},
    {.name = "pixtral", .words = Pretokenizer::llama3, .whole_words_first = true, .add_bos = true, .clean_spaces = true},
    {.name = "midm-2.0", .words = Pretokenizer::llama3, .whole_words_first = true, .add_bos = true, .clean_spaces = true},
    {.name = "lfm2", .words = Pretokenizer::llama3, .whole_words_first = true, .add_bos = true, .clean_spaces = true},
    {.name = "jina-v5-nano", .words = Pretokenizer::llama3, .whole_words_first = true, .add_bos = true, .clean_spaces = true},
    {.name = "smaug-bpe", .words = Pretokenizer::llama3, .clean_spaces = true},  // SmolLM3 too
    {.name = "dbrx", .words = Pretokenizer::llama3, .clean_spaces = true},
    {.name = "chatglm-bpe", .words = Pretokenizer::llama3, .clean_spaces = true},
    {.name = "glm4", .words = Pretokenizer::llama3, .whole_words_first = true, .clean_spaces = true},
    {.name = "glm5", .words = Pretokenizer::llama3, .whole_words_first = true, .clean_spaces = true},
    {.name = "qwen2", .words = Pretokenizer::qwen2, .nfc = true},
    {.name = "deepseek-r1-qwen", .words = Pretokenizer::qwen2, .nfc = true},
    {.name = "f2llmv2", .words = Pretokenizer::qwen2, .nfc = true},
    {.name = "kormo", .words = Pretokenizer::qwen2},
    {.name = "hunyuan", .words = Pretokenizer::qwen2},
    {.name = "grok-2", .words = Pretokenizer::qwen2},
    {.name = "solar-open", .words = Pretokenizer::qwen2},
    {.name = "stablelm2", .words = Pretokenizer::qwen2, .clean_spaces = true},
    {.name = "megrez", .words = Pretokenizer::qwen2, .clean_spaces = true},
    {.name = "qwen35", .words = Pretokenizer::qwen35, .nfc = true},
    {.name = "gpt-4o", .words = Pretokenizer::gpt4o},
    {.name = "llama4", .words = Pretokenizer::gpt4o},
    {.name = "kanana2", .words = Pretokenizer::gpt4o},
    {.name = "talkie", .words = Pretokenizer::gpt4o},
    {.name = "minimax-m2", .words = Pretokenizer::gpt4o, .nfc = true},
    {.name = "granite-embed-multi-97m", .words = Pretokenizer::gpt4o, .whole_words_first = true},
    {.name = "tekken", .words = Pretokenizer::tekken, .whole_words_first = true, .add_bos = true},
    {.name = "deepseek-llm", .words = Pretokenizer::deepseek_llm},
    {.name = "deepseek-coder", .words = Pretokenizer::deepseek_coder},
    {.name = "deepseek-v3", .words = Pretokenizer::deepseek3},
    {.name = "hunyuan-dense", .words = Pretokenizer::deepseek3},
    {.name = "joyai-llm", .words = Pretokenizer::deepseek3},
    {.name = "hy_v4", .words = Pretokenizer::deepseek3},
};

inline Expected<PretokenizerName> pretokenizer_of(const Gguf& file) {
  NIHAO_TRY(const auto name, file.get_or<std::string_view>("tokenizer.ggml.pre", ""));
  for (const PretokenizerName& known : pretokenizer_names) {
    if (known.name == name) return known;
  }
  if (!name.empty()) {
    return Error{ErrorCode::unsupported, concat("pre-tokenizer \"", printable(name), "\" is not known"), "tokenizer.ggml.pre"};
  }
  // Files from before the key existed: two families are known by their architecture.
  NIHAO_TRY(const auto architecture, file.get_or<std::string_view>("general.architecture", ""));
  if (architecture == "gpt2") return pretokenizer_names[0];
  if (architecture == "gptneox")
    return PretokenizerName{.name = "gpt-neox", .words = Pretokenizer::gpt2, .nfc = true, .clean_spaces = true};
  return Error{ErrorCode::missing,
               "the file does not say how text is cut into words; convert the model again with a newer converter",
               "tokenizer.ggml.pre"};
}

/// The number of one of `count` tokens, or `otherwise` if the file has none. Some write -1 for no token.
inline Expected<TokenId> token_number(const Gguf& file, std::string_view key, std::size_t count, TokenId otherwise = no_token) {
  if (!file.has(key)) return otherwise;
  NIHAO_TRY(const auto number, file.get<std::int64_t>(key));
  if (number == -1 || number == std::int64_t{UINT32_MAX}) return no_token;
  if (number < 0 || static_cast<std::uint64_t>(number) >= count)
    return Error{ErrorCode::malformed, concat("token ", number, " is not one of the ", count, " in the list"), std::string(key)};
  return static_cast<TokenId>(number);
}

inline Expected<std::vector<MergeText>> merges_of(const Gguf& file) {
  NIHAO_TRY(const auto lines, file.strings("tokenizer.ggml.merges"));
  std::vector<MergeText> merges;
  merges.reserve(lines.size());
  for (const std::string_view line : lines) {
    const std::size_t space = line.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == line.size()) {
      return Error{ErrorCode::malformed, concat("\"", printable(line), "\" is not two tokens"), concat("merge ", merges.size())};
    }
    merges.push_back({line.substr(0, space), line.substr(space + 1)});
  }
  return merges;
}

// Phi-3's added tokens swallow the white space after them; the file does not say so, but for the model's name.
inline Expected<bool> is_phi3(const Gguf& file) {
  NIHAO_TRY(const auto name, file.get_or<std::string_view>("general.name", ""));
  std::string lower;
  for (const char c : name) lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return lower.find("phi-3") != std::string::npos || lower.find("phi3") != std::string::npos;
}

}  // namespace detail

/// The tokenizer's parts, as views of `file`. Errors: missing, mismatch, malformed, unsupported; all name the key.
[[nodiscard]] inline Expected<TokenizerData> tokenizer_data(const Gguf& file) {
  using namespace detail;
  TokenizerData data;
  NIHAO_TRY(const auto model, file.get<std::string_view>("tokenizer.ggml.model"));
  NIHAO_TRY(data.tokens, file.strings("tokenizer.ggml.tokens"));
  if (file.has("tokenizer.ggml.token_type")) {
    NIHAO_TRY(const auto types, file.array<std::int32_t>("tokenizer.ggml.token_type"));
    data.types.reserve(types.size());
    for (const std::int32_t type : types)
      data.types.push_back(type >= 0 && type <= 6 ? static_cast<TokenType>(type) : TokenType::undefined);
  }
  if (model == "gpt2") {
    NIHAO_TRY(const auto pre, pretokenizer_of(file));
    NIHAO_TRY(data.merges, merges_of(file));
    data.words = pre.words;
    data.nfc = pre.nfc;
    data.whole_words_first = pre.whole_words_first;
    data.add_bos = pre.add_bos;
    data.clean_spaces = pre.clean_spaces;
  } else if (model == "llama") {
    data.model = TokenizerData::Model::sentencepiece;
    NIHAO_TRY(data.scores, file.array<float>("tokenizer.ggml.scores"));
    data.add_bos = data.add_space_prefix = true;
    data.unknown = 0, data.bos = 1, data.eos = 2;  // sentencepiece's defaults
    NIHAO_TRY(data.add_space_prefix, file.get_or<bool>("tokenizer.ggml.add_space_prefix", true));
  } else if (model == "t5") {
    data.model = TokenizerData::Model::unigram;
    NIHAO_TRY(data.scores, file.array<float>("tokenizer.ggml.scores"));
    if (const auto* map = file.find("tokenizer.ggml.precompiled_charsmap")) {
      if (map->type != GgufType::array || gguf_type_size(map->item_type) != 1)
        return Error{ErrorCode::mismatch, "it is no array of bytes", "tokenizer.ggml.precompiled_charsmap"};
      data.charsmap = map->bytes;
    }
    data.eos = 1, data.unknown = 2, data.pad = 0;  // T5's
    data.add_eos = true;
    NIHAO_TRY(data.add_space_prefix, file.get_or<bool>("tokenizer.ggml.add_space_prefix", false));
    NIHAO_TRY(data.remove_extra_spaces, file.get_or<bool>("tokenizer.ggml.remove_extra_whitespaces", false));
  } else if (model == "bert") {
    data.model = TokenizerData::Model::word_piece;
    data.clean_spaces = true;
    data.unknown = 100, data.pad = 0;  // BERT's
    NIHAO_TRY(data.lowercase, file.get_or<bool>("tokenizer.ggml.normalizer.lowercase", true));
    NIHAO_TRY(data.strip_accents, file.get_or<bool>("tokenizer.ggml.normalizer.strip_accents", data.lowercase));
    NIHAO_TRY(data.bos, token_number(file, "tokenizer.ggml.cls_token_id", data.tokens.size(), 101));
    NIHAO_TRY(const TokenId sep, token_number(file, "tokenizer.ggml.seperator_token_id", data.tokens.size(), 102));
    data.add_bos = true;
    data.after = {sep};
  } else {
    return Error{ErrorCode::unsupported, concat("tokenizer model \"", printable(model), "\" is not known"),
                 "tokenizer.ggml.model"};
  }
  NIHAO_TRY(data.bos, token_number(file, "tokenizer.ggml.bos_token_id", data.tokens.size(), data.bos));
  NIHAO_TRY(data.eos, token_number(file, "tokenizer.ggml.eos_token_id", data.tokens.size(), data.eos));
  NIHAO_TRY(data.eot, token_number(file, "tokenizer.ggml.eot_token_id", data.tokens.size()));
  NIHAO_TRY(data.eom, token_number(file, "tokenizer.ggml.eom_token_id", data.tokens.size()));
  NIHAO_TRY(data.unknown, token_number(file, "tokenizer.ggml.unknown_token_id", data.tokens.size(), data.unknown));
  NIHAO_TRY(data.pad, token_number(file, "tokenizer.ggml.padding_token_id", data.tokens.size(), data.pad));
  NIHAO_TRY(data.add_bos, file.get_or<bool>("tokenizer.ggml.add_bos_token", data.add_bos));
  NIHAO_TRY(data.add_eos, file.get_or<bool>("tokenizer.ggml.add_eos_token", data.add_eos));
  NIHAO_TRY(const bool phi3, is_phi3(file));
  if (phi3) {
    for (std::size_t i = 0; i < data.types.size() && i < data.tokens.size(); ++i) {
      const std::string_view text = data.tokens[i];
      if (data.types[i] != TokenType::normal && text != "<unk>" && text != "<s>" && text != "<|endoftext|>") {
        data.strip_right.push_back(static_cast<TokenId>(i));
      }
    }
  }
  return data;
}

}  // namespace nihao
