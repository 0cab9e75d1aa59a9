// What tokenizer_json.hpp declares.
#pragma once

#include "../base/platform.hpp"
#include "pretokenize.hpp"
#include "tokenizer_json.hpp"

#include <algorithm>
#include <iterator>

namespace nihao {

namespace detail {

[[nodiscard]] inline Error unknown_step(const Json& value, std::string_view path) {
  return Error{
      ErrorCode::unsupported,
      concat("it is ", printable(value.dump(-1, ' ', true, Json::error_handler_t::replace), 300), ", and this is not known"),
      std::string(path)};
}

/// A step and its path: the members of a Sequence, in order, however they are nested; nothing for null.
struct JsonStep {
  const Json* value;
  std::string path;
};
[[nodiscard]] inline Expected<std::vector<JsonStep>> json_steps(const Json& tokenizer, std::string_view key,
                                                                std::string_view members) {
  std::vector<JsonStep> steps, waiting;
  if (const Json* root = json_find(tokenizer, key); root != nullptr) waiting.push_back({root, std::string(key)});
  while (!waiting.empty()) {
    const JsonStep step = std::move(waiting.back());
    waiting.pop_back();
    if (step.value->is_null()) continue;
    NIHAO_TRY(const auto type, json_get<std::string_view>(*step.value, "type"));
    if (type != "Sequence") {
      steps.push_back(step);
      continue;
    }
    const Json* list = json_find(*step.value, members);
    if (list == nullptr || !list->is_array()) return Error{ErrorCode::missing, "a sequence has a list of steps", step.path};
    for (std::size_t i = list->size(); i-- > 0;) waiting.push_back({&(*list)[i], concat(step.path, ".", members, ".", i)});
  }
  return steps;
}

/// The value of a step's key, null where it has none.
[[nodiscard]] inline const Json& json_value(const Json& step, std::string_view key) {
  static const Json null;
  const Json* value = json_find(step, key);
  return value == nullptr ? null : *value;
}

// The expressions that the families' files have, as they are written there (tokenizer_data.hpp tells what each means).
#define NIHAO_CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define NIHAO_O200K(digits, contractions)                                                                              \
  "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+" contractions             \
  "|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*" contractions "|" digits \
  "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define NIHAO_CL100K(letters, digits, others)                                        \
  NIHAO_CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?" letters "+|" digits "| ?[^\\s" others \
                     "]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|"                        \
                     "\\s+"
inline constexpr std::string_view gpt2_expression =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
inline constexpr std::string_view llama3_expression = NIHAO_CL100K("\\p{L}", "\\p{N}{1,3}", "\\p{L}\\p{N}");
inline constexpr std::string_view qwen2_expression = NIHAO_CL100K("\\p{L}", "\\p{N}", "\\p{L}\\p{N}");
inline constexpr std::string_view qwen35_expression = NIHAO_CL100K("[\\p{L}\\p{M}]", "\\p{N}", "\\p{L}\\p{M}\\p{N}");
inline constexpr std::string_view gpt4o_expression = NIHAO_O200K("\\p{N}{1,3}", NIHAO_CONTRACTIONS "?");
inline constexpr std::string_view tekken_expression = NIHAO_O200K("\\p{N}", "");
#undef NIHAO_CL100K
#undef NIHAO_O200K
#undef NIHAO_CONTRACTIONS

/// `\s?[...]+` as DeepSeek LLM's file writes it: ranges by their ends, but one or two characters by themselves.
[[nodiscard]] inline std::string spaced_set_expression(std::span<const word_rules::CodeRange> set) {
  std::string out = "\\s?[";
  for (const auto [first, last] : set) {
    append_utf8(out, first);
    if (last > first + 1) out += '-';
    if (last > first) append_utf8(out, last);
  }
  return out += "]+";
}

/// Each step of a pre_tokenizer in one word, or its expression.
struct KnownWords {
  Pretokenizer words;
  std::string_view steps[6];
};
inline constexpr std::string_view each_digit = "Digits", digit_runs = "Digits in runs", punctuation_runs = "Punctuation in runs",
                                  deepseek_letter_runs = "DeepSeek's letters";
inline constexpr KnownWords known_words[] = {
    {Pretokenizer::gpt2, {gpt2_expression}},
    {Pretokenizer::smollm, {each_digit, gpt2_expression}},
    {Pretokenizer::falcon, {punctuation_runs, gpt2_expression, digit_runs, "[0-9][0-9][0-9]"}},
    {Pretokenizer::llama3, {llama3_expression}},
    {Pretokenizer::qwen2, {qwen2_expression}},
    {Pretokenizer::qwen35, {qwen35_expression}},
    {Pretokenizer::gpt4o, {gpt4o_expression}},
    {Pretokenizer::tekken, {tekken_expression}},
    {Pretokenizer::deepseek_llm,
     {"[\r\n]", deepseek_letter_runs,
      "\\s?[!-/:-~\xEF\xBC\x81-\xEF\xBC\x8F\xEF\xBC\x9A-\xEF\xBD\x9E\xE2\x80\x98-\xE2\x80\x9F\xE3\x80\x80-\xE3\x80\x82]+",
      "\\s+$", "[\xE4\xB8\x80-\xE9\xBE\xA5\xE0\xA0\x80-\xE4\xB8\x80\xEA\xB0\x80-\xED\x9F\xBF]+", each_digit}},
    {Pretokenizer::deepseek_coder,
     {"[\r\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", "[\xE4\xB8\x80-\xE9\xBE\xA5\xE0\xA0\x80-\xE4\xB8\x80\xEA\xB0\x80-\xED\x9F\xBF]+",
      each_digit}},
    {Pretokenizer::deepseek3,
     {"\\p{N}{1,3}", "[\xE4\xB8\x80-\xE9\xBE\xA5\xE3\x81\x80-\xE3\x82\x9F\xE3\x82\xA0-\xE3\x83\xBF]+",
      "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| "
      "?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"}},
};

/// One step in the words of known_words; nothing for what only spells bytes. Keeping the matches alone (Removed, inverted) is
/// isolating them where an expression matches everywhere, as those do of which files say it (MiniMax's).
[[nodiscard]] inline Expected<std::string_view> step_name(const JsonStep& step) {
  const Json& s = *step.value;
  NIHAO_TRY(const auto type, json_get<std::string_view>(s, "type"));
  NIHAO_TRY(const auto behavior, json_get_or<std::string_view>(s, "behavior", ""));
  if (type == "ByteLevel") {
    NIHAO_TRY(const bool prefix, json_get_or<bool>(s, "add_prefix_space", true));
    NIHAO_TRY(const bool expression, json_get_or<bool>(s, "use_regex", true));
    if (!prefix) return expression ? gpt2_expression : std::string_view{};
  } else if (type == "Split") {
    const Json& expression = json_value(s, "pattern.Regex");
    NIHAO_TRY(const bool invert, json_get_or<bool>(s, "invert", false));
    if (expression.is_string() && ((behavior == "Isolated" && !invert) || (behavior == "Removed" && invert))) {
      const auto& text = expression.get_ref<const std::string&>();
      return text == spaced_set_expression(word_rules::deepseek_letters) ? deepseek_letter_runs : std::string_view(text);
    }
  } else if (type == "Digits") {
    NIHAO_TRY(const bool each, json_get_or<bool>(s, "individual_digits", false));
    return each ? each_digit : digit_runs;
  } else if (type == "Punctuation" && behavior == "Contiguous") {
    return punctuation_runs;
  }
  return unknown_step(s, step.path);
}

[[nodiscard]] inline Expected<Pretokenizer> words_from_json(const Json& tokenizer) {
  NIHAO_TRY(const std::vector<JsonStep> steps, json_steps(tokenizer, "pre_tokenizer", "pretokenizers"));
  std::vector<std::string_view> names;
  bool byte_level = false;
  for (const JsonStep& step : steps) {
    NIHAO_TRY(const std::string_view name, step_name(step));
    if (!name.empty()) names.push_back(name);
    byte_level = byte_level || json_value(*step.value, "type") == "ByteLevel";
  }
  for (const KnownWords& known : known_words) {
    const auto end = std::find(std::begin(known.steps), std::end(known.steps), std::string_view{});
    if (byte_level && std::equal(std::begin(known.steps), end, names.begin(), names.end())) return known.words;
  }
  return unknown_step(json_value(tokenizer, "pre_tokenizer"), "pre_tokenizer");
}

/// What the files say of characters' spaces: Prepend and Replace among the normalizers, or a Metaspace pre_tokenizer.
[[nodiscard]] inline Expected<void> character_rules(const Json& tokenizer, TokenizerData& data) {
  static constexpr std::string_view mark = "\xE2\x96\x81";
  NIHAO_TRY(std::vector<JsonStep> steps, json_steps(tokenizer, "normalizer", "normalizers"));
  NIHAO_TRY(std::vector<JsonStep> splits, json_steps(tokenizer, "pre_tokenizer", "pretokenizers"));
  steps.insert(steps.end(), splits.begin(), splits.end());
  bool replaced = false;
  for (const JsonStep& step : steps) {
    const Json& s = *step.value;
    NIHAO_TRY(const auto type, json_get<std::string_view>(s, "type"));
    if (type == "Prepend" && json_value(s, "prepend") == mark && !replaced) data.add_space_prefix = true;
    else if (type == "Replace" && json_value(s, "pattern.String") == " " && json_value(s, "content") == mark) replaced = true;
    else return unknown_step(s, step.path);
  }
  if (!replaced) return Error{ErrorCode::unsupported, "nothing says what a space is", "normalizer"};
  return {};
}

/// The id of a token that a config names: a string, or an object with its `content`.
[[nodiscard]] inline Expected<TokenId> named_token(const TokenizerData& data, const Json& config, std::string_view key) {
  const Json* value = json_find(config, key);
  if (value == nullptr || value->is_null()) return no_token;
  NIHAO_TRY(const auto name,
            value->is_object() ? json_get<std::string_view>(*value, "content") : json_as<std::string_view>(*value, key));
  for (std::size_t i = data.tokens.size(); i-- > 0;)
    if (data.tokens[i] == name && data.types[i] != TokenType::unused) return static_cast<TokenId>(i);
  return no_token;  // some configs name tokens that the vocabulary lacks
}

/// tokens and types: the model's vocabulary, and the tokens added to it. Gives the texts that are both.
[[nodiscard]] inline Expected<std::vector<std::string_view>> tokens_from_json(const Json& tokenizer, TokenizerData& data,
                                                                              bool byte_tokens) {
  constexpr std::size_t most = std::size_t{1} << 24;
  const Json* vocab = json_find(tokenizer, "model.vocab");
  if (vocab == nullptr || !vocab->is_object()) return Error{ErrorCode::missing, "wanted an object of tokens", "model.vocab"};
  const auto put = [&](std::string_view text, const Json& id, std::string_view path, TokenType type) -> Expected<void> {
    NIHAO_TRY(const auto place, json_as<std::uint32_t>(id, path));
    if (place >= most) return Error{ErrorCode::limit, concat("the token's number is ", place), std::string(path)};
    if (place >= data.tokens.size()) data.tokens.resize(place + 1), data.types.resize(place + 1, TokenType::unused);
    data.tokens[place] = text, data.types[place] = type;
    return {};
  };
  for (const auto& [text, id] : vocab->items())
    NIHAO_CHECK(put(text, id, "model.vocab", byte_tokens && byte_token_value(text) >= 0 ? TokenType::byte : TokenType::normal));
  std::vector<std::string_view> both;
  const Json* added = json_find(tokenizer, "added_tokens");
  if (added == nullptr || added->is_null()) return both;
  if (!added->is_array()) return Error{ErrorCode::mismatch, "wanted an array", "added_tokens"};
  for (std::size_t i = 0; i < added->size(); ++i) {
    const Json& token = (*added)[i];
    const std::string path = concat("added_tokens.", i);
    const auto flag = [&](std::string_view name) { return json_value(token, name) == true; };
    NIHAO_TRY(const auto text, json_get<std::string_view>(token, "content"));
    NIHAO_TRY(const auto id, json_as<std::uint32_t>(json_value(token, "id"), concat(path, ".id")));
    if (id < data.tokens.size() && data.types[id] == TokenType::normal) both.push_back(text);
    NIHAO_CHECK(
        put(text, json_value(token, "id"), concat(path, ".id"), flag("special") ? TokenType::control : TokenType::user_defined));
    if (flag("single_word")) return unknown_step(token, path);
    if (flag("lstrip")) data.strip_left.push_back(static_cast<TokenId>(id));
    if (flag("rstrip")) data.strip_right.push_back(static_cast<TokenId>(id));
  }
  return both;
}

/// Rules that make one of `added`, or go on from one, are left out: text of an added token is that token before any rule, and
/// where special tokens are not to be parsed no rule may make one.
[[nodiscard]] inline Expected<void> merges_from_json(const Json& tokenizer, TokenizerData& data,
                                                     std::span<const std::string_view> added) {
  const Json* merges = json_find(tokenizer, "model.merges");
  if (merges == nullptr || !merges->is_array()) return Error{ErrorCode::missing, "wanted an array of merges", "model.merges"};
  data.merges.reserve(merges->size());
  for (std::size_t i = 0; i < merges->size(); ++i) {
    const Json& merge = (*merges)[i];
    MergeText rule;
    if (const auto* line = merge.get_ptr<const std::string*>()) {
      const std::size_t space = line->find(' ');
      if (space != line->npos && line->find(' ', space + 1) == line->npos)
        rule = {std::string_view(*line).substr(0, space), std::string_view(*line).substr(space + 1)};
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      rule = {merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>()};
    }
    if (rule.left.empty() || rule.right.empty())
      return Error{ErrorCode::malformed, concat(json_kind(merge), " is not two tokens"), concat("model.merges.", i)};
    const bool left_out = std::any_of(added.begin(), added.end(), [&](std::string_view text) {
      return text == rule.left || text == rule.right ||
             (text.size() == rule.left.size() + rule.right.size() && text.substr(0, rule.left.size()) == rule.left &&
              text.substr(rule.left.size()) == rule.right);
    });
    if (!left_out) data.merges.push_back(rule);
  }
  return {};
}

/// What the post_processor puts around a text.
[[nodiscard]] inline Expected<void> around_from_json(const Json& tokenizer, TokenizerData& data) {
  NIHAO_TRY(const std::vector<JsonStep> steps, json_steps(tokenizer, "post_processor", "processors"));
  for (const JsonStep& step : steps) {
    NIHAO_TRY(const auto type, json_get<std::string_view>(*step.value, "type"));
    if (type == "ByteLevel") continue;  // offsets alone
    const Json* single = type == "TemplateProcessing" ? json_find(*step.value, "single") : nullptr;
    if (single == nullptr || !single->is_array()) return unknown_step(*step.value, step.path);
    const Json& names = json_value(*step.value, "special_tokens");
    bool behind = false;
    for (const Json& item : *single) {
      if (json_find(item, "Sequence") != nullptr) {
        behind = true;
        continue;
      }
      NIHAO_TRY(const auto name, json_get<std::string>(item, "SpecialToken.id"));
      // Not by path: a name may have a dot in it.
      if (!names.is_object() || !names.contains(name))
        return Error{ErrorCode::missing, concat(printable(name), " is not listed"), concat(step.path, ".special_tokens")};
      NIHAO_TRY(const auto ids, json_array<TokenId>(names.at(name), "ids"));
      std::vector<TokenId>& side = behind ? data.after : data.before;
      side.insert(side.end(), ids.begin(), ids.end());
    }
  }
  return {};
}

/// BOS, EOS and what else a tokenizer_config.json decides.
[[nodiscard]] inline Expected<void> config_from_json(const Json& config, TokenizerData& data) {
  if (!config.is_object()) return {};
  NIHAO_TRY(data.bos, named_token(data, config, "bos_token"));
  NIHAO_TRY(data.eos, named_token(data, config, "eos_token"));
  NIHAO_TRY(data.pad, named_token(data, config, "pad_token"));
  NIHAO_TRY(data.clean_spaces, json_get_or<bool>(config, "clean_up_tokenization_spaces", false));
  // These classes of transformers make the post_processor anew from the flags.
  NIHAO_TRY(const auto tokenizer_class, json_get_or<std::string_view>(config, "tokenizer_class", ""));
  for (const std::string_view name : {"Llama", "CodeLlama", "Gemma", "Cohere"}) {
    if (tokenizer_class.substr(0, name.size()) != name) continue;
    NIHAO_TRY(data.add_bos, json_get_or<bool>(config, "add_bos_token", true));
    NIHAO_TRY(data.add_eos, json_get_or<bool>(config, "add_eos_token", false));
    data.before.clear(), data.after.clear();
  }
  return {};
}

[[nodiscard]] inline Expected<void> ends_from_json(const Json& generation, TokenizerData& data) {
  const Json* ends = json_find(generation, "eos_token_id");
  if (ends == nullptr || ends->is_null()) return {};
  if (ends->is_array()) {
    NIHAO_TRY(data.ends, json_array<TokenId>(generation, "eos_token_id"));
  } else {
    NIHAO_TRY(data.ends.emplace_back(), json_as<TokenId>(*ends, "eos_token_id"));
  }
  return {};
}

[[nodiscard]] inline Expected<Json> read_tokenizer_file(const std::string& path) {
  constexpr std::size_t most = std::size_t{256} << 20;
  NIHAO_TRY(const MappedFile file, MappedFile::open(path));
  if (file.bytes().size() > most)
    return Error{ErrorCode::limit, concat("it has ", file.bytes().size(), " bytes, the limit is ", most), path};
  auto json = parse_json({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, 32);
  if (!json) return std::move(json).error().in(path);
  return json;
}

}  // namespace detail

NIHAO_INLINE Expected<Tokenizer> tokenizer_from_json(const Json& tokenizer, const Json& config, const Json& generation) {
  using namespace detail;
  TokenizerData data;
  data.special_by_name = false;
  NIHAO_TRY(const auto model, json_get<std::string_view>(tokenizer, "model.type"));
  if (model != "BPE") return unknown_step(json_value(tokenizer, "model.type"), "model.type");
  for (const std::string_view key : {"model.dropout", "model.continuing_subword_prefix", "model.end_of_word_suffix"}) {
    const Json* value = json_find(tokenizer, key);
    const auto* text = value == nullptr ? nullptr : value->get_ptr<const std::string*>();
    const bool off = value == nullptr || value->is_null() || (text != nullptr && text->empty()) || *value == 0.0;
    if (!off) return unknown_step(*value, key);
  }
  NIHAO_TRY(const bool byte_tokens, json_get_or<bool>(tokenizer, "model.byte_fallback", false));
  NIHAO_TRY(const std::vector<std::string_view> added, tokens_from_json(tokenizer, data, byte_tokens));
  NIHAO_CHECK(merges_from_json(tokenizer, data, added));
  NIHAO_TRY(data.whole_words_first, json_get_or<bool>(tokenizer, "model.ignore_merges", false));
  NIHAO_TRY(data.unknown, named_token(data, tokenizer, "model.unk_token"));
  if (byte_tokens) {
    data.spelling = PieceSpelling::sentencepiece;
    NIHAO_CHECK(character_rules(tokenizer, data));
  } else {
    NIHAO_TRY(data.words, words_from_json(tokenizer));
    NIHAO_TRY(const std::vector<JsonStep> steps, json_steps(tokenizer, "normalizer", "normalizers"));
    for (const JsonStep& step : steps) {
      if (json_value(*step.value, "type") != "NFC") return unknown_step(*step.value, step.path);
      data.nfc = true;
    }
  }
  NIHAO_CHECK(around_from_json(tokenizer, data));
  NIHAO_CHECK(config_from_json(config, data));
  NIHAO_CHECK(ends_from_json(generation, data));
  return Tokenizer::from_data(data);
}

NIHAO_INLINE Expected<Tokenizer> tokenizer_from_folder(const std::string& folder) {
  const std::string main = concat(folder, "/tokenizer.json");
  NIHAO_TRY(const Json tokenizer, detail::read_tokenizer_file(main));
  const auto beside = [&](std::string_view name) -> Expected<Json> {
    auto json = detail::read_tokenizer_file(concat(folder, "/", name));
    if (!json && json.error().code == ErrorCode::io) return Json();
    return json;
  };
  NIHAO_TRY(const Json config, beside("tokenizer_config.json"));
  NIHAO_TRY(const Json generation, beside("generation_config.json"));
  auto made = tokenizer_from_json(tokenizer, config, generation);
  if (!made) return std::move(made).error().in(main);
  return made;
}

}  // namespace nihao
