// The sampler goldens: logits, parameters and the expected probabilities.
#pragma once

#include "nihao/sampling/sampler.hpp"
#include "support/data.hpp"

#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

namespace nihao::test {

/// golden/samplers/: golden.json and the float tensors of golden.safetensors, all [20, n].
struct SamplerGoldens {
  nlohmann::json json;
  nlohmann::json header;
  std::string bytes;

  static std::optional<SamplerGoldens> open() {
    const auto json = data("golden/samplers/golden.json"), tensors = data("golden/samplers/golden.safetensors");
    if (!json || !tensors) return std::nullopt;
    SamplerGoldens g{nlohmann::json::parse(read_text(*json)), {}, read_text(*tensors)};
    std::uint64_t size = 0;
    std::memcpy(&size, g.bytes.data(), sizeof size);
    g.header = nlohmann::json::parse(g.bytes.substr(8, size));
    g.bytes.erase(0, 8 + size);
    return g;
  }

  [[nodiscard]] std::vector<float> row(const std::string& tensor, std::size_t i, std::size_t n) const {
    std::vector<float> out(n);
    const std::size_t at = header.at(tensor).at("data_offsets").at(0).get<std::size_t>() + i * n * sizeof(float);
    std::memcpy(out.data(), bytes.data() + at, n * sizeof(float));
    return out;
  }
};

/// Probabilities by token id, 0 for the tokens that are out.
inline std::vector<float> dense(std::span<const TokenProbability> probabilities, std::size_t n) {
  std::vector<float> out(n, 0.0f);
  for (const TokenProbability& t : probabilities) out[static_cast<std::size_t>(t.id)] = t.p;
  return out;
}

/// The largest difference, and 1 if the two do not keep the same tokens.
inline double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    worst = std::max(worst, static_cast<double>(std::abs(a[i] - b[i])));
    if ((a[i] > 0) != (b[i] > 0)) worst = 1;
  }
  return worst;
}

}  // namespace nihao::test
