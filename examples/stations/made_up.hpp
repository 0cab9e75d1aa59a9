// A model with made-up weights, for who has no file of its kind: a config, and tensors of whatever shape its type asks for.
#pragma once

#include <nihao/files/tensor_file.hpp>
#include <nihao/models/load_family.hpp>
#include <nihao/quantize/quantize_row.hpp>
#include <nihao/sampling/random.hpp>

#include <cmath>
#include <deque>
#include <fmt/core.h>
#include <initializer_list>
#include <memory>
#include <string>

namespace station {

/// Tensors by the names that Hugging Face's checkpoints have.
class MadeUp {
 public:
  /// Matrices are stored in `format`, and of more than `distinct` rows those come again and again.
  explicit MadeUp(std::uint64_t seed, nihao::FormatId format = nihao::FormatId::F32, std::size_t distinct = SIZE_MAX)
      : random_(seed), format_(format), distinct_(distinct) {}

  /// Matrices with values around 0, so large that x W^T is about as large as x.
  MadeUp& matrix(std::string name, std::size_t rows, std::size_t cols) { return matrix(std::move(name), rows, cols, format_); }
  /// A norm's weights: ones.
  MadeUp& norm(std::string name, std::size_t width) {
    const std::vector<float> ones(width, 1.0f);
    const auto bytes = std::as_bytes(std::span(ones));
    add(std::move(name), nihao::FormatId::F32, {width, 1}, 1).assign(bytes.begin(), bytes.end());
    return *this;
  }
  /// What is around a config's layers.
  MadeUp& ends(const nihao::Config& c) {
    matrix("model.embed_tokens.weight", c.vocab, c.d_model).matrix("lm_head.weight", c.vocab, c.d_model);
    return norm("model.norm.weight", c.d_model);
  }
  /// The two norms of layer i.
  MadeUp& norms(const nihao::Config& c, std::size_t i) {
    return norm(layer(i) + "input_layernorm.weight", c.d_model).norm(layer(i) + "post_attention_layernorm.weight", c.d_model);
  }
  /// Its attention, with grouped queries.
  MadeUp& grouped_attention(const nihao::Config& c, std::size_t i) {
    const std::string at = layer(i) + "self_attn.";
    const std::size_t q = c.heads * c.head_dim, kv = c.kv_heads * c.head_dim;
    matrix(at + "q_proj.weight", q, c.d_model).matrix(at + "k_proj.weight", kv, c.d_model);
    return matrix(at + "v_proj.weight", kv, c.d_model).matrix(at + "o_proj.weight", c.d_model, q);
  }
  /// Its attention, with latents.
  MadeUp& latent_attention(const nihao::Config& c, std::size_t i) {
    const std::string at = layer(i) + "self_attn.";
    matrix(at + "q_a_proj.weight", c.mla.q_rank, c.d_model).norm(at + "q_a_layernorm.weight", c.mla.q_rank);
    matrix(at + "q_b_proj.weight", c.heads * c.head_dim, c.mla.q_rank);
    matrix(at + "kv_a_proj_with_mqa.weight", c.mla.kv_rank + c.mla.rope, c.d_model);
    norm(at + "kv_a_layernorm.weight", c.mla.kv_rank);
    matrix(at + "kv_b_proj.weight", c.heads * (c.mla.nope + c.value_dim), c.mla.kv_rank);
    return matrix(at + "o_proj.weight", c.d_model, c.heads * c.value_dim);
  }
  /// Its feed-forward, dense.
  MadeUp& dense(const nihao::Config& c, std::size_t i) { return gated(layer(i) + "mlp.", c.d_ff, c.d_model); }
  /// Its router and experts, and the shared one.
  MadeUp& experts(const nihao::Config& c, std::size_t i) {
    const std::string at = layer(i) + "mlp.";
    matrix(at + "gate.weight", c.router.experts, c.d_model, nihao::FormatId::F32);
    for (std::size_t e = 0; e < c.router.experts; ++e) gated(fmt::format("{}experts.{}.", at, e), c.expert_ff, c.d_model);
    if (c.shared_ff > 0) gated(at + "shared_experts.", c.shared_ff, c.d_model);
    return *this;
  }

  /// A matrix in F32.
  [[nodiscard]] std::span<const float> values(std::string_view name) const {
    const auto at = std::find_if(tensors_.begin(), tensors_.end(), [&](const Tensor& t) { return t.name == name; });
    return {reinterpret_cast<const float*>(at->bytes.data()), at->bytes.size() / sizeof(float)};
  }

  /// What a family's load takes. This outlives the model.
  [[nodiscard]] nihao::WeightSource source() const {
    std::vector<nihao::TensorInfo> all;
    for (const Tensor& t : tensors_) all.push_back({t.name, t.format, t.rank, {t.shape[0], t.shape[1], 1, 1}, t.bytes, 0, 0});
    return {std::make_shared<const nihao::TensorFile>(std::move(all), std::vector<nihao::MappedFile>{}),
            nihao::NameStyle::hugging_face};
  }

 private:
  struct Tensor {
    std::string name;
    nihao::FormatId format;
    std::array<std::uint64_t, 2> shape;
    std::uint8_t rank;
    std::vector<std::byte> bytes;
  };
  static std::string layer(std::size_t i) { return fmt::format("model.layers.{}.", i); }
  std::vector<std::byte>& add(std::string name, nihao::FormatId format, std::array<std::uint64_t, 2> shape, std::uint8_t rank) {
    return tensors_.emplace_back(Tensor{std::move(name), format, shape, rank, {}}).bytes;
  }
  MadeUp& matrix(std::string name, std::size_t rows, std::size_t cols, nihao::FormatId format) {
    const std::size_t bytes = nihao::row_bytes(format, cols);
    std::vector<std::byte>& all = add(std::move(name), format, {rows, cols}, 2);
    all.resize(rows * bytes);
    std::vector<float> row(cols);
    for (std::size_t r = 0; r < rows; ++r) {
      const auto to = std::span(all).subspan(r * bytes, bytes);
      if (r >= distinct_) {
        std::copy_n(all.begin() + static_cast<std::ptrdiff_t>((r - distinct_) * bytes), bytes, to.begin());
        continue;
      }
      for (float& v : row) v = static_cast<float>((2 * random_.uniform() - 1) * std::sqrt(3.0 / static_cast<double>(cols)));
      nihao::quantize_row(format, row, {}, to);
    }
    return *this;
  }
  MadeUp& gated(const std::string& at, std::size_t hidden, std::size_t width) {
    matrix(at + "gate_proj.weight", hidden, width).matrix(at + "up_proj.weight", hidden, width);
    return matrix(at + "down_proj.weight", width, hidden);
  }

  nihao::Random random_;
  nihao::FormatId format_;
  std::size_t distinct_;
  std::deque<Tensor> tensors_;
};

/// The model of a config and made-up weights; multiplies exactly, as most stations do.
[[nodiscard]] inline nihao::Expected<nihao::AnyModel> load(const nihao::Config& config, const MadeUp& made) {
  NIHAO_TRY(const nihao::Cpu cpu, nihao::Cpu::create({.threads = 1, .exact = true}));
  return nihao::load_family<nihao::Cpu>(config, made.source(), cpu, {}, {}, "the station");
}

/// Runs a station that needs no model.
inline int run_alone(nihao::Expected<void> (*tell)()) {
  if (const auto told = tell(); !told) return fmt::print(stderr, "{}\n", told.error().message()), 1;
  return 0;
}

}  // namespace station
