#include "nihao/text/tool_calls.hpp"

#include "text/chat_data.hpp"

#include <doctest/doctest.h>
#include <set>

using namespace nihao;

namespace {

// What a parser makes of a text: what is no call, and the calls.
struct Parsed {
  std::string content;
  std::vector<ToolCall> calls;
  bool operator==(const Parsed&) const = default;
};
Parsed parse_cut(const ToolCallFormat& format, const std::vector<std::string>& pieces) {
  ToolCallParser parser(format);
  Parsed out;
  const auto add = [&](const ToolCallParser::Delta& delta) {
    out.content += delta.content;
    out.calls.insert(out.calls.end(), delta.calls.begin(), delta.calls.end());
  };
  for (const std::string& piece : pieces) add(parser.push(piece));
  add(parser.finish());
  return out;
}
Parsed parse_whole(std::string_view marker, const std::string& text) {
  for (const ToolCallFormat& format : tool_call_formats) {
    if (format.begin != marker) continue;
    const Parsed whole = parse_cut(format, {text});
    for (std::size_t at = 0; at <= text.size(); ++at) CHECK(parse_cut(format, {text.substr(0, at), text.substr(at)}) == whole);
    std::vector<std::string> bytes;
    for (const char byte : text) bytes.emplace_back(1, byte);
    CHECK(parse_cut(format, bytes) == whole);
    return whole;
  }
  FAIL("no such format");
  return {};
}

const Json weather = {{"location", "Paris, France"}, {"unit", "celsius"}};
const Json sum = {{"a", 1.5}, {"b", -2}};

// The calls of a conversation's first assistant turn that has some, as a parser should give them.
std::vector<ToolCall> calls_of(const test::Json& messages, std::size_t& turn) {
  std::vector<ToolCall> out;
  for (turn = 0; turn < messages.size() && out.empty(); ++turn)
    for (const auto& call : messages[turn].value("tool_calls", test::Json::array())) {
      const auto& f = call.at("function");
      const auto& arguments = f.at("arguments");
      out.push_back({f.at("name"), arguments.is_string() ? test::Json::parse(arguments.get<std::string>()) : arguments, {}});
    }
  --turn;
  return out;
}

// The model's part of a rendered conversation: what differs from the prompt, up to the end of the turn.
std::string turn_of(const std::string& all, const std::string& prompt, bool& inside) {
  std::size_t from = 0;
  while (from < prompt.size() && from < all.size() && prompt[from] == all[from]) ++from;
  if (from < prompt.size()) {  // not within a marker
    const std::size_t open = all.find_last_of("<[", from), close = all.find_last_of(">]", from - 1);
    if (open != all.npos && open < from && (close == all.npos || close < open)) from = open;
  }
  std::string text = all.substr(from);
  for (const char* end :
       {"<|im_end|>", "<|eot_id|>", "<|eom_id|>", "</s>", "<|END_OF_TURN_TOKEN|>", "<seed:eos>", "[e~[", "<SPECIAL_12>",
        "<turn|>", "<|tool_response>", "<｜end▁of▁sentence｜>", "<|observation|>", "<|start|>functions"})
    text = text.substr(0, text.find(end));
  inside = all.substr(0, from).ends_with("<think>\n") || all.substr(0, from).ends_with("<|START_THINKING|>");
  return text;
}

}  // namespace

TEST_CASE("what templates render as tool calls is parsed to what they were given, also cut at every byte") {
  const auto folder = test::data("text/chat");
  if (!folder) NIHAO_SKIP("text/chat");
  std::set<std::string> templates;
  std::size_t conversations = 0;
  for (const auto& file : std::filesystem::directory_iterator(*folder)) {
    if (file.path().extension() != ".json") continue;
    const auto json = test::Json::parse(test::read_text(file.path()));
    const std::string source = test::read_text(*folder / json.at("template").get<std::string>());
    const auto chat = ChatTemplate::parse(source);
    const auto format = find_tool_call_format(source);
    if (!format) continue;
    RenderOptions options;
    options.now = test::parse_now(json.at("now"));
    for (const auto& c : json.at("cases")) {
      auto context = c.at("context");
      std::size_t turn = 0;
      std::vector<ToolCall> expected;
      if (context.contains("messages")) expected = calls_of(context["messages"], turn);
      if (expected.empty() || !c.contains("output")) continue;
      const std::string all = c.at("output");
      auto before = test::Json::array();
      for (std::size_t i = 0; i < turn; ++i) before.push_back(context["messages"][i]);
      context["messages"] = before;
      context["add_generation_prompt"] = true;
      const auto prompt = chat->render(to_value(context), options);
      REQUIRE(prompt.has_value());
      bool inside = false;
      std::string text = turn_of(all, *prompt, inside);
      CAPTURE(file.path().stem().string());
      CAPTURE(c.at("name").get<std::string>());
      CAPTURE(text);
      if (text.find(expected[0].name) == text.npos) continue;  // the template drops calls
      templates.insert(file.path().stem().string());
      ++conversations;
      const auto reasoning = find_reasoning_format(source, [](std::string_view) { return false; });
      std::string rest = text;
      if (reasoning && !format->harmony) {
        ReasoningSplitter splitter(*reasoning, inside);
        rest = splitter.push(text).content;
        rest += splitter.finish().content;
      }
      Parsed whole = parse_cut(*format, {rest});
      for (std::size_t at = 0; at <= rest.size(); ++at) CHECK(parse_cut(*format, {rest.substr(0, at), rest.substr(at)}) == whole);
      for (ToolCall& call : whole.calls) call.id.clear();
      CHECK(whole.calls == expected);
      CHECK(whole.content.find(expected[0].name) == whole.content.npos);
    }
  }
  CHECK(templates.size() == 19);
  CHECK(conversations == 65);
}

TEST_CASE("every notation of calls is read, and the text around it goes through") {
  const std::vector<ToolCall> one{{"get_weather", weather, ""}}, two{{"get_weather", weather, ""}, {"add", sum, ""}};
  CHECK(parse_whole("<|tool_call_start|>",
                    "Let me see. <|tool_call_start|>[get_weather(location=\"Paris, France\", unit='celsius'), add(a=1.5, b=-2)]"
                    "<|tool_call_end|> So.") == Parsed{"Let me see.  So.", two});
  CHECK(parse_whole(
            "<|tool_call_begin|>",
            "a<|tool_calls_section_begin|><|tool_call_begin|>functions.add:3<|tool_call_argument_begin|>{\"a\": 1.5, \"b\": -2}"
            "<|tool_call_end|><|tool_calls_section_end|>") == Parsed{"a", {{"add", sum, "functions.add:3"}}});
  CHECK(parse_whole("<|tool_call|>", "<|tool_call|>[{\"name\": \"add\", \"arguments\": {\"a\": 1.5, \"b\": -2}}]") ==
        Parsed{"", {{"add", sum, ""}}});
  CHECK(parse_whole("<|python_tag|>", "<|python_tag|>add.call(a=1.5, b=-2)") == Parsed{"", {{"add", sum, ""}}});
  CHECK(parse_whole("<|python_tag|>", "{\"name\": \"add\", \"parameters\": {\"a\": 1.5, \"b\": -2}}") ==
        Parsed{"", {{"add", sum, ""}}});
  CHECK(parse_whole(">>>", "all\nLet me see.>>>add\n{\"a\": 1.5, \"b\": -2}") == Parsed{"Let me see.", {{"add", sum, ""}}});
  CHECK(parse_whole("<｜tool▁call▁begin｜>",
                    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>add\n```json\n{\"a\": 1.5, \"b\": -2}\n```"
                    "<｜tool▁call▁end｜><｜tool▁calls▁end｜>") == Parsed{"", {{"add", sum, ""}}});
  CHECK(parse_whole("<tool_call>", "<tool_call>now\n</tool_call>") == Parsed{"", {{"now", Json::object(), ""}}});
  CHECK(parse_whole("<|call|>", "<|start|>assistant to=python<|channel|>analysis<|message|>print(1)<|call|>") ==
        Parsed{"", {{"python", "print(1)", ""}}});
  // The end marker in a string of the arguments ends nothing.
  CHECK(parse_whole("<tool_call>", "<tool_call>{\"name\": \"f\", \"arguments\": {\"x\": \"</tool_call>\"}}</tool_call>.") ==
        Parsed{".", {{"f", {{"x", "</tool_call>"}}, ""}}});
}

TEST_CASE("what is no call after all is text, with its markers, and the problem is told") {
  for (const std::string text :
       {"<tool_call>{\"name\": \"f\", \"arguments\": {</tool_call> and on", "<tool_call>{\"arguments\": {}}</tool_call>",
        "<tool_call>", "<tool_call>[]</tool_call>", "<tool_call><function=f><parameter=a>1</tool_call>",
        "<tool_call>f(a=</tool_call>", "<tool_call>call:f{a:<|\"|>x}</tool_call>", "<tool_call>[f(1)]</tool_call>",
        "<tool_call>no call</tool_call>"})
    CHECK(parse_whole("<tool_call>", text) == Parsed{text, {}});
  ToolCallParser parser(tool_call_formats[12]);
  parser.push("<tool_call>{</tool_call>");
  parser.finish();
  REQUIRE(parser.problem().has_value());
  CHECK(parser.problem()->code == ErrorCode::malformed);
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  CHECK_FALSE(parse_tool_calls("{\"name\": \"f\", \"arguments\": " + deep + "}").has_value());
  CHECK_FALSE(parse_tool_calls("f(a=" + deep + ")").has_value());
}
