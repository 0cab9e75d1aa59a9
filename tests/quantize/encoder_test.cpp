#include "nihao/files/safetensors.hpp"
#include "nihao/quantize/quantize_row.hpp"
#include "support/data.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <random>
#include <string>
#include <vector>

using namespace nihao;

namespace {

constexpr FormatId written[] = {FormatId::Q8_0,   FormatId::Q4_0,   FormatId::Q4_1, FormatId::Q5_0,
                                FormatId::Q5_1,   FormatId::Q4_K,   FormatId::Q5_K, FormatId::Q6_K,
                                FormatId::IQ4_NL, FormatId::IQ4_XS, FormatId::MXFP4};

std::vector<float> decoded(FormatId id, std::span<const float> x, std::span<const float> w = {}) {
  std::vector<std::byte> row(row_bytes(id, x.size()));
  quantize_row(id, x, w, row);
  std::vector<float> values(x.size());
  dequantize_row(id, row, values);
  return values;
}
double loss(std::span<const float> x, std::span<const float> y, std::span<const float> w = {}) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double e = static_cast<double>(x[i]) - static_cast<double>(y[i]);
    sum += e * e * (w.empty() ? 1.0 : static_cast<double>(w[i]));
  }
  return sum;
}
std::vector<float> draws(std::size_t n, unsigned seed, float scale = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> x(n);
  for (float& v : x) v = normal(random);
  return x;
}

}  // namespace

TEST_CASE("every encoder loses no more than ggml's on the same blocks") {
  const auto path = test::data("golden/quant/blocks/golden.safetensors");
  if (!path) NIHAO_SKIP("golden/quant/blocks");
  const auto golden = Safetensors::open(path->string());
  REQUIRE_MESSAGE(golden.has_value(), (golden ? "" : golden.error().message()));
  for (const FormatId id : written) {
    const std::string name(format_info(id).name);
    const auto x = *golden->values<float>(name + ".quantizer_input");
    auto theirs = *golden->values<float>(name + ".values");  // the first 8 blocks are ggml's own of this input
    theirs.resize(x.size());
    const double ours_rmse = std::sqrt(loss(x, decoded(id, x)) / static_cast<double>(x.size()));
    const double their_rmse = std::sqrt(loss(x, theirs) / static_cast<double>(x.size()));
    CHECK_MESSAGE(ours_rmse <= 1.02 * their_rmse, name << ": " << ours_rmse << " against " << their_rmse);
  }
}

TEST_CASE("what was quantized once is not changed by being quantized again") {
  for (const FormatId id : written) {
    const std::string name(format_info(id).name);
    const auto once = decoded(id, draws(8 * 256, 3, 0.02f));
    const auto twice = decoded(id, once);
    // One scale and 32 codes come back to the bit. Groups have many ways to write nearly the same.
    const bool exact =
        id == FormatId::Q8_0 || id == FormatId::Q4_0 || id == FormatId::Q5_0 || id == FormatId::IQ4_NL || id == FormatId::MXFP4;
    const double energy = loss(once, std::vector<float>(once.size(), 0.0f));
    CHECK_MESSAGE(loss(once, twice) <= (exact ? 0.0 : 1e-5 * energy), name << ": " << loss(once, twice) / energy);
  }
}

TEST_CASE("weights move the error away from where it matters") {
  auto x = draws(8 * 256, 5, 0.05f);
  std::vector<float> w(x.size());
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = i % 7 == 0 ? 100.0f : 1.0f;
  for (const FormatId id : written) {
    if (id == FormatId::Q8_0) continue;  // its scale is that of the largest
    const std::string name(format_info(id).name);
    CHECK_MESSAGE(loss(x, decoded(id, x, w), w) < loss(x, decoded(id, x), w), name);
  }
}

TEST_CASE("blocks of zeros, of one value, of one outlier and of tiny values decode to what they were") {
  for (const FormatId id : written) {
    const std::string name(format_info(id).name);
    const std::vector<float> zeros(256, 0.0f);
    CHECK_MESSAGE(decoded(id, zeros) == zeros, name);
    CHECK_MESSAGE(decoded(id, zeros, zeros) == zeros, name);
    for (const float value : {0.5f, -0.5f}) {
      const std::vector<float> same(256, value);
      CHECK_MESSAGE(loss(same, decoded(id, same)) <= 256 * 1e-4 * 0.25, name << " " << value);
    }
    for (const float largest : {65504.0f, -65504.0f, 1e-4f}) {
      std::vector<float> outlier(256, 0.0f);
      outlier[17] = largest;
      const auto back = decoded(id, outlier);
      const double energy = static_cast<double>(largest) * static_cast<double>(largest);
      CHECK_MESSAGE(loss(outlier, back) <= 0.03 * energy, name << " " << largest << ": " << loss(outlier, back) / energy);
    }
    const auto tiny = draws(256, 9, 1e-9f);
    for (const float v : decoded(id, tiny)) CHECK(std::isfinite(v));
    const std::vector<float> no_weight(256, 0.0f);
    for (const float v : decoded(id, draws(256, 11), no_weight)) CHECK(std::isfinite(v));
  }
}

TEST_CASE("floats are rounded to nearest") {
  const std::vector<float> x{1.0f, 1.0f / 3, -65504.0f, 0.0f};
  CHECK(decoded(FormatId::F32, x) == x);
  CHECK(decoded(FormatId::F16, x) == std::vector<float>{1.0f, to_float(to_f16(1.0f / 3)), -65504.0f, 0.0f});
  CHECK(decoded(FormatId::BF16, x)[1] == to_float(to_bf16(1.0f / 3)));
}

TEST_CASE("formats without an encoder say so") {
  CHECK(can_quantize(FormatId::Q4_K));
  CHECK(can_quantize(FormatId::F16));
  CHECK_FALSE(can_quantize(FormatId::IQ2_XXS));
  CHECK_FALSE(can_quantize(FormatId::Q8_K));
}
