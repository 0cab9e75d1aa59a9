// A chain as text, then logits and a history from any bytes: refused with an error that says where, or a token of the vocabulary,
// drawn again the same from the same seed.
#include "nihao/sampling/sampler.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>

using namespace nihao;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const std::string_view text = all.substr(0, all.find('\0'));
  const std::string_view rest = all.substr(std::min(all.size(), text.size() + 1));
  // Logits are the floats of the bytes, repeated into a vocabulary that is large enough for groups.
  std::vector<float> logits(300 + rest.size() % 200, 0.5f);
  const std::size_t floats = rest.size() / sizeof(float);
  for (std::size_t i = 0; i < logits.size() && floats > 0; ++i)
    std::memcpy(&logits[i], rest.data() + i % floats * sizeof(float), sizeof(float));
  std::vector<TokenId> history(rest.size());
  for (std::size_t i = 0; i < rest.size(); ++i) history[i] = static_cast<signed char>(rest[i]) % 16;
  const std::vector<TokenId> ends{1, 7};
  auto once = SamplerChain::parse(text, logits.size(), 5, ends), twice = SamplerChain::parse(text, logits.size(), 5, ends);
  if (once.has_value() != twice.has_value()) std::abort();
  if (!once) {
    if (once.error().what.empty() || once.error().where.empty()) std::abort();
    return 0;
  }
  for (int step = 0; step < 4; ++step) {
    const auto a = once->sample(logits, history, history.size() / 2), b = twice->sample(logits, history, history.size() / 2);
    if (a.has_value() != b.has_value()) std::abort();
    if (!a) {
      if (a.error().code != ErrorCode::numeric || a.error().where.empty()) std::abort();
      return 0;
    }
    if (*a != *b || *a < 0 || static_cast<std::size_t>(*a) >= logits.size()) std::abort();
    if (logits[static_cast<std::size_t>(*a)] == -std::numeric_limits<float>::infinity()) std::abort();
    double sum = 0;
    for (const TokenProbability& t : once->probabilities()) sum += static_cast<double>(t.p);
    if (!(sum > 0.999 && sum < 1.001)) std::abort();
    history.push_back(*a);
  }
  return 0;
}
