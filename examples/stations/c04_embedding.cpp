// C04, the embedding: a token's number is a row of a table, and that row is the token's first vector. No arithmetic but
// unpacking. Read: kernels/cpu/ops.hpp (embed), format/q8_0.hpp, models/decoder.hpp.
#include "station.hpp"

#include <nihao/format/registry.hpp>

#include <cmath>

using nihao::TokenId;

namespace {

double dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}
// The cosine of the angle between two vectors: 1 the same direction, 0 nothing in common.
double cosine(std::span<const float> a, std::span<const float> b) { return dot(a, b) / std::sqrt(dot(a, a) * dot(b, b)); }

nihao::Expected<void> tell(const station::Model& m) {
  const nihao::TensorInfo* table = m.model.tensors().find("token_embd.weight");
  if (table == nullptr) return nihao::Error{nihao::ErrorCode::missing, "the file has no token_embd.weight"};
  const std::size_t width = table->cols(), row_bytes = nihao::row_bytes(table->format, width);
  const nihao::FormatInfo format = nihao::format_info(table->format);
  const auto stored = [&](TokenId id) { return table->bytes.subspan(static_cast<std::size_t>(id) * row_bytes, row_bytes); };
  const auto row = [&](TokenId id) {
    std::vector<float> values(width);
    nihao::dequantize_row(table->format, stored(id), values);
    return values;
  };

  fmt::print("C04 embedding: table [{} tokens, {} values], stored as {}\n\n", table->rows(), width, format.name);
  fmt::print(
      "1. A row is {} blocks of {} values in {} bytes each: {} bytes where floats would take {}. The table has {:.1f} MB.\n",
      width / format.block_size, format.block_size, format.block_bytes, row_bytes, 4 * width,
      static_cast<double>(table->bytes.size()) / 1e6);
  if (table->format == nihao::FormatId::Q8_0) {
    const auto& block = nihao::as_blocks<nihao::Q8_0>(stored(m.ids[0]))[0];
    const float d = to_float(block.d);
    fmt::print("   Q8_0: value = d * q. Of token {} the first block has d = {:.7f}, and its first value is d * {} = {:.6f}.\n",
               m.ids[0], d, block.q[0], d * static_cast<float>(block.q[0]));
  }

  fmt::print("\n2. x[t] = table[ids[t]], for the {} tokens of \"{}\":\n", m.ids.size(), station::prompt);
  station::Kept kept;
  NIHAO_TRY(const auto logits, station::forward(m, kept));
  const auto x = kept.at("embed");
  bool equal = x.rows() == m.ids.size();
  for (std::size_t t = 0; t < m.ids.size(); ++t) {
    auto values = row(m.ids[t]);
    for (float& v : values) v *= m.config().embedding_scale;  // Gemma scales by sqrt(d_model); 1 in the Llama family
    equal = equal && std::equal(values.begin(), values.end(), x.row(t).begin());
    fmt::print("    t = {}  row {:5}  {:<12} {}  length {:.3f}\n", t, m.ids[t], m.shown(m.ids[t]), station::head(x.row(t)),
               std::sqrt(dot(values, values)));
  }
  fmt::print("   This is hidden state 0, [{} tokens, {}]; the rows looked up by hand are {}.\n", x.rows(), x.cols(),
             equal ? "the same to the bit" : "NOT THE SAME");

  fmt::print("\n3. Directions mean something. The cosine of the angle between the prompt's tokens:\n{:>16}", "");
  for (const TokenId b : m.ids) fmt::print("{:>10}", b);
  for (const TokenId a : m.ids) {
    fmt::print("\n{:>16}", a);
    for (const TokenId b : m.ids) fmt::print("{:10.3f}", cosine(row(a), row(b)));
  }

  const TokenId last = m.ids.back();
  fmt::print("\n\n   The nearest of all {} tokens to {} ({}):\n", table->rows(), last, m.shown(last));
  const auto wanted = row(last);
  std::vector<std::pair<double, TokenId>> near;
  for (TokenId id = 0; id < static_cast<TokenId>(table->rows()); ++id) {
    const auto values = row(id);
    if (dot(values, values) > 0 && id != last) near.emplace_back(cosine(wanted, values), id);
  }
  std::partial_sort(near.begin(), near.begin() + 6, near.end(), std::greater<>());
  for (std::size_t i = 0; i < 6; ++i) fmt::print("    {:.3f}  {}\n", near[i].first, m.shown(near[i].second));

  const bool tied = m.model.tensors().find("output.weight") == nullptr;
  fmt::print("\n4. {}\n",
             tied ? "The file has no output.weight: the head at the end of the journey multiplies with this same table (tied)."
                  : "The head at the end of the journey has a table of its own: output.weight.");
  if (!equal) return nihao::Error{nihao::ErrorCode::mismatch, "the rows and the model's hidden state 0 disagree"};
  return {};
}

}  // namespace

int main(int argc, char** argv) { return station::run(argc, argv, tell); }
