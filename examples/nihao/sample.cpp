// nihao sample: one token from a file of logits, by a sampler chain.
#include "commands.hpp"

#include <nihao/files/safetensors.hpp>

#include <fmt/core.h>

#include <algorithm>

namespace nihao::program {

namespace {

struct SampleFlags {
  std::string logits, chain;
  std::vector<TokenId> history, ends;
  std::size_t prompt = 0;
  std::uint64_t seed = 0;
  bool json = false;
};

// The last row of tensor "logits", [vocabulary] or [positions, vocabulary].
Expected<std::vector<float>> last_row(const std::string& path) {
  NIHAO_TRY(const Safetensors file, Safetensors::open(path));
  const SafetensorsEntry* entry = file.find("logits");
  if (entry == nullptr) return Error{ErrorCode::missing, "the file has no tensor \"logits\"", path};
  const std::vector<std::uint64_t>& shape = entry->shape;
  if (shape.empty() || shape.size() > 2 || entry->elements() == 0)
    return Error{ErrorCode::mismatch, "tensor \"logits\" is not [vocabulary] or [positions, vocabulary]", path};
  auto values = file.values<float>("logits");
  if (!values) return std::move(values).error().in(path);
  values->erase(values->begin(), values->end() - static_cast<std::ptrdiff_t>(shape.back()));
  return values;
}

Expected<int> sample(const SampleFlags& flags) {
  NIHAO_TRY(const std::vector<float> logits, last_row(flags.logits));
  NIHAO_TRY(SamplerChain chain, SamplerChain::parse(flags.chain, logits.size(), flags.seed, flags.ends));
  chain.seek(flags.history.size() - std::min(flags.prompt, flags.history.size()));
  NIHAO_TRY(const TokenId id, chain.sample(logits, flags.history, flags.prompt));
  std::vector<TokenProbability> left(chain.probabilities().begin(), chain.probabilities().end());
  std::sort(left.begin(), left.end(), [](const auto& a, const auto& b) { return a.p > b.p || (a.p == b.p && a.id < b.id); });
  if (flags.json) {
    Json probabilities(Json::value_t::array);
    for (const TokenProbability& t : left) probabilities.push_back({{"id", t.id}, {"p", t.p}});
    print_json({{"probabilities", std::move(probabilities)}, {"id", id}});
    return 0;
  }
  constexpr std::size_t shown = 10;
  for (const TokenProbability& t : std::span(left).first(std::min(shown, left.size())))
    fmt::print("{:>7}  {:.6f}{}\n", t.id, t.p, t.id == id ? "  chosen" : "");
  if (left.size() > shown) fmt::print("and {} more; chosen: {}\n", left.size() - shown, id);
  return 0;
}

}  // namespace

void add_sample(Commands& commands) {
  const auto flags = std::make_shared<SampleFlags>();
  CLI::App& app =
      commands.add("sample", "One token from a file of logits, by a sampler chain", [flags] { return sample(*flags); });
  app.add_option("--logits", flags->logits,
                 "a safetensors file with tensor \"logits\", [vocabulary] or [positions, vocabulary]: its last row")
      ->type_name("F")
      ->required()
      ->check(not_empty());
  app.add_option("--chain", flags->chain,
                 "the chain, such as \"top_k=40;min_p=0.05;temperature=0.8\"; without a selector it draws")
      ->type_name("CHAIN")
      ->required()
      ->check(valid_chain());
  add_list<TokenId>(app, "--history", "ID,...", flags->history, "the tokens so far", 0, INT32_MAX);
  app.add_option("--prompt", flags->prompt, "how many of the history are the prompt, for stages that look at one part of it")
      ->type_name("N")
      ->transform(within(0, 1 << 28))
      ->capture_default_str();
  add_list<TokenId>(app, "--ends", "ID,...", flags->ends, "the tokens that min_tokens masks, where the chain names none", 0,
                    INT32_MAX);
  app.add_option("--seed", flags->seed, "same seed, same token")
      ->type_name("N")
      ->transform(within(std::uint64_t{0}, UINT64_MAX))
      ->capture_default_str();
  app.add_flag("--json", flags->json, "print one JSON document");
}

}  // namespace nihao::program
