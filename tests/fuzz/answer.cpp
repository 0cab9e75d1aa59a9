// Any bytes as a model's answer: thinking and calls of tools are the same however the text is cut, and no text is lost but
// markers.
#include "nihao/text/tool_calls.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

using namespace nihao;

namespace {

struct Answer {
  std::string reasoning, content, text;
  std::vector<ToolCall> calls;
  bool operator==(const Answer&) const = default;
};

// `cut` bytes at a time; 0: in one piece.
Answer read_answer(const ReasoningFormat& reasoning, const ToolCallFormat& calls, bool inside, std::string_view text,
                   std::size_t cut) {
  ReasoningSplitter splitter(reasoning, inside);
  ToolCallParser parser(calls);
  Answer out;
  const auto add = [&](const ReasoningSplitter::Delta& delta, const ToolCallParser::Delta& call) {
    out.reasoning += delta.reasoning;
    out.content += delta.content;
    out.text += call.content;
    out.calls.insert(out.calls.end(), call.calls.begin(), call.calls.end());
  };
  do {
    const std::string_view piece = text.substr(0, cut == 0 ? text.npos : cut);
    text.remove_prefix(piece.size());
    add(splitter.push(piece), parser.push(piece));
  } while (!text.empty());
  add(splitter.finish(), parser.finish());
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const ReasoningFormat& reasoning = reasoning_formats[data[0] % std::size(reasoning_formats)];
  const ToolCallFormat& calls = tool_call_formats[data[1] % std::size(tool_call_formats)];
  const bool inside = (data[0] & 128) != 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const Answer whole = read_answer(reasoning, calls, inside, text, 0);
  for (const std::size_t cut : {1u, 2u, 7u})
    if (!(read_answer(reasoning, calls, inside, text, cut) == whole)) std::abort();
  if (whole.reasoning.size() + whole.content.size() > text.size()) std::abort();
  if (whole.calls.empty() && whole.text.size() > text.size()) std::abort();
  return 0;
}
