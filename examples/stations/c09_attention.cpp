// C09, attention and the online softmax: a query is compared with every key before it, the scores become shares of 1, and the
// values are mixed in those shares. One pass over the keys is enough, with three running numbers. Read: kernels/attention.hpp
// (the definition), kernels/cpu/attention.hpp and .inl (the kernel), trace/recorder.hpp (who watches it).
#include "station.hpp"

#include <nihao/kernels/cpu/attention.hpp>

#include <cmath>

namespace {

/// A longer text, of which the recorder keeps what the kernel's softmax was after each tile.
nihao::Expected<void> tell_tiles(const station::Model& m) {
  std::string text;
  for (int i = 1; i <= 25; ++i) text += fmt::format("{} times {} is {}. {}\n", i, i, i * i, station::prompt);
  NIHAO_TRY(const auto ids, m.tokenizer().encode(text));
  station::Kept kept{nihao::Recorder({.attention_tiles = true})};
  const nihao::ObserverRef observer(kept);
  NIHAO_TRY(const auto context, m.model.context({.positions = 1024}));
  const nihao::SequenceTokens all{0, ids};
  NIHAO_CHECK(context->step(std::span(&all, 1), &observer));
  const auto tiles = kept.at("attn_tiles", 0);  // [heads * tokens, tiles * 3]
  const std::size_t t = ids.size() - 1, head = 0;
  fmt::print(
      "\n6. The kernel itself, {} positions at a time, on a text of {} tokens: its m, l and correction for the last token,\n"
      "   layer 0, head {}. Every {} positions a row starts anew; the parts are merged in the same way.\n",
      nihao::attention_tile, ids.size(), head, nihao::attention_split);
  for (std::size_t tile = 0; 3 * tile < tiles.cols(); ++tile) {
    const auto state = tiles.row(head * ids.size() + t).subspan(3 * tile, 3);
    fmt::print("    to p = {:3}   m = {:8.4f}   l = {:9.4f}   correction {:.4f}\n",
               std::min((tile + 1) * nihao::attention_tile, ids.size()) - 1, state[0], state[1], state[2]);
  }
  return {};
}

nihao::Expected<void> tell(const station::Model& m) {
  const nihao::Config& c = m.config();
  station::Kept kept;
  NIHAO_TRY(const auto logits, station::forward(m, kept));
  const std::size_t d = c.head_dim, tokens = m.ids.size(), t = tokens - 1, head = 0;
  const auto q = kept.at("q_after_rope", 0), k = kept.at("k_after_rope", 0), v = kept.at("v_proj", 0),
             out = kept.at("attn_heads_concat", 0);
  if (q.rows() != tokens)
    return nihao::Error{nihao::ErrorCode::unsupported, "this model's attention names its tensors otherwise"};

  fmt::print("C09 attention, layer 0, head {}: the query of t = {} ({}) looks at the {} tokens of \"{}\"\n\n", head, t,
             m.shown(m.ids[t]), tokens, station::prompt);
  fmt::print("1. A score for each position: s_p = q . k_p / sqrt({}) = q . k_p * {:.4f}\n", d, c.attention_scale);
  std::vector<double> score(tokens), share(tokens);
  double most = -INFINITY, total = 0;
  for (std::size_t p = 0; p < tokens; ++p) {
    for (std::size_t i = 0; i < d; ++i) score[p] += static_cast<double>(q(t, head * d + i)) * static_cast<double>(k(p, i));
    most = std::max(most, score[p] *= static_cast<double>(c.attention_scale));
  }
  for (std::size_t p = 0; p < tokens; ++p) total += share[p] = std::exp(score[p] - most);
  fmt::print("2. Softmax in two passes: the largest score is {:.4f}, the sum of e^(s - largest) is {:.4f}\n", most, total);
  for (std::size_t p = 0; p < tokens; ++p) {
    share[p] /= total;
    fmt::print("    p = {}  {:<10} s = {:8.4f}   share {:6.2f} %  {}\n", p, m.shown(m.ids[p]), score[p], 100 * share[p],
               std::string(static_cast<std::size_t>(40 * share[p] + 0.5), '#'));
  }

  // Milakov and Gimelshein 2018: whenever a larger score comes, all that was summed so far is made smaller by e^(old - new).
  fmt::print(
      "\n3. The same in one pass. State: running maximum m, denominator l, weighted sum of values o. For each score s:\n"
      "    m' = max(m, s)   correction = e^(m - m')   l = l * correction + e^(s - m')   o = o * correction + e^(s - m') * v\n");
  double running = -INFINITY, denominator = 0;
  std::vector<double> sum(d);
  for (std::size_t p = 0; p < tokens; ++p) {
    const double larger = std::max(running, score[p]), correction = std::exp(running - larger),
                 weight = std::exp(score[p] - larger);
    denominator = denominator * correction + weight;
    for (std::size_t i = 0; i < d; ++i) sum[i] = sum[i] * correction + weight * static_cast<double>(v(p, i));
    fmt::print("    p = {}  s = {:8.4f}  m {:8.4f} -> {:8.4f}  correction {:.4f}  l = {:.4f}  o[0] = {:8.4f}{}\n", p, score[p],
               running, larger, correction, denominator, sum[0], running < larger && p > 0 ? "  <- a new maximum" : "");
    running = larger;
  }
  fmt::print("   At the end m = {:.4f} and l = {:.4f}: those of the two passes. No row of scores was ever stored.\n\n", running,
             denominator);

  double worst = 0, two_pass = 0;
  for (std::size_t i = 0; i < d; ++i)
    worst = std::max(worst, std::abs(sum[i] / denominator - static_cast<double>(out(t, head * d + i))));
  for (std::size_t p = 0; p < tokens; ++p) two_pass += share[p] * static_cast<double>(v(p, 0));
  fmt::print(
      "4. The head's output is o / l, {} values. The first: two passes {:.6f}, one pass {:.6f}, the library's kernel {:.6f}\n"
      "   (it takes {} positions at a time, several queries side by side). Farthest apart in any value: {:.1e}\n\n",
      d, two_pass, sum[0] / denominator, out(t, head * d), nihao::attention_tile, worst);

  fmt::print("5. No token looks ahead. What each token of the prompt gives to each, in percent:\n");
  for (std::size_t row = 0; row < tokens; ++row) {
    std::vector<double> shares(row + 1);
    double sum_of_row = 0;
    for (std::size_t p = 0; p <= row; ++p) {
      double s = 0;
      for (std::size_t i = 0; i < d; ++i) s += static_cast<double>(q(row, head * d + i)) * static_cast<double>(k(p, i));
      sum_of_row += shares[p] = std::exp(s * static_cast<double>(c.attention_scale));
    }
    fmt::print("    {:<10}", m.shown(m.ids[row]));
    for (const double s : shares) fmt::print("{:7.1f}", 100 * s / sum_of_row);
    fmt::print("\n");
  }
  NIHAO_CHECK(tell_tiles(m));
  if (!(worst < 1e-4)) return nihao::Error{nihao::ErrorCode::mismatch, "the softmax by hand and the kernel disagree"};
  return {};
}

}  // namespace

int main(int argc, char** argv) { return station::run(argc, argv, tell); }
