#include "nihao/text/reasoning.hpp"

#include <doctest/doctest.h>
#include <filesystem>

#include "nihao/files/json.hpp"
#include "support/data.hpp"

using namespace nihao;

namespace {

const ReasoningFormat think = {"<think>", "</think>"};
const ReasoningFormat harmony = reasoning_formats[0];

struct Split {
  std::string reasoning, content;
  bool operator==(const Split&) const = default;
};
Split split_text(ReasoningSplitter splitter, const std::vector<std::string>& pieces) {
  Split out;
  const auto add = [&](const ReasoningSplitter::Delta& delta) { out.reasoning += delta.reasoning, out.content += delta.content; };
  for (const std::string& piece : pieces) add(splitter.push(piece));
  add(splitter.finish());
  return out;
}
std::vector<std::string> cut_every(const std::string& text, std::size_t size) {
  std::vector<std::string> pieces;
  for (std::size_t i = 0; i < text.size(); i += size) pieces.push_back(text.substr(i, size));
  return pieces;
}
ReasoningSplitter splitter_of(const Json& test) {
  return ReasoningSplitter(*json_get<std::string>(test, "format") == "harmony" ? harmony : think,
                           *json_get<std::string>(test, "start") == "prompt");
}
Json messages_of(const ReasoningSplitter& splitter) {
  Json out = Json::array();
  for (const auto& m : splitter.messages())
    out.push_back({{"channel", m.channel}, {"recipient", m.recipient.empty() ? Json() : Json(m.recipient)}, {"text", m.text}});
  return out;
}

}  // namespace

TEST_CASE("thinking and answer are split as the reference cases say, delta by delta") {
  const auto path = test::data("text/reasoning.json");
  if (!path) NIHAO_SKIP("text/reasoning.json");
  const auto json = parse_json(test::read_text(*path));
  REQUIRE(json.has_value());
  std::size_t cases = 0;
  for (const Json& test : *json_find(*json, "cases")) {
    ++cases;
    CAPTURE(*json_get<std::string>(test, "name"));
    ReasoningSplitter splitter = splitter_of(test);
    Split all;
    const auto check = [&](const ReasoningSplitter::Delta& delta, const Json& expected) {
      CHECK(delta.reasoning == expected.at(0).get<std::string>());
      CHECK(delta.content == expected.at(1).get<std::string>());
      all.reasoning += delta.reasoning, all.content += delta.content;
    };
    const auto pieces = *json_array<std::string>(test, "pieces");
    for (std::size_t i = 0; i < pieces.size(); ++i) check(splitter.push(pieces[i]), test.at("deltas").at(i));
    check(splitter.finish(), test.at("final_delta"));
    CHECK(all == Split{*json_get<std::string>(test, "reasoning_raw"), *json_get<std::string>(test, "content_raw")});
    if (test.contains("opened")) {
      CHECK(splitter.opened() == test.at("opened").get<bool>());
      CHECK(splitter.closed() == test.at("closed").get<bool>());
    } else {
      CHECK(messages_of(splitter) == test.at("messages"));
      const std::string end = splitter.messages().back().end;
      CHECK((end.empty() ? Json() : Json(end)) == test.at("end_marker"));
    }
  }
  CHECK(cases == 24);
}

TEST_CASE("the split does not depend on how the text is cut into pieces") {
  const auto path = test::data("text/reasoning.json");
  if (!path) NIHAO_SKIP("text/reasoning.json");
  const auto json = parse_json(test::read_text(*path));
  REQUIRE(json.has_value());
  for (const Json& test : *json_find(*json, "cases")) {
    CAPTURE(*json_get<std::string>(test, "name"));
    std::string text;
    const auto pieces = *json_array<std::string>(test, "pieces");
    for (const std::string& piece : pieces) text += piece;
    const Split expected = split_text(splitter_of(test), {text});
    for (std::size_t at = 0; at <= text.size(); ++at)
      CHECK(split_text(splitter_of(test), {text.substr(0, at), text.substr(at)}) == expected);
    for (std::size_t size = 1; size < 8; ++size) CHECK(split_text(splitter_of(test), cut_every(text, size)) == expected);
  }
}

TEST_CASE("a block that the template has opened is thinking, though the tag is cut across pieces (bug C71)") {
  CHECK(opens_thinking(think, "<|im_start|>assistant\n<think>\n"));
  CHECK_FALSE(opens_thinking(think, "<|im_start|>assistant\n<think>\n\n</think>\n\n"));
  CHECK_FALSE(opens_thinking(think, "What does <think> mean?<|im_end|>\n<|im_start|>assistant\n"));
  CHECK(opens_thinking({"<|channel>thought\n", "<channel|>"}, "<|turn>model\n<|channel>thought\n"));
  CHECK(split_text(ReasoningSplitter(think, true), {"internal", " reasoning</thi", "nk>answer"}) ==
        Split{"internal reasoning", "answer"});
  CHECK(split_text(ReasoningSplitter(think, true), {"a</think>b<think>c</think>d"}) == Split{"a", "b<think>c</think>d"});
}

TEST_CASE("harmony text without headers, or with a broken one, is answer") {
  const auto split = [](const std::string& text) { return split_text(ReasoningSplitter(harmony), {text}); };
  CHECK(split("Hello <b>") == Split{"", "Hello <b>"});
  CHECK(split("to be") == Split{"", "to be"});
  CHECK(split("<|channel|>analysis<|mess") == Split{"", ""});
  CHECK(split("<|message|>plain<|end|>") == Split{"", "plain"});
  CHECK(split("<|channel|>analysis<|message|>a<|end|>b<|start|>assistant<|channel|>final<|message|>c") == Split{"a", "bc"});
  const std::string endless = "<|channel|>" + std::string(3000, 'x') + "<|channel|>final<|message|>y<|return|>";
  const Split all = split(endless);
  CHECK(all.content.size() > 2900);
  CHECK(split_text(ReasoningSplitter(harmony), cut_every(endless, 1)) == all);
  CHECK(split_text(ReasoningSplitter(harmony), cut_every(endless, 700)) == all);
}

TEST_CASE("a harmony call names its recipient in the role or in the channel") {
  for (const std::string text : {" to=functions.f<|channel|>commentary json<|message|>{}<|call|>",
                                 "<|start|>assistant to=functions.f<|channel|>commentary json<|message|>{}<|call|>",
                                 "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>"}) {
    CAPTURE(text);
    ReasoningSplitter splitter(harmony);
    CHECK(splitter.push(text).content.empty());
    REQUIRE(splitter.messages().size() == 1);
    CHECK(splitter.messages()[0].recipient == "functions.f");
    CHECK(splitter.messages()[0].channel == "commentary");
    CHECK(splitter.messages()[0].text == "{}");
    CHECK(splitter.messages()[0].end == "<|call|>");
  }
}

TEST_CASE("which format a model has is read off its template, else off its vocabulary") {
  const auto nothing = [](std::string_view) { return false; };
  CHECK_FALSE(find_reasoning_format("{{ messages }}", nothing));
  CHECK(find_reasoning_format("", [](std::string_view t) { return t == "[THINK]" || t == "[/THINK]"; })->open == "[THINK]");
  const auto folder = test::data("text/chat/templates");
  if (!folder) NIHAO_SKIP("text/chat/templates");
  const std::pair<const char*, const char*> formats[] = {{"ByteDance-Seed-OSS", "</seed:think>"},
                                                         {"CohereForAI-c4ai-command-r7b-12-2024-tool_use", "<|END_THINKING|>"},
                                                         {"GLM-4.6", "</think>"},
                                                         {"MiniMax-M2", "</think>"},
                                                         {"Qwen-Qwen3-0.6B", "</think>"},
                                                         {"deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", "</think>"},
                                                         {"google-gemma-4-31B-it", "<channel|>"},
                                                         {"openai-gpt-oss-120b", "<|end|>"},
                                                         {"Qwen-Qwen2.5-7B-Instruct", ""},
                                                         {"microsoft-Phi-3.5-mini-instruct", ""},
                                                         {"meta-llama-Llama-3.1-8B-Instruct", ""}};
  for (const auto& [name, close] : formats) {
    const std::string file = std::string(name) + ".jinja";
    CAPTURE(file);
    const auto format = find_reasoning_format(test::read_text(*folder / file), nothing);
    CHECK((format ? format->close : std::string_view()) == close);
  }
}
