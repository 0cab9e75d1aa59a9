// What the program says with --json, and the model that its tests run.
#pragma once

#include "nihao/files/json.hpp"
#include "program/child.hpp"
#include "support/data.hpp"

namespace nihao::test {

/// The document that a command prints, which is all that it prints.
inline Json json_of(std::vector<std::string> arguments, const std::string& input = "") {
  arguments.push_back("--json");
  const auto result = run(arguments, input);
  CAPTURE(result.err);
  REQUIRE(result.status == 0);
  CHECK(result.out.ends_with('\n'));
  const auto json = parse_json(result.out);
  REQUIRE_MESSAGE(json.has_value(), result.out);
  return *json;
}

/// The path of the tiny llama in this format, or nothing if the data is not there.
inline std::string model(const char* format = "F32") {
  const auto path = data(std::string("golden/quant/gguf/") + format + ".gguf");
  return path ? path->string() : "";
}

}  // namespace nihao::test
