// C07, the QKV projection: three matrices make of each token's vector what it looks for (query), what it is found by (key), and
// what it hands over (value). Read: layers/attention.hpp, kernels/matmul.hpp, kernels/cpu/tile.hpp, kernels/cpu/matmul.inl.
#include "station.hpp"

#include <nihao/format/registry.hpp>
#include <nihao/kernels/cpu/quantize_rows.hpp>

#include <cmath>

namespace {

nihao::Expected<void> tell(const station::Model& m) {
  const nihao::Config& c = m.config();
  const std::size_t tokens = m.ids.size(), d = c.d_model;
  station::Kept exact;
  NIHAO_TRY(const auto logits, station::forward(m, exact));
  const auto h = exact.at("input_norm", 0), q = exact.at("q_proj", 0), k = exact.at("k_proj", 0), v = exact.at("v_proj", 0);
  if (h.rows() == 0)
    return nihao::Error{nihao::ErrorCode::unsupported, "this station needs a model that norms before its layers"};

  fmt::print(
      "C07 QKV projection in layer 0, for the {} tokens of \"{}\"\n\n1. y = x W^T, three times on the same x (the normed hidden "
      "state):\n",
      tokens, station::prompt);
  std::size_t bytes = 0, rows = 0;
  const std::pair<const char*, nihao::MatrixView<const float>> projections[] = {{"q", q}, {"k", k}, {"v", v}};
  for (const auto& [name, y] : projections) {
    const nihao::TensorInfo& w = *m.model.tensors().find(fmt::format("blk.0.attn_{}.weight", name));
    bytes += w.bytes.size();
    rows += w.rows();
    fmt::print("    {} [{} tokens, {}] = x [{}, {}] * W{}^T, W{} [{}, {}] as {}: {:6} bytes; {} heads of {}\n", name, y.rows(),
               y.cols(), h.rows(), h.cols(), name, name, w.rows(), w.cols(), nihao::format_info(w.format).name, w.bytes.size(),
               y.cols() / c.head_dim, c.head_dim);
  }
  const double flops = 2.0 * static_cast<double>(rows * d);
  fmt::print("   {:.0f} operations a token (a multiplication and an addition for each weight), {} bytes of weights for a step:\n",
             flops, bytes);
  for (const std::size_t n : {std::size_t{1}, tokens, std::size_t{512}})
    fmt::print("    a step of {:3} tokens: {:7.1f} operations for each byte read\n", n,
               flops * static_cast<double>(n) / static_cast<double>(bytes));
  fmt::print(
      "   One token waits for memory; hundreds wait for arithmetic. That is the difference between decode and prefill.\n\n");

  const std::size_t t = tokens - 1;
  const nihao::TensorInfo& wq = *m.model.tensors().find("blk.0.attn_q.weight");
  std::vector<float> w(d);
  nihao::dequantize_row(wq.format, wq.bytes.first(nihao::row_bytes(wq.format, d)), w);
  fmt::print("2. One number of it: q[{}, 0] = sum over {} k of x[{}, k] * Wq[0, k]\n", t, d, t);
  double sum = 0;
  if (const nihao::TensorInfo* bias = m.model.tensors().find("blk.0.attn_q.bias")) {  // Qwen 2 adds one
    std::vector<float> b(bias->elements());
    nihao::dequantize_row(bias->format, bias->bytes, b);
    fmt::print("    starting from the bias {:.4f}\n", sum = static_cast<double>(b[0]));
  }
  for (std::size_t i = 0; i < d; ++i) {
    sum += static_cast<double>(h(t, i)) * static_cast<double>(w[i]);
    if (i < 3 || i + 1 == d) fmt::print("    k = {:3}  {:8.4f} * {:8.4f}  sum so far {:8.4f}\n", i, h(t, i), w[i], sum);
  }
  fmt::print("   By hand (in double) {:.6f}; the exact kernel, sixteen rows of W side by side in f32: {:.6f}\n\n", sum, q(t, 0));

  // The fast mode rounds x to int8 in blocks of 32, so that sixteen rows of four-bit codes meet it in integer dot products.
  NIHAO_TRY(auto fast, nihao::load(m.path));
  station::Model quick{m.path, std::move(fast), m.ids};
  station::Kept rounded;
  NIHAO_TRY(const auto fast_logits, station::forward(quick, rounded));
  const auto x = h.row(t).first(nihao::activation_block);
  float most = 0;
  for (const float value : x) most = std::max(most, std::abs(value));
  const float scale = most / 127;
  fmt::print(
      "3. Fast mode: x is rounded to int8 first, in blocks of {} with one scale d = max|x| / 127.\n"
      "    block 0 of x[{}]: max|x| = {:.4f}, d = {:.6f}\n    x     {}\n    q = ",
      nihao::activation_block, t, most, scale, station::head(x, 6));
  for (std::size_t i = 0; i < 6; ++i) fmt::print(" {:.0f}", std::nearbyint(x[i] / scale));
  fmt::print(" ...\n    d * q ");
  for (std::size_t i = 0; i < 6; ++i) fmt::print(" {:.4f}", scale * std::nearbyint(x[i] / scale));
  const auto q8 = rounded.at("q_proj", 0);
  double error = 0, size = 0;
  for (std::size_t r = 0; r < q.rows(); ++r)
    for (std::size_t i = 0; i < q.cols(); ++i) {
      error += std::pow(static_cast<double>(q8(r, i) - q(r, i)), 2);
      size += std::pow(static_cast<double>(q(r, i)), 2);
    }
  fmt::print(" ...\n   q[{}, 0] is then {:.6f}; over all of q the difference is {:.2f} % of its size.\n", t, q8(t, 0),
             100 * std::sqrt(error / size));
  if (!(std::abs(sum - static_cast<double>(q(t, 0))) < 1e-3 * (1 + std::abs(sum))))
    return nihao::Error{nihao::ErrorCode::mismatch, "the sum by hand and the kernel disagree"};
  return {};
}

}  // namespace

int main(int argc, char** argv) { return station::run(argc, argv, tell); }
