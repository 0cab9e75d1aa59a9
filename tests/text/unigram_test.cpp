// SentencePiece's unigram model, its normalizer and character map. Expected pieces are those of sentencepiece 0.2.3 with the same
// pieces and scores.
#include <nihao/text/charsmap.hpp>
#include <nihao/text/tokenizer.hpp>

#include <doctest/doctest.h>

#include "text/random.hpp"
#include "text/tiny_vocabulary.hpp"

#include <cstring>
#include <map>
#include <string>
#include <vector>

using namespace nihao;

namespace {

std::string unigram_pieces(const test::TinyVocabulary& v, std::string_view text) {
  const auto tokenizer = Tokenizer::from_data(v.data);
  REQUIRE_MESSAGE(tokenizer.has_value(), tokenizer.error().message());
  std::string out;
  const auto ids = tokenizer->encode(text, {.add_special = false});
  REQUIRE(ids.has_value());
  for (const TokenId id : *ids) out.append(out.empty() ? "" : "|").append(tokenizer->piece(id));
  return out;
}

/// A character map's blob of two rules, with Darts-clone's units: 'a' becomes `by`, and "ab" becomes `by` from its second byte
/// on.
std::string two_rules(std::string_view by) {
  std::vector<std::uint32_t> units(1024);
  const auto unit = [](std::uint32_t offset, bool value, std::uint32_t label) {
    return offset << 10 | (value ? 1u << 8 : 0u) | label;
  };
  units[0] = unit(256, false, 0);                         // the root's children: 256 ^ label
  units[256 ^ 'a'] = unit((256 ^ 'a') ^ 512, true, 'a');  // its value is at 512, its children at 512 ^ label
  units[512] = 1u << 31;                                  // replaced by the text from 0 on
  units[512 ^ 'b'] = unit((512 ^ 'b') ^ 768, true, 'b');
  units[768] = 1u << 31 | 1;
  std::string blob(4 + units.size() * 4, '\0');
  const auto size = static_cast<std::uint32_t>(units.size() * 4);
  std::memcpy(blob.data(), &size, 4);
  std::memcpy(blob.data() + 4, units.data(), size);
  return blob.append(by) += '\0';
}

Expected<Charsmap> read_map(std::string_view blob) { return Charsmap::read(std::as_bytes(std::span(blob))); }

}  // namespace

TEST_CASE("unigram: the pieces with the greatest sum; spaces at the ends go, and of several one stays") {
  const auto v = test::tiny_unigram();
  CHECK(unigram_pieces(v, "lower  low ") == " low|er| low");
  CHECK(unigram_pieces(v, "aaaaaaa") == " |a|aa|aaaa");
  CHECK(unigram_pieces(v, "\u2581 low") == "  | low");  // U+2581 is no space until all is done
  CHECK(unigram_pieces(v, " ").empty());
  CHECK(unigram_pieces(v, "").empty());
}

TEST_CASE("unigram: characters without a piece are byte tokens, or one unknown token for all in a row, or nothing") {
  CHECK(unigram_pieces(test::tiny_unigram(), "\u00E9a") == " |\xC3|\xA9|a");
  auto v = test::tiny_unigram(false);
  CHECK(unigram_pieces(v, "x\u4F60xy low") == " |<unk>|\u4F60|<unk>| low");
  v.data.unknown = no_token;
  CHECK(unigram_pieces(v, "xyzlow") == " |low");
}

TEST_CASE("unigram: a byte that is not UTF-8 becomes U+FFFD") {
  CHECK(unigram_pieces(test::tiny_unigram(), "\xFFl") == " |\xEF|\xBF|\xBD|l");
}

TEST_CASE("unigram: a user-defined piece is better than any others in its place") {
  auto v = test::tiny_unigram(false);
  v.add("owe", TokenType::user_defined);
  const auto vocabulary = Vocabulary::build(PieceSpelling::sentencepiece, v.data.tokens, v.data.types);
  REQUIRE(vocabulary.has_value());
  const auto encoder = UnigramEncoder::build(*vocabulary, v.data.scores, v.data.unknown);
  REQUIRE(encoder.has_value());
  UnigramEncoder::Workspace work;
  std::vector<TokenId> ids;
  encoder->encode(*vocabulary, " lowe", ids, work);
  REQUIRE(ids.size() == 3);
  CHECK(vocabulary->piece(ids[0]) == " ");
  CHECK(vocabulary->piece(ids[1]) == "l");
  CHECK(vocabulary->piece(ids[2]) == "owe");
}

TEST_CASE("unigram: settling what every path passes changes nothing") {
  // The definition over the whole text at once, in floats from left to right as SentencePiece has it, against the encoder.
  test::Random random(9);
  for (int round = 0; round < 2000; ++round) {
    test::TinyVocabulary v;
    v.data.model = TokenizerData::Model::unigram;
    std::map<std::string, float> scores;
    for (unsigned n = 4 + random.below(14); n > 0; --n) {
      std::string piece;
      for (unsigned k = 1 + random.below(5); k > 0; --k) piece += static_cast<char>('a' + random.below(3));
      const float score = -1 - static_cast<float>(random.below(1 << 20)) / (1 << 18);
      if (scores.emplace(piece, score).second) v.add(piece, TokenType::normal, score);
    }
    float lowest = 0;
    for (const auto& entry : scores) lowest = std::min(lowest, entry.second);
    v.data.unknown = v.add("<unk>", TokenType::unknown);
    std::string text;
    for (unsigned n = random.below(60); n > 0; --n) text += static_cast<char>('a' + random.below(3));
    std::vector<float> best(text.size() + 1, -1e9f);
    std::vector<std::size_t> start(text.size() + 1);
    best[0] = 0;
    for (std::size_t end = 1; end <= text.size(); ++end) {
      for (std::size_t from = 0; from < end; ++from) {
        const auto piece = scores.find(text.substr(from, end - from));
        const bool unknown = piece == scores.end() && end - from == 1;
        if (!unknown && piece == scores.end()) continue;
        const float sum = best[from] + (unknown ? lowest - 10 : piece->second);
        if (sum > best[end]) best[end] = sum, start[end] = from;
      }
    }
    std::vector<std::string> cut;  // last first
    cut.reserve(text.size());
    bool unknown_after = false;
    for (std::size_t end = text.size(); end > 0; end = start[end]) {
      const std::string piece = text.substr(start[end], end - start[end]);
      const bool unknown = scores.find(piece) == scores.end();
      if (!(unknown && unknown_after)) cut.push_back(unknown ? "<unk>" : piece);
      unknown_after = unknown;
    }
    std::string expected;
    for (std::size_t i = cut.size(); i-- > 0;) expected.append(expected.empty() ? "" : "|").append(cut[i]);
    CAPTURE(text);
    CHECK(unigram_pieces(v, text) == expected);
  }
}

TEST_CASE("a character map replaces the longest rule's text; an index out of range replaces nothing") {
  const std::string blob = two_rules("xyz");
  const auto map = read_map(blob);
  REQUIRE_MESSAGE(map.has_value(), map.error().message());
  CHECK(map->match("ac").size == 1);
  CHECK(map->match("ac").by == "xyz");
  CHECK(map->match("abc").size == 2);
  CHECK(map->match("abc").by == "yz");
  CHECK(map->match("b").size == 0);
  CHECK(map->match("").size == 0);
  // Any damage to the units is without harm.
  test::Random random(3);
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = blob;
    for (int n = 0; n < 3; ++n) {
      const std::size_t used[] = {0, 256 ^ 'a', 512, 512 ^ 'b', 768};
      damaged[4 + used[random.below(5)] * 4 + random.below(4)] = static_cast<char>(random.below(256));
    }
    const auto other = read_map(damaged);
    REQUIRE(other.has_value());
    const auto match = other->match("abab");
    CHECK(match.size <= 4);
    CHECK(match.by.size() <= 3);
  }
}

TEST_CASE("a character map that is cut short or does not fit is an error") {
  const std::string blob = two_rules("xyz");
  CHECK(read_map("").has_value());
  CHECK(read_map(blob.substr(0, 3)).error().code == ErrorCode::truncated);
  CHECK(read_map(blob.substr(0, 100)).error().code == ErrorCode::truncated);
  CHECK(read_map(blob.substr(0, blob.size() - 1)).error().code == ErrorCode::malformed);  // a text without an end
  CHECK(read_map(two_rules(std::string(256, 'x'))).error().code == ErrorCode::malformed);
  std::string odd = blob;
  odd[0] = 3;
  CHECK(read_map(odd).error().code == ErrorCode::malformed);
}

TEST_CASE("a unigram vocabulary without as many scores as tokens is an error") {
  auto v = test::tiny_unigram();
  v.data.scores.pop_back();
  const auto tokenizer = Tokenizer::from_data(v.data);
  REQUIRE(!tokenizer.has_value());
  CHECK(tokenizer.error().code == ErrorCode::mismatch);
}
