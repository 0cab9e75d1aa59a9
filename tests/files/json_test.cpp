#include "nihao/files/json.hpp"

#include <doctest/doctest.h>
#include <string>

using namespace nihao;

TEST_CASE("JSON is read in the order of the text, and by path") {
  const auto json = parse_json(
      R"({"z": 1, "a": {"factor": 8.0, "list": [1, 2, {"deep": "x"}]}, "none": null, "t": true, "big": 18446744073709551615})");
  REQUIRE(json.has_value());
  CHECK(json->begin().key() == "z");
  CHECK(*json_get<float>(*json, "a.factor") == 8.0f);
  CHECK(*json_get<int>(*json, "a.factor") == 8);  // JSON has one kind of number
  CHECK(*json_get<double>(*json, "z") == 1.0);
  CHECK(*json_get<std::string>(*json, "a.list.2.deep") == "x");
  CHECK(*json_get<std::string_view>(*json, "a.list.2.deep") == "x");
  CHECK(*json_get<bool>(*json, "t"));
  CHECK(*json_get<std::uint64_t>(*json, "big") == UINT64_MAX);
  CHECK(*json_get_or<int>(*json, "none", 7) == 7);
  CHECK(*json_get_or<int>(*json, "a.nothing.at.all", 7) == 7);
  CHECK(json_find(*json, "") == &*json);
  CHECK(json_find(*json, "a.list.3") == nullptr);
  CHECK(json_find(*json, "a.list.-1") == nullptr);
  CHECK(json_find(*json, "z.1") == nullptr);
  CHECK(*json_array<int>(*parse_json("{\"x\": [1, 2, 3]}"), "x") == std::vector{1, 2, 3});
}

TEST_CASE("a JSON value of the wrong kind is an error that names its path") {
  const auto json =
      parse_json(R"({"a": {"n": -1, "s": "text", "x": [1, "two"], "o": {}}, "f": 1.5, "huge": 1e300, "none": null})");
  REQUIRE(json.has_value());
  CHECK(json_get<int>(*json, "a.q").error().message() == "a.q: not there");
  CHECK(json_get<unsigned>(*json, "a.n").error().message() == "a.n: wanted a non-negative integer that fits, found -1");
  CHECK(json_get<int>(*json, "a.s").error().message() == "a.s: wanted an integer that fits, found \"text\"");
  CHECK(json_get<std::string>(*json, "a.o").error().message() == "a.o: wanted a string, found an object");
  CHECK(json_get<bool>(*json, "none").error().message() == "none: wanted true or false, found null");
  CHECK(json_get<int>(*json, "f").error().code == ErrorCode::mismatch);
  CHECK(json_get<float>(*json, "huge").error().code == ErrorCode::mismatch);
  CHECK(json_get<std::int64_t>(*json, "huge").error().code == ErrorCode::mismatch);
  CHECK(json_get_or<int>(*json, "a.s", 7).error().code == ErrorCode::mismatch);
  CHECK(json_array<int>(*json, "a.x").error().message() == "a.x.1: wanted an integer that fits, found \"two\"");
  CHECK(json_array<int>(*json, "a.s").error().code == ErrorCode::mismatch);
}

TEST_CASE("text that is not JSON is an error that names the byte") {
  CHECK(parse_json("").error().code == ErrorCode::malformed);
  CHECK(parse_json("{\"a\" 1}").error().where == "byte 5");
  CHECK(parse_json("[1, 2").error().code == ErrorCode::malformed);
  CHECK(parse_json("[1] 2").error().code == ErrorCode::malformed);
  CHECK(parse_json("[1e999]").error().code == ErrorCode::malformed);
  CHECK(parse_json("[NaN]").error().code == ErrorCode::malformed);
  CHECK(parse_json("\"\xff\"").error().message().find("ill-formed UTF-8") != std::string::npos);
  CHECK(parse_json("{\"a\": 1, \"b\": 2, \"a\": 3}").error().what == "the key \"a\" is there twice");
  CHECK(parse_json(std::string_view("[1]\0", 4)).error().code == ErrorCode::malformed);
  CHECK(parse_json(std::string(1 << 20, '"')).error().message().size() < 500);
}

TEST_CASE("nesting stops the parse at the cap, whatever comes after") {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  CHECK(parse_json(nested(128)).has_value());
  CHECK(parse_json(nested(129)).error().code == ErrorCode::limit);
  CHECK(parse_json(nested(129)).error().message() == "byte 128: nested deeper than 128");
  CHECK(parse_json(std::string(10'000'000, '[')).error().code == ErrorCode::limit);
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  CHECK(parse_json(objects).error().code == ErrorCode::limit);
  CHECK(parse_json(nested(3), 2).error().code == ErrorCode::limit);
  CHECK(parse_json("7", 0).has_value());
}
