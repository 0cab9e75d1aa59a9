// C06, RMSNorm and RoPE: before attention a token's vector is brought to unit size, and after the projection queries and keys are
// turned by an angle that grows with their position, so that their product knows how far apart they stand, and nothing else.
// Read: kernels/rms_norm.hpp, kernels/rope.hpp, layers/norm.hpp.
#include "station.hpp"

#include <nihao/format/registry.hpp>
#include <nihao/kernels/rms_norm.hpp>

#include <cmath>

namespace {

double mean_square(std::span<const float> x) {
  double sum = 0;
  for (const float v : x) sum += static_cast<double>(v) * static_cast<double>(v);
  return sum / static_cast<double>(x.size());
}
double dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

// How layer 0 turns: the frequencies of its pairs.
nihao::RopeFrequencies frequencies(const nihao::Config& c) {
  nihao::RopeFrequencies rope = nihao::rope_frequencies(c.ropes[c.layers[0].rope], c.head_dim);
  return rope;
}

void norm(const station::Model& m, const station::Kept& kept, std::size_t t) {
  const auto x = kept.at("embed").row(t), y = kept.at("input_norm", 0).row(t);
  std::vector<float> weight(x.size());
  const nihao::TensorInfo& stored = *m.model.tensors().find("blk.0.attn_norm.weight");
  nihao::dequantize_row(stored.format, stored.bytes, weight);
  const double mean = mean_square(x), scale = 1.0 / std::sqrt(mean + static_cast<double>(m.config().norm_eps));
  fmt::print("1. RMSNorm: y = x / sqrt(mean(x^2) + eps) * weight, each token by itself. Layer 0, token t = {}:\n", t);
  fmt::print("    x       {}  [{} values]\n    mean(x^2) = {:.6f}, eps = {:g}: every value is multiplied by 1/sqrt = {:.4f}\n",
             station::head(x), x.size(), mean, m.config().norm_eps, scale);
  fmt::print("    weight  {}\n    y       {}  so y[0] = {:.4f} * {:.4f} * {:.4f} = {:.4f}\n", station::head(weight),
             station::head(y), x[0], scale, weight[0], static_cast<double>(x[0]) * scale * static_cast<double>(weight[0]));
  std::vector<float> by_definition(x.size()), before_weight(x.size());
  nihao::reference::rms_norm(x, weight, m.config().norm_eps, by_definition);
  for (std::size_t i = 0; i < x.size(); ++i) before_weight[i] = static_cast<float>(static_cast<double>(x[i]) * scale);
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) worst = std::max(worst, std::abs(static_cast<double>(y[i] - by_definition[i])));
  fmt::print(
      "    mean square before {:.6f}, after (without the weight) {:.6f}; the kernel is within {:.1e} of the definition\n\n", mean,
      mean_square(before_weight), worst);
}

double rope(const station::Model& m, const station::Kept& kept, std::size_t t) {
  const nihao::Config& c = m.config();
  const nihao::RopeFrequencies rope = frequencies(c);
  const bool halves = c.rope_style == nihao::RopeStyle::halves;
  fmt::print("2. RoPE: a head of {} values is {} pairs; at position p pair i turns by p * f_i, f_i = {}^(-2i/{}).\n", c.head_dim,
             c.head_dim / 2, c.ropes[c.layers[0].rope].base, c.head_dim);
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}, std::size_t{8}, std::size_t{c.head_dim / 2 - 1}})
    fmt::print("    pair {:2}  f = {:.3e} radians a position: once round in {:.0f} positions\n", i, rope.frequency[i],
               2 * std::numbers::pi / rope.frequency[i]);

  const std::size_t partner = halves ? c.head_dim / 2 : 1;  // pair 0 is (0, 1), or (0, d/2): the file's kind says which
  const auto before = kept.at("q_before_rope", 0).row(t).first(c.head_dim),
             after = kept.at("q_after_rope", 0).row(t).first(c.head_dim);
  const double angle = static_cast<double>(t) * rope.frequency[0], x = static_cast<double>(before[0]),
               y = static_cast<double>(before[partner]);
  const double turned_x = x * std::cos(angle) - y * std::sin(angle), turned_y = x * std::sin(angle) + y * std::cos(angle);
  fmt::print("   The query of head 0 at t = {}, pair 0 = values (0, {}), angle {:.0f} * {:.0f} = {:.0f} radians:\n", t, partner,
             static_cast<double>(t), rope.frequency[0], angle);
  fmt::print("    ({:.4f}, {:.4f}) turns to ({:.4f}, {:.4f}); the kernel has ({:.4f}, {:.4f})\n", x, y, turned_x, turned_y,
             after[0], after[partner]);
  fmt::print("    a turn changes no length: |q| = {:.5f} before, {:.5f} after\n\n", std::sqrt(dot(before, before)),
             std::sqrt(dot(after, after)));
  return std::max(std::abs(turned_x - static_cast<double>(after[0])), std::abs(turned_y - static_cast<double>(after[partner])));
}

// The score of a query at position `at` and a key `distance` before it.
double score(const station::Model& m, std::span<const float> q, std::span<const float> k, std::int64_t at,
             std::int64_t distance) {
  const nihao::RopeFrequencies rope = frequencies(m.config());
  std::vector<float> a(q.begin(), q.end()), b(k.begin(), k.end()), cos(a.size() / 2), sin(a.size() / 2);
  nihao::rope_angles(rope, at, cos, sin);
  nihao::reference::rope(a, cos, sin, m.config().rope_style);
  nihao::rope_angles(rope, at - distance, cos, sin);
  nihao::reference::rope(b, cos, sin, m.config().rope_style);
  return dot(a, b);
}

nihao::Expected<void> tell(const station::Model& m) {
  station::Kept kept;
  NIHAO_TRY(const auto logits, station::forward(m, kept));
  if (m.model.tensors().find("blk.0.attn_norm.weight") == nullptr || kept.at("input_norm", 0).rows() == 0)
    return nihao::Error{nihao::ErrorCode::unsupported, "this station needs a model that norms before its layers"};
  fmt::print("C06 RMSNorm and RoPE, for the {} tokens of \"{}\"\n\n", m.ids.size(), station::prompt);
  const std::size_t last = m.ids.size() - 1;
  norm(m, kept, last);
  const double off = rope(m, kept, last);

  const auto q = kept.at("q_before_rope", 0).row(last).first(m.config().head_dim);
  const auto k = kept.at("k_before_rope", 0).row(0).first(m.config().head_dim);
  fmt::print("3. Why turn at all: the score of a query at position p with a key at p - n depends on n alone.\n{:>8}", "p =");
  for (const std::int64_t p : {100, 1000, 2000}) fmt::print("{:>12}", p);
  double worst = 0;
  for (const std::int64_t n : {0, 1, 6, 50}) {
    fmt::print("\n  n = {:2}", n);
    for (const std::int64_t p : {100, 1000, 2000}) {
      fmt::print("{:12.5f}", score(m, q, k, p, n));
      worst = std::max(worst, std::abs(score(m, q, k, p, n) - score(m, q, k, 100, n)));
    }
  }
  fmt::print("\n   Within a row the scores differ by at most {:.0e}, which is the rounding of floats.\n", worst);
  if (!(worst < 1e-3)) return nihao::Error{nihao::ErrorCode::mismatch, "scores depend on more than the distance"};
  if (!(off < 1e-3)) return nihao::Error{nihao::ErrorCode::mismatch, "the kernel turned the query otherwise"};
  return {};
}

}  // namespace

int main(int argc, char** argv) { return station::run(argc, argv, tell); }
