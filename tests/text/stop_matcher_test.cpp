#include "nihao/text/stop_matcher.hpp"

#include <doctest/doctest.h>

#include "nihao/files/json.hpp"
#include "nihao/text/utf8.hpp"
#include "support/data.hpp"
#include "text/base64.hpp"

using namespace nihao;

namespace {

// The pieces that come out of `pieces`, the flush last, and where the text ended.
struct Streamed {
  std::vector<std::string> pieces;
  std::string text;
  std::size_t consumed = 0;
};
Streamed stream(StopMatcher& matcher, const std::vector<std::string>& pieces) {
  Streamed out;
  for (const std::string& piece : pieces) {
    if (matcher.matched()) break;
    ++out.consumed;
    out.pieces.emplace_back(matcher.push(piece));
  }
  if (!matcher.matched()) out.pieces.emplace_back(matcher.flush());
  for (const std::string& piece : out.pieces) out.text += piece;
  return out;
}

}  // namespace

TEST_CASE("text held back for a stop string comes out once, when it turns out to be none (case C31)") {
  StopMatcher matcher({"\n", "Alice:"});
  const Streamed got = stream(matcher, {" Alice", "!"});
  CHECK(got.pieces == std::vector<std::string>{" ", "Alice!", ""});
  CHECK_FALSE(matcher.matched());
}

TEST_CASE("text before a stop string in the same piece is delivered (case C32)") {
  StopMatcher whole({"?\n"}), newline({"\n"});
  CHECK(stream(whole, {"who", "?\n", "more"}).text == "who");
  CHECK(stream(newline, {"who", "?\n", "more"}).text == "who?");
  CHECK(newline.hit() == "\n");
}

TEST_CASE("the start of a stop string at the end of the text is delivered (case C33)") {
  StopMatcher matcher({"TRE\nAAAAAAAA"});
  CHECK(stream(matcher, {"UNO DUE", " TRE"}).text == "UNO DUE TRE");
}

TEST_CASE("streamed stop strings are cut as the reference cases say, piece by piece") {
  const auto path = test::data("text/stop_stream.json");
  if (!path) NIHAO_SKIP("text/stop_stream.json");
  const auto json = parse_json(test::read_text(*path));
  REQUIRE(json.has_value());
  for (const Json& test : *json_find(*json, "cases")) {
    CAPTURE(*json_get<std::string>(test, "name"));
    std::vector<std::string> stops = *json_array<std::string>(test, "stops"), chunks = *json_array<std::string>(test, "chunks");
    StopMatcher matcher(std::move(stops), *json_get<bool>(test, "include_stop"));
    Utf8Stream utf8;
    std::size_t consumed = 0;
    std::string text, expected, valid;
    const auto pieces = *json_array<std::string>(test, "pieces_b64");
    for (const std::string& piece : pieces) {
      if (matcher.matched()) break;
      valid.clear();
      utf8.push(test::from_base64(piece), valid);
      text += matcher.push(valid);
      // The reference looks at bytes, and sees from the first byte of a character that it is not a stop string's next one.
      expected += chunks[consumed++];
      if (utf8.waiting() == 0) CHECK(text == expected);
      else CHECK(expected.starts_with(text));
    }
    std::string flush;
    if (!matcher.matched()) {
      valid.clear();
      utf8.finish(valid);
      flush = matcher.push(valid);
      flush += matcher.flush();
    }
    CHECK(text + flush == *json_get<std::string>(test, "text"));
    CHECK(consumed == *json_get<std::size_t>(test, "pieces_consumed"));
    CHECK(matcher.hit() == *json_get_or<std::string>(test, "stop_hit", ""));
  }
}

TEST_CASE("the text before a stop string does not depend on how the text is cut into pieces") {
  const std::string text = "abababcabababdaababab";
  const std::vector<std::vector<std::string>> stop_sets = {
      {"ababd"}, {"abcab", "cab"}, {"ababababab", "aa"}, {"zzz", "b"}, {"babd", "ababd"}};
  for (const auto& stops : stop_sets) {
    StopMatcher at_once(stops);
    const std::string expected = stream(at_once, {text}).text;
    for (std::size_t size = 1; size < text.size(); ++size) {
      std::vector<std::string> pieces;
      for (std::size_t i = 0; i < text.size(); i += size) pieces.push_back(text.substr(i, size));
      StopMatcher matcher(stops);
      CHECK(stream(matcher, pieces).text == expected);
      CHECK(matcher.hit() == at_once.hit());
    }
  }
}

TEST_CASE("a long stop string over a long text of one character takes no more than a few steps a byte") {
  StopMatcher matcher({std::string(100000, 'a') + "b"});
  std::size_t out = 0;
  for (int i = 0; i < 20; ++i) out += matcher.push(std::string(50000, 'a')).size();
  out += matcher.flush().size();
  CHECK(out == 1000000);
}
