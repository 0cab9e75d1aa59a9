// C16, the whole forward: every station of one pass in the order in which it happens, seen by an observer. The observer is a
// template parameter of the pass; without one the code is as if there were none. Read: models/decoder.hpp (forward),
// layers/block.hpp, layers/attention.hpp, layers/ffn.hpp, device/observer.hpp.
#include "station.hpp"

#include <nihao/sampling/sampler.hpp>

#include <cmath>

namespace {

// Prints what it sees. Nothing else is needed to be an observer: `active` and `see`.
class Narrator {
 public:
  static constexpr bool active = true;

  void see(const nihao::Seen& seen) {
    if (seen.values.rows() == 0) return;
    total_.bytes += seen.work.bytes, total_.flops += seen.work.flops;
    ++stations_;
    if (seen.layer <= 0 || seen.name == "hidden") show(seen);
  }

  [[nodiscard]] nihao::Work total() const { return total_; }
  [[nodiscard]] std::size_t stations() const { return stations_; }

 private:
  static void show(const nihao::Seen& seen) {
    const std::size_t rows = seen.values.rows(), cols = seen.values.cols();
    double squares = 0, largest = -1;
    std::size_t row = 0, col = 0;
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < cols; ++c) {
        const double v = static_cast<double>(seen.values(r, c));
        squares += v * v;
        if (std::abs(v) > largest) largest = std::abs(v), row = r, col = c;
      }
    const auto number = [](double n, double unit, const char* name) {
      return n > 0 ? fmt::format("{:8.1f} {}", n / unit, name) : std::string(10, ' ');
    };
    fmt::print("  {:<9}{:<20}[{}, {:5}]  rms {:8.4f}  largest {:10.4f} at [{}, {:4}] {}{:>15}  last row {}\n",
               seen.layer < 0 ? "" : fmt::format("layer {}", seen.layer), seen.name, rows, cols,
               std::sqrt(squares / static_cast<double>(rows * cols)), largest, row, col,
               number(static_cast<double>(seen.work.bytes), 1e3, "kB"),
               number(static_cast<double>(seen.work.flops), 1e6, "MFLOP"), station::head(seen.values.row(rows - 1), 3));
  }

  nihao::Work total_;
  std::size_t stations_ = 0;
};

nihao::Expected<void> tell(const station::Model& m) {
  const nihao::Config& c = m.config();
  fmt::print(
      "C16 the whole forward: {} tokens of \"{}\" through {} layers ({}, d_model {}, {} heads, {} kv heads, d_ff {}, vocabulary "
      "{})\n\n"
      "  x = embedding(ids)\n"
      "  for each layer:  x += W_o attention(rope(W_q n), rope(W_k n), W_v n)   with n = rmsnorm(x)\n"
      "                   x += W_down (silu(W_gate n) * (W_up n))               with n = rmsnorm(x)\n"
      "  logits = W_head rmsnorm(x)\n\n"
      "Shapes are [tokens, values]; bytes are those of weights and cache. Layer 0 in full, then\nthe residual stream x after "
      "each layer.\n",
      m.ids.size(), station::prompt, c.layers.size(), c.architecture, c.d_model, c.heads, c.kv_heads, c.d_ff, c.vocab);
  Narrator narrator;
  NIHAO_TRY(const auto logits, station::forward(m, narrator));

  // The same pass without an observer: the sums that fusion never stores apart come out the same.
  NIHAO_TRY(const auto context, m.model.context({.positions = 64, .kv = nihao::KvType::f32}));
  const nihao::SequenceTokens all{0, m.ids};
  NIHAO_TRY(const auto unseen, context->step(std::span(&all, 1)));
  const bool equal = std::equal(logits.begin(), logits.end(), unseen.row(0).begin(), unseen.row(0).end());

  const nihao::Work work = narrator.total();
  fmt::print(
      "\n{} tensors seen. Read {:.1f} MB, computed {:.1f} MFLOP: {:.1f} operations a byte. Unobserved, the logits are {}.\n",
      narrator.stations(), static_cast<double>(work.bytes) / 1e6, static_cast<double>(work.flops) / 1e6,
      static_cast<double>(work.flops) / static_cast<double>(work.bytes), equal ? "the same to the bit" : "OTHERS");
  NIHAO_TRY(auto greedy, nihao::SamplerChain::parse("", logits.size()));
  NIHAO_TRY(const auto drawn, greedy.sample(logits, m.ids));
  static_cast<void>(drawn);
  std::vector<nihao::TokenProbability> top(greedy.probabilities().begin(), greedy.probabilities().end());
  std::partial_sort(top.begin(), top.begin() + 5, top.end(), [](const auto& a, const auto& b) { return a.p > b.p; });
  fmt::print("The likeliest next tokens:");
  for (std::size_t i = 0; i < 5; ++i)
    fmt::print("  {} [{}] {:.4f} ({:.1f} %)", top[i].id, m.shown(top[i].id), logits[static_cast<std::size_t>(top[i].id)],
               static_cast<double>(top[i].p) * 100);
  fmt::print("\n");
  if (!equal) return nihao::Error{nihao::ErrorCode::mismatch, "watching changed the logits"};
  return {};
}

}  // namespace

int main(int argc, char** argv) { return station::run(argc, argv, tell); }
