// C18, quantization: weights as small integers with a scale for each block of them. Decode waits for bytes, so a quarter of the
// bytes is up to four times the speed; what is lost is how far a value lies from its code.
// Read: format/q4_1.hpp, quantize/quantize_row.hpp, base/small_floats.hpp, kernels/activation.hpp.
#include "station.hpp"

#include <nihao/base/small_floats.hpp>
#include <nihao/quantize/quantize_row.hpp>

#include <cmath>

namespace {

double root_mean_square(std::span<const float> a, std::span<const float> b = {}) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double apart = static_cast<double>(a[i]) - (b.empty() ? 0.0 : static_cast<double>(b[i]));
    sum += apart * apart;
  }
  return std::sqrt(sum / static_cast<double>(a.size()));
}

nihao::Expected<void> tell(const station::Model& m) {
  const nihao::TensorInfo* const q = m.model.tensors().find("blk.0.attn_q.weight");
  if (q == nullptr || q->format != nihao::FormatId::Q4_1)
    return nihao::Error{nihao::ErrorCode::unsupported, "this station shows a file whose blk.0.attn_q.weight is Q4_1", m.path};
  const nihao::Q4_1::Block& block = nihao::as_blocks<nihao::Q4_1>(q->bytes)[0];
  float values[32];
  nihao::Q4_1::dequantize(block, values);
  const double d = static_cast<double>(nihao::to_float(block.d)), least = static_cast<double>(nihao::to_float(block.m));
  fmt::print("C18 quantization: {} is {} x {} in {}, {} bits a weight\n\n", q->name, q->rows(), q->cols(), nihao::Q4_1::name,
             nihao::bits_per_weight<nihao::Q4_1>);
  fmt::print("1. Its first block: 32 weights in {} bytes. d = {:.6f}, m = {:.6f}; value = d * code + m:\n", sizeof block, d,
             least);
  double worst = 0;
  for (std::size_t i = 0; i < 32; ++i) {
    const int code = i < 16 ? block.qs[i] & 15 : block.qs[i - 16] >> 4;
    const double by_hand = d * code + least;
    worst = std::max(worst, std::abs(by_hand - static_cast<double>(values[i])));
    if (i < 4)
      fmt::print("    code {:>2}   {:9.6f} * {:>2} + {:9.6f} = {:9.6f}   dequantize: {:9.6f}\n", code, d, code, least, by_hand,
                 static_cast<double>(values[i]));
  }
  fmt::print("    all 32 by hand: {}\n\n", worst < 1e-7 ? "the same" : "not the same");

  // Embeddings are stored finer than the rest (Q8_0), so they can show what coarser formats lose.
  const std::size_t width = m.config().d_model, kept = width / 256 * 256;
  const nihao::TensorInfo* const table = m.model.tensors().find("token_embd.weight");
  std::vector<float> row(width), rows;
  for (const nihao::TokenId id : m.ids) {
    const std::size_t bytes = nihao::row_bytes(table->format, width);
    nihao::dequantize_row(table->format, table->bytes.subspan(static_cast<std::size_t>(id) * bytes, bytes), row);
    rows.insert(rows.end(), row.begin(), row.begin() + static_cast<std::ptrdiff_t>(kept));
  }
  const double size = root_mean_square(rows);
  std::vector<float> again(rows.size());
  fmt::print("2. {} values of the prompt's embeddings, written in other formats and read back:\n    {:<12}{:>12}{:>16}\n",
             rows.size(), "", "bits/weight", "error, % of rms");
  for (const nihao::FormatId id :
       {nihao::FormatId::F16, nihao::FormatId::Q8_0, nihao::FormatId::Q6_K, nihao::FormatId::Q5_K, nihao::FormatId::Q4_K,
        nihao::FormatId::Q4_0, nihao::FormatId::IQ4_XS, nihao::FormatId::MXFP4}) {
    std::vector<std::byte> stored(nihao::row_bytes(id, rows.size()));
    nihao::quantize_row(id, rows, {}, stored);
    nihao::dequantize_row(id, stored, again);
    const nihao::FormatInfo info = nihao::format_info(id);
    fmt::print("    {:<12}{:>12.4f}{:>16.3f}\n", info.name,
               8.0 * static_cast<double>(info.block_bytes) / static_cast<double>(info.block_size),
               100 * root_mean_square(again, rows) / size);
  }
  // Eight-bit floats, with one scale for all: the largest value becomes the format's largest.
  float most = 0;
  for (const float v : rows) most = std::max(most, std::abs(v));
  const auto eight_bits = [&](std::string_view name, float largest, auto there_and_back) {
    const float scale = most / largest;
    for (std::size_t i = 0; i < rows.size(); ++i) again[i] = scale * there_and_back(rows[i] / scale);
    fmt::print("    {:<12}{:>12.4f}{:>16.3f}\n", name, 8.0, 100 * root_mean_square(again, rows) / size);
  };
  eight_bits("FP8 e4m3", 448.0f, [](float v) { return nihao::to_float(nihao::to_e4m3(v)); });
  eight_bits("FP8 e5m2", 57344.0f, [](float v) { return nihao::to_float(nihao::to_e5m2(v)); });
  fmt::print("    Q8_0 is what the file has: written again it loses nothing.\n");
  fmt::print("    e4m3 has 3 fraction bits and reaches 448, e5m2 has 2 and reaches 57344: range is paid for with precision.\n\n");

  // Activations are rounded too: int8 with a scale for each 32, so that products are sums of integers.
  station::Kept exact, fast;
  if (auto run = station::forward(m, exact); !run) return std::move(run).error();
  NIHAO_TRY(auto model, nihao::load(m.path));
  const station::Model rounded{m.path, std::move(model), m.ids};
  if (auto run = station::forward(rounded, fast); !run) return std::move(run).error();
  const auto a = exact.at("q_proj", 0), b = fast.at("q_proj", 0);
  fmt::print(
      "3. The same weights times activations in f32, and in int8 with a scale for each 32 (layer 0, q of the last token):\n"
      "    f32:  {}\n    int8: {}\n    apart by {:.2f} % of their rms\n",
      station::head(a.row(a.rows() - 1)), station::head(b.row(b.rows() - 1)),
      100 * root_mean_square(b.row(b.rows() - 1), a.row(a.rows() - 1)) / root_mean_square(a.row(a.rows() - 1)));
  if (!(worst < 1e-7)) return nihao::Error{nihao::ErrorCode::mismatch, "the block by hand is not what dequantize gives"};
  return {};
}

}  // namespace

int main(int argc, char** argv) { return station::run(argc, argv, tell); }
