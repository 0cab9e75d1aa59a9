// Calls of tools in a model's text: found while it streams, in the notation of whichever family it is.
#pragma once

#include "../files/json.hpp"
#include "reasoning.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nihao {

/// A call that a model makes.
struct ToolCall {
  std::string name;
  Json arguments;  ///< an object; what the model wrote, as a string, where that is no JSON (gpt-oss's python)
  std::string id;  ///< empty if the notation has none

  bool operator==(const ToolCall&) const = default;
};

/// Where calls stand in a family's text. What stands between the markers is told from its own first characters: see
/// parse_tool_calls().
struct ToolCallFormat {
  std::string_view begin, end;              ///< around a call, or a list of them; no end: the next begin, or the end of the text
  std::string_view wrap = {}, unwrap = {};  ///< around all calls; left out
  std::string_view hint = {};               ///< what a template with this format contains; empty: `begin`
  bool bare = false;                        ///< a text that begins with { is a call without markers
  bool inside = false;                      ///< the prompt ends with `begin`
  bool harmony = false;                     ///< a message with a recipient is a call (gpt-oss)
};

/// The formats that are known, by the names of those who began them.
inline constexpr ToolCallFormat tool_call_formats[] = {
    {.begin = "<|call|>", .end = "", .hint = "<|channel|>", .harmony = true},  // gpt-oss
    {.begin = "<seed:tool_call>", .end = "</seed:tool_call>"},                 // Seed-OSS
    {.begin = "<invoke ",
     .end = "</invoke>",
     .wrap = "<minimax:tool_call>",
     .unwrap = "</minimax:tool_call>",
     .hint = "<minimax:tool_call>"},  // MiniMax-M2
    {.begin = "<｜tool▁call▁begin｜>",
     .end = "<｜tool▁call▁end｜>",
     .wrap = "<｜tool▁calls▁begin｜>",
     .unwrap = "<｜tool▁calls▁end｜>"},  // DeepSeek
    {.begin = "<|tool_call_begin|>",
     .end = "<|tool_call_end|>",
     .wrap = "<|tool_calls_section_begin|>",
     .unwrap = "<|tool_calls_section_end|>"},                                                     // Kimi-K2
    {.begin = "[TOOL_CALLS]", .end = ""},                                                         // Mistral
    {.begin = "<|START_ACTION|>", .end = "<|END_ACTION|>"},                                       // Command-R7B
    {.begin = "<TOOLCALL>", .end = "</TOOLCALL>"},                                                // Nemotron
    {.begin = "<|tool_call>", .end = "<tool_call|>"},                                             // Gemma 4
    {.begin = "<|tool_call_start|>", .end = "<|tool_call_end|>", .hint = "<|tool_list_start|>"},  // LFM2
    {.begin = "<|tool_call|>", .end = ""},                                                        // Granite 3
    {.begin = ">>>", .end = "", .hint = ">>>all", .inside = true},                                // Functionary 3.2
    {.begin = "<tool_call>", .end = "</tool_call>"},  // Hermes, Qwen, Qwen3-Coder, GLM-4.6, SmolLM3
    {.begin = "<|python_tag|>", .end = "", .hint = "{\"name\": function name, \"parameters\"", .bare = true},  // Llama 3
};

/// The format of a model with this chat template (its source); none if it shows no calls.
[[nodiscard]] inline std::optional<ToolCallFormat> find_tool_call_format(std::string_view chat_template) {
  for (const ToolCallFormat& format : tool_call_formats)
    if (chat_template.find(format.hint.empty() ? format.begin : format.hint) != chat_template.npos) return format;
  return std::nullopt;
}

namespace detail {

[[nodiscard]] inline std::string_view trim(std::string_view text) noexcept {
  constexpr std::string_view space = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(space), text.size()));
  return text.substr(0, text.find_last_not_of(space) + 1);
}

[[nodiscard]] inline Error no_call(std::string_view what) { return {ErrorCode::malformed, std::string(what), "tool call"}; }

inline constexpr std::size_t most_arguments = 1024;  // between tags

// How the families that write arguments between tags spell them.
struct TagSpelling {
  std::string_view name_begin, name_end, key_begin, key_end, value_begin, value_end;
};
inline constexpr TagSpelling tag_spellings[] = {
    {"<function=", ">", "<parameter=", ">", "", "</parameter>"},
    {"name=\"", "\">", "<parameter name=\"", "\">", "", "</parameter>"},
    {"", "<arg_key>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"},
};
// What stands between a name and its arguments as JSON.
inline constexpr std::string_view name_separators[] = {"[ARGS]", "<｜tool▁sep｜>", "<|tool_call_argument_begin|>", "\n"};

// Takes what stands between two marks off the front of `text`; false, and nothing is taken, if they are not there.
[[nodiscard]] inline bool take(std::string_view& text, std::string_view begin, std::string_view end,
                               std::string_view& out) noexcept {
  const std::size_t from = text.find(begin);
  if (from == text.npos) return false;
  const std::size_t to = text.find(end, from + begin.size());
  if (to == text.npos) return false;
  out = text.substr(from + begin.size(), to - from - begin.size());
  text.remove_prefix(to + end.size());
  return true;
}

[[nodiscard]] inline Json value_of(std::string_view text) {
  if (text.size() >= 2 && text.front() == '\n' && text.back() == '\n') text = text.substr(1, text.size() - 2);
  if (text == "True" || text == "False") return text == "True";
  if (text == "None") return nullptr;
  if (!trim(text).starts_with('"'))
    if (auto json = parse_json(text)) return *std::move(json);
  return std::string(text);
}

// <function=f><parameter=a>1</parameter></function> and its kind. A value that reads as JSON is that, any other is a string.
[[nodiscard]] inline Expected<std::vector<ToolCall>> parse_tags(std::string_view text, const TagSpelling& tags) {
  ToolCall call{{}, Json::object(), {}};
  std::string_view name, key, value;
  if (tags.name_begin.empty()) {
    name = text.substr(0, text.find(tags.name_end));
    text.remove_prefix(name.size());
  } else if (!take(text, tags.name_begin, tags.name_end, name)) {
    return no_call("a name has no end");
  }
  call.name = trim(name);
  if (call.name.empty() || call.name.find_first_of(" \n<>{}") != call.name.npos) return no_call("there is no name");
  while (take(text, tags.key_begin, tags.key_end, key)) {
    if (call.arguments.size() == most_arguments) return no_call("there are too many arguments");
    if (!tags.value_begin.empty() ? !take(text, tags.value_begin, tags.value_end, value) : !take(text, "", tags.value_end, value))
      return no_call("an argument has no end");
    call.arguments[std::string(key)] = value_of(value);
  }
  return std::vector{std::move(call)};
}

[[nodiscard]] inline std::string json_string(std::string_view text) {
  return Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace);
}

// A Python string literal at the front of `text`, taken off it.
[[nodiscard]] inline Expected<std::string> take_string(std::string_view& text) {
  std::string out;
  for (std::size_t i = 1; i < text.size(); ++i) {
    char c = text[i];
    if (c == text.front()) {
      text.remove_prefix(i + 1);
      return out;
    }
    if (c == '\\' && i + 1 < text.size()) {
      constexpr std::string_view names = "ntr0\\'\"", bytes{"\n\t\r\0\\'\"", 7};
      const std::size_t known = names.find(text[i + 1]);
      if (known != names.npos) c = bytes[known], ++i;
    }
    out += c;
  }
  return no_call("a string has no end");
}

// Literals of Python (f's arguments: a=1, b='x') and of Gemma (a:1,b:<|"|>x<|"|>), rewritten as JSON.
[[nodiscard]] inline Expected<std::string> literals_to_json(std::string_view text) {
  constexpr std::string_view quote = "<|\"|>";
  const auto is_name = [](char c, bool first) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 128;
    return letter || (!first && ((c >= '0' && c <= '9') || c == '-' || c == '.'));
  };
  std::string out;
  while (!text.empty()) {
    std::string_view string;
    if (text.starts_with(quote)) {
      if (!take(text, quote, quote, string)) return no_call("a string has no end");
      out += json_string(string);
    } else if (text.front() == '\'' || text.front() == '"') {
      NIHAO_TRY(const std::string value, take_string(text));
      out += json_string(value);
    } else if (is_name(text.front(), true)) {
      std::size_t size = 1;
      while (size < text.size() && is_name(text[size], false)) ++size;
      const std::string_view name = text.substr(0, size);
      text.remove_prefix(size);
      if (name == "True" || name == "true") out += "true";
      else if (name == "False" || name == "false") out += "false";
      else if (name == "None" || name == "null") out += "null";
      else out += json_string(name);
    } else {
      const char c = text.front();
      out += c == '=' ? ':' : c == '(' ? '[' : c == ')' ? ']' : c;
      text.remove_prefix(1);
    }
  }
  return out;
}

// Where the bracket that `text` begins with is closed; npos if it is not.
[[nodiscard]] inline std::size_t closing_bracket(std::string_view text) noexcept {
  std::size_t depth = 0;
  char string = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (string != 0) {
      if (c == '\\') ++i;
      else if (c == string) string = 0;
    } else if (c == '"' || c == '\'') {
      string = c;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if ((c == ')' || c == ']' || c == '}') && --depth == 0) {
      return i;
    }
  }
  return text.npos;
}

// [f(a=1, b='x'), g()], with or without the list's brackets; Llama's f.call(a=1).
[[nodiscard]] inline Expected<std::vector<ToolCall>> parse_pythonic(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) text = trim(text.substr(1, text.size() - 2));
  std::vector<ToolCall> calls;
  while (!text.empty()) {
    const std::size_t open = text.find('(');
    if (open == text.npos || open == 0) return no_call("there is no name");
    std::string_view name = trim(text.substr(0, open));
    if (name.ends_with(".call")) name.remove_suffix(5);
    if (name.find_first_of(" \n\"'{}[]=,:") != name.npos) return no_call("there is no name");
    text.remove_prefix(open);
    const std::size_t close = closing_bracket(text);
    if (close == text.npos) return no_call("a bracket is not closed");
    NIHAO_TRY(const std::string inner, literals_to_json(text.substr(1, close - 1)));
    NIHAO_TRY(Json arguments, parse_json("{" + inner + "}"));
    calls.push_back({std::string(name), std::move(arguments), {}});
    text = trim(text.substr(close + 1));
    if (text.starts_with(',')) text = trim(text.substr(1));
  }
  if (calls.empty()) return no_call("there is no name");
  return calls;
}

// call:f{a:1,b:<|"|>x<|"|>}
[[nodiscard]] inline Expected<std::vector<ToolCall>> parse_gemma(std::string_view text) {
  const std::size_t open = text.find('{');
  if (open == text.npos || !text.ends_with('}')) return no_call("its arguments have no brackets");
  const std::string_view name = trim(text.substr(5, open - 5));
  std::string_view inner = text.substr(open);
  if (name.empty()) return no_call("there is no name");
  if (inner.starts_with("{{")) inner = inner.substr(1, inner.size() - 2);  // the template was given JSON text
  auto arguments = parse_json(inner);
  if (!arguments) {
    NIHAO_TRY(const std::string json, literals_to_json(inner));
    arguments = parse_json(json);
  }
  if (!arguments) return std::move(arguments).error();
  return std::vector{ToolCall{std::string(name), *std::move(arguments), {}}};
}

// Arguments may be an object, or the text of one.
[[nodiscard]] inline Json arguments_of(const Json& json) {
  if (!json.is_string()) return json;
  auto inner = parse_json(json.get_ref<const std::string&>());
  return inner ? *std::move(inner) : json;
}

[[nodiscard]] inline Expected<ToolCall> call_of(const Json& json) {
  const auto first_of = [](const Json& in, std::initializer_list<const char*> keys) -> const Json* {
    for (const char* key : keys)
      if (in.is_object() && in.contains(key)) return &in.at(key);
    return nullptr;
  };
  const Json* function = first_of(json, {"function"});
  const Json& in = function != nullptr && function->is_object() ? *function : json;
  const Json* name = first_of(in, {"name", "tool_name"});
  if (name == nullptr || !name->is_string() || name->get_ref<const std::string&>().empty()) return no_call("there is no name");
  const Json* arguments = first_of(in, {"arguments", "parameters", "args"});
  const Json* id = first_of(json, {"id", "tool_call_id"});
  return ToolCall{name->get<std::string>(), arguments != nullptr ? arguments_of(*arguments) : Json::object(),
                  id != nullptr && id->is_string() ? id->get<std::string>() : ""};
}

// {"name": ..., "arguments": ...}, or a list of such.
[[nodiscard]] inline Expected<std::vector<ToolCall>> parse_json_calls(std::string_view text) {
  NIHAO_TRY(const Json json, parse_json(text));
  std::vector<ToolCall> calls;
  const std::span<const Json> items = json.is_array() ? std::span(json.get_ref<const Json::array_t&>()) : std::span(&json, 1);
  calls.reserve(items.size());
  for (const Json& item : items) {
    NIHAO_TRY(ToolCall call, call_of(item));
    calls.push_back(std::move(call));
  }
  if (calls.empty()) return no_call("there is no name");
  return calls;
}

// A name, a separator, and JSON. Mistral's has an id between them, Kimi's name is one: functions.f:0.
[[nodiscard]] inline Expected<std::vector<ToolCall>> parse_named(std::string_view text, std::string_view separator) {
  const std::size_t at = text.find(separator);
  std::string_view name = trim(text.substr(0, at)), rest = trim(text.substr(at + separator.size()));
  if (constexpr std::string_view fence = "\n```json\n"; name == "function" && rest.find(fence) != rest.npos) {  // DeepSeek-V3, R1
    name = rest.substr(0, rest.find(fence));
    rest = rest.substr(name.size() + fence.size());
    rest = rest.substr(0, rest.rfind("```"));
  }
  NIHAO_TRY(const Json json, parse_json(trim(rest)));
  ToolCall call{{}, arguments_of(json), {}};
  if (const std::size_t id = name.find("[CALL_ID]"); id != name.npos) {
    call.id = name.substr(id + 9);
    name = name.substr(0, id);
  }
  if (name.starts_with("functions.")) {
    if (name.find(':') != name.npos) call.id = name;
    name = name.substr(10, name.find(':') == name.npos ? name.npos : name.find(':') - 10);
  }
  if (name.empty() || name.find_first_of(" \n{}\"") != name.npos) return no_call("there is no name");
  call.name = name;
  return std::vector{std::move(call)};
}

}  // namespace detail

/// The calls in what stood between a format's markers: JSON, arguments between tags, calls as in Python, Gemma's notation, or a
/// name before JSON. Errors: malformed, limit (JSON nested too deep).
[[nodiscard]] inline Expected<std::vector<ToolCall>> parse_tool_calls(std::string_view body) {
  using namespace detail;
  const std::string_view text = trim(body);
  if (text.starts_with('{')) return parse_json_calls(text);
  if (text.starts_with('[')) {
    auto calls = parse_json_calls(text);
    return calls ? std::move(calls) : parse_pythonic(text);
  }
  if (text.starts_with("call:")) return parse_gemma(text);
  for (const std::string_view separator : name_separators)
    if (separator != "\n" && text.find(separator) != text.npos) return parse_named(text, separator);
  for (const TagSpelling& tags : tag_spellings)
    if (!tags.name_begin.empty() ? text.starts_with(tags.name_begin) : text.find(tags.key_begin) != text.npos)
      return parse_tags(text, tags);
  const std::size_t line = text.find('\n'), bracket = text.find('(');
  if (bracket < line) return parse_pythonic(text);
  if (line != text.npos) return parse_named(text, "\n");
  if (text.empty() || text.find_first_of(" <>{}[]\"'") != text.npos) return no_call("no notation of calls begins like this");
  return std::vector{ToolCall{std::string(text), Json::object(), {}}};  // GLM's, without arguments
}

/// Finds the calls in a streamed answer (without its thinking: see ReasoningSplitter; harmony is read whole). Text outside of
/// calls goes through; what may become a marker is held back, and so is a call until it is complete. What was no call after all
/// is text, with its markers, and problem() tells why. The result is the same however the text was cut into pieces.
class ToolCallParser {
 public:
  struct Delta {
    std::string_view content;
    std::span<const ToolCall> calls;  ///< those that became complete
  };

  explicit ToolCallParser(const ToolCallFormat& format) : format_(format) {
    if (format_.harmony) splitter_ = ReasoningSplitter(reasoning_formats[0]);
    if (format_.inside) begin_call();
    else begin_text();
    at_start_ = format_.bare;
  }

  /// Valid until the next call.
  Delta push(std::string_view text) {
    content_.clear();
    told_ = calls_.size();
    if (format_.harmony) take_messages(splitter_.push(text).content, false);
    while (!format_.harmony && !text.empty()) text.remove_prefix(step(text));
    return delta();
  }

  /// The end of the text. A call without its end is one if it can be read.
  Delta finish() {
    content_.clear();
    told_ = calls_.size();
    if (format_.harmony) {
      take_messages(splitter_.finish().content, true);
    } else {
      (in_call_ ? body_ : content_) += matcher_.flush();
      if (in_call_) end_call({});
      in_call_ = at_start_ = false;
    }
    return delta();
  }

  /// All calls so far.
  [[nodiscard]] std::span<const ToolCall> calls() const noexcept { return calls_; }
  /// Why the last text between markers was none.
  [[nodiscard]] const std::optional<Error>& problem() const noexcept { return problem_; }

 private:
  static constexpr int most_ends = 16;  // in one call's strings

  [[nodiscard]] Delta delta() const noexcept { return {content_, std::span(calls_).subspan(told_)}; }

  void begin_text() {
    in_call_ = false;
    matcher_ = StopMatcher({std::string(format_.begin), std::string(format_.wrap), std::string(format_.unwrap)});
  }
  void begin_call(std::string marker = {}) {
    in_call_ = true;
    body_.clear();
    marker_ = std::move(marker);
    ends_ = 0;
    if (marker_.empty() && format_.bare) matcher_ = StopMatcher();  // to the end of the text
    else matcher_ = StopMatcher({std::string(format_.end.empty() ? format_.begin : format_.end)});
  }

  std::size_t step(std::string_view text) {
    if (at_start_ && text.front() != ' ' && text.front() != '\n') {
      at_start_ = false;
      if (text.front() == '{') begin_call();
    }
    const std::string_view out = matcher_.push(at_start_ ? text.substr(0, 1) : text);
    const std::size_t consumed = matcher_.consumed();
    (in_call_ ? body_ : content_) += out;
    if (!matcher_.matched()) return consumed;
    const std::string hit(matcher_.hit());
    if (in_call_) step_end(hit);
    else if (hit == format_.begin) begin_call(hit);
    else begin_text();
    return consumed;
  }

  // The marker that ends a call, unless it stands in one of its strings.
  void step_end(const std::string& hit) {
    const bool again = format_.end.empty();
    if (!again && ++ends_ < most_ends && detail::trim(body_).starts_with('{') && !parse_tool_calls(body_)) {
      body_ += hit;
      matcher_ = StopMatcher({hit});
      return;
    }
    end_call(again ? "" : hit);
    again ? begin_call(hit) : begin_text();
  }

  void end_call(std::string_view marker) {
    constexpr std::string_view to_all = "all\n";  // Functionary's recipient of plain text
    if (format_.inside && body_.starts_with(to_all)) {
      content_ += std::string_view(body_).substr(to_all.size());
      return;
    }
    auto calls = parse_tool_calls(body_);
    if (calls) {
      for (ToolCall& call : *calls) calls_.push_back(std::move(call));
    } else {
      problem_ = std::move(calls).error();
      content_ += marker_;
      content_ += body_;
      content_ += marker;
    }
  }

  // gpt-oss: the messages to recipients that are complete.
  void take_messages(std::string_view content, bool last) {
    content_ += content;
    const auto messages = splitter_.messages();
    for (; taken_ < messages.size() && (last || !messages[taken_].end.empty()); ++taken_) {
      const ReasoningSplitter::Message& m = messages[taken_];
      if (m.recipient.empty()) continue;
      const std::string_view name = m.recipient;
      auto arguments = parse_json(m.text);
      calls_.push_back({std::string(name.starts_with("functions.") ? name.substr(10) : name),
                        arguments ? detail::arguments_of(*arguments) : Json(m.text),
                        {}});
    }
  }

  ToolCallFormat format_;
  ReasoningSplitter splitter_;  // of harmony
  StopMatcher matcher_;
  std::string content_, body_, marker_;
  std::vector<ToolCall> calls_;
  std::optional<Error> problem_;
  std::size_t told_ = 0, taken_ = 0;
  int ends_ = 0;
  bool in_call_ = false, at_start_ = false;
};

}  // namespace nihao
