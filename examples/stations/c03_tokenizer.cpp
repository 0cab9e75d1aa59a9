// C03, the tokenizer: a text becomes bytes, bytes become words, and inside each word the best-ranked pair of neighbours is joined
// again and again. What no rule joins any more are the tokens, and a token's number is all that the model sees of it.
// Read: text/tokenizer.hpp, text/pretokenize.hpp, text/merge.hpp, text/bpe.hpp.
#include "station.hpp"

#include <nihao/files/gguf.hpp>
#include <nihao/text/pretokenize.hpp>
#include <nihao/text/tokenizer_gguf.hpp>

#include <map>

using nihao::TokenId;

namespace {

using Rules = std::map<std::pair<std::string, std::string>, std::size_t>;  // pair -> rank; a smaller rank goes first

void show(const std::vector<std::string>& parts) {
  for (const std::string& part : parts) fmt::print(" {}", part);
  fmt::print("\n");
}

// Sennrich et al. 2016, in its plainest form: n parts cost n^2 steps. The library's is linear in the length of a text.
std::size_t merge(std::vector<std::string>& parts, const Rules& rules) {
  for (std::size_t merges = 0;; ++merges) {
    std::size_t best = 0, rank = SIZE_MAX;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i)
      if (const auto rule = rules.find({parts[i], parts[i + 1]}); rule != rules.end() && rule->second < rank)
        best = i, rank = rule->second;
    if (rank == SIZE_MAX) return merges;
    fmt::print("    rank {:5}  {} + {}  gives ", rank, parts[best], parts[best + 1]);
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    show(parts);
  }
}

nihao::Expected<void> tell(const station::Model& m) {
  NIHAO_TRY(const auto file, nihao::Gguf::open(m.path));
  NIHAO_TRY(const auto data, nihao::tokenizer_data(file));
  if (data.model != nihao::TokenizerData::Model::byte_pair)
    return nihao::Error{nihao::ErrorCode::unsupported, "this station tells of byte-level BPE; the model has another tokenizer"};
  Rules rules;
  for (std::size_t i = 0; i < data.merges.size(); ++i)
    rules.emplace(std::pair(std::string(data.merges[i].left), std::string(data.merges[i].right)), i);

  fmt::print("C03 tokenizer: {} tokens, {} merge rules\n\n", data.tokens.size(), data.merges.size());
  fmt::print("1. The text is bytes (UTF-8): {} of them for \"{}\".\n   ", station::prompt.size(), station::prompt);
  for (const char c : station::prompt) fmt::print(" {:02x}", static_cast<unsigned char>(c));
  fmt::print("\n\n2. It is cut into words. No token ever reaches over a word's edge.\n   ");
  std::vector<std::string> words;
  nihao::pretokenize(data.words, station::prompt, [&](std::string_view word) { words.emplace_back(word); });
  for (const std::string& word : words) fmt::print(" [{}]", word);

  fmt::print(
      "\n\n3. In each word every byte is a token at first (the file spells each byte as a printable character), and the pair\n"
      "   whose rule has the smallest rank is joined, until no pair has a rule.\n");
  std::vector<TokenId> ids;
  std::size_t merges = 0;
  for (const std::string& word : words) {
    std::vector<std::string> parts;
    for (const char c : word)
      parts.emplace_back(
          data.tokens[static_cast<std::size_t>(m.tokenizer().vocabulary().byte_token(static_cast<std::uint8_t>(c)))]);
    fmt::print("  {} =", word);
    show(parts);
    merges += merge(parts, rules);
    for (const std::string& part : parts) {
      const auto token = std::find(data.tokens.begin(), data.tokens.end(), part);
      ids.push_back(static_cast<TokenId>(token - data.tokens.begin()));
    }
  }

  fmt::print("\n4. {} bytes - {} merges = {} tokens.\n", station::prompt.size(), merges, ids.size());
  for (const TokenId id : ids) {
    std::string bytes;
    for (const char c : m.tokenizer().piece(id)) bytes += fmt::format("{:02x} ", static_cast<unsigned char>(c));
    fmt::print("    id {:6}  {:<16}{}\n", id, bytes, m.shown(id));
  }
  fmt::print("\nids:");
  for (const TokenId id : m.ids) fmt::print(" {}", id);
  fmt::print("  (from nihao::Tokenizer: {})\n", ids == m.ids ? "the same" : "OTHERS");
  fmt::print("back: {}\n", m.tokenizer().decode(m.ids));
  if (ids != m.ids || m.tokenizer().decode(m.ids) != station::prompt)
    return nihao::Error{nihao::ErrorCode::mismatch, "the merges made by hand and the tokenizer disagree"};
  return {};
}

}  // namespace

int main(int argc, char** argv) { return station::run(argc, argv, tell); }
