// Fuzzes what a tokenizer is made of: tokens, types, scores and merges of a hostile file. It may refuse them; what it takes must
// encode and decode any text.
#include <nihao/text/tokenizer.hpp>
#include <nihao/text/tokenizer_gguf.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <span>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace nihao;
  std::string_view left(reinterpret_cast<const char*>(bytes), size);
  const auto number = [&]() -> std::uint8_t {
    if (left.empty()) return 0;
    const auto value = static_cast<std::uint8_t>(left.front());
    left.remove_prefix(1);
    return value;
  };
  const auto text = [&]() {
    const std::string_view taken = left.substr(0, number() % 12u);
    left.remove_prefix(std::min(left.size(), taken.size()));
    return taken;
  };
  TokenizerData data;
  const std::uint8_t flags = number();
  const std::uint8_t more = number();
  data.model = static_cast<TokenizerData::Model>((flags & 1) + (more & 1) * 2);
  data.lowercase = (more & 2) != 0;
  data.strip_accents = (more & 4) != 0;
  data.remove_extra_spaces = (more & 8) != 0;
  data.add_bos = (flags & 2) != 0;
  data.add_eos = (flags & 4) != 0;
  data.add_space_prefix = (flags & 8) != 0;
  data.clean_spaces = (flags & 16) != 0;
  data.whole_words_first = (flags & 32) != 0;
  data.nfc = (flags & 64) != 0;
  data.spelling = flags & 128 ? PieceSpelling::sentencepiece : PieceSpelling::byte_level;
  data.words = detail::pretokenizer_names[number() % std::size(detail::pretokenizer_names)].words;
  data.bos = static_cast<TokenId>(number()) - 2;
  data.eos = static_cast<TokenId>(number()) - 2;
  data.unknown = static_cast<TokenId>(number()) - 2;
  const std::size_t tokens = number();
  for (std::size_t i = 0; i < tokens && !left.empty(); ++i) {
    const std::uint8_t type = number();
    data.tokens.push_back(text());
    data.types.push_back(static_cast<TokenType>(type % 7));
    float score = 0;
    const std::uint32_t bits = std::uint32_t{type} << 24 | number();
    std::memcpy(&score, &bits, sizeof score);
    data.scores.push_back(score);
    if (type & 0x80) data.strip_right.push_back(static_cast<TokenId>(i));
  }
  const std::size_t merges = number() % 32;
  for (std::size_t i = 0; i < merges && data.tokens.size() > 1; ++i) {
    // Mostly pairs that are tokens, so that some vocabularies are taken.
    const std::string_view whole = data.tokens[number() % data.tokens.size()];
    const std::size_t cut = number() % (whole.size() + 1);
    data.merges.push_back({whole.substr(0, cut), whole.substr(cut)});
  }
  if (more & 16) {
    const std::size_t size = std::min<std::size_t>(left.size(), number() * 8u);
    data.charsmap = std::as_bytes(std::span(left.substr(0, size)));
    left.remove_prefix(std::min(left.size(), size));
  }
  const auto tokenizer = Tokenizer::from_data(data);
  if (!tokenizer) return 0;
  for (const bool parse_special : {false, true}) {
    const auto ids = tokenizer->encode(left, {.add_special = true, .parse_special = parse_special});
    if (!ids) __builtin_trap();
    for (const TokenId id : *ids) {
      if (!tokenizer->vocabulary().contains(id)) __builtin_trap();
    }
    static_cast<void>(tokenizer->decode(*ids, {.skip_special = parse_special}));
  }
  return 0;
}
