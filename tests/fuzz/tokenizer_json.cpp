// Fuzzes the reader of tokenizer.json: a file is refused with an error, or makes a tokenizer that encodes any text and decodes
// any ids.
#include <nihao/text/tokenizer_json.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

using namespace nihao;

// The file, a zero byte, a text.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(input.find('\0'), size);
  const auto json = parse_json(input.substr(0, end), 32);
  if (!json) return 0;
  const auto tokenizer = tokenizer_from_json(*json, *json, *json);  // its keys are those of none of the others
  if (!tokenizer) return 0;
  const std::string_view text = input.substr(std::min(end + 1, size));
  for (const bool parse_special : {false, true}) {
    const auto ids = tokenizer->encode(text, {.parse_special = parse_special});
    if (!ids) __builtin_trap();
    for (const TokenId id : *ids)
      if (!tokenizer->vocabulary().contains(id)) __builtin_trap();
    static_cast<void>(tokenizer->decode(*ids));
  }
  return 0;
}
