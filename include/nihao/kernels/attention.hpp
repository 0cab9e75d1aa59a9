// Scaled dot-product attention over cached keys and values, causal, grouped heads, optional sliding window: the plain definition.
// Vaswani et al. 2017, arXiv:1706.03762; grouped queries: Ainslie et al. 2023, arXiv:2305.13245.
#pragma once

#include "../base/tensor.hpp"
#include "../device/observer.hpp"
#include "../simd/isa.hpp"
#include "batch_view.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace nihao {

/// What the attention of a layer is, beside its tensors.
struct AttentionShape {
  std::uint32_t heads, kv_heads, head_dim;  ///< heads % kv_heads == 0; query head h reads kv head h / (heads / kv_heads)
  float scale;                              ///< of the scores
  std::uint32_t window = 0;                 ///< a position sees this many, itself included; 0: all before it
  std::uint32_t value_dim = 0;   ///< width of a head's values and of its output; 0: head_dim, which queries and keys have
  std::uint32_t chunk = 0;       ///< a position sees none before the last multiple of this (Llama 4); 0: no chunks
  float softcap = 0;             ///< scores become softcap * tanh(score / softcap) (Gemma 2); 0: they stay
  const float* sinks = nullptr;  ///< [heads]: a score that joins each head's softmax and has no value (gpt-oss); or null

  [[nodiscard]] constexpr std::uint32_t value_width() const noexcept { return value_dim > 0 ? value_dim : head_dim; }
  /// The first position that position p sees.
  [[nodiscard]] constexpr std::int64_t first_visible(std::int64_t p) const noexcept {
    const auto w = static_cast<std::int64_t>(window), c = static_cast<std::int64_t>(chunk);
    const std::int64_t by_window = window == 0 || p < w ? 0 : p - w + 1, by_chunk = chunk == 0 ? 0 : p / c * c;
    return by_window > by_chunk ? by_window : by_chunk;
  }
};

/// All that the attention of a batch reads, for an observer that wants more of it than its output.
struct AttentionInputs {
  AttentionShape shape;
  KvLayout layout;
  std::byte* base;  ///< block 0 of the layer
  BatchView batch;
  MatrixView<const float> q;  ///< [rows, heads * head_dim], rotated
  Isa isa;                    ///< what the kernel ran on
};

/// What the rows at positions [first, first + count) of one sequence read and compute in one layer. Every visible key and value
/// is read once per kv head, which the rows share; each costs a multiply-add per query head and value, twice.
[[nodiscard]] constexpr Work attention_work(const AttentionShape& shape, const KvLayout& layout, std::int64_t first,
                                            std::int64_t count) noexcept {
  std::uint64_t visible = 0;
  for (std::int64_t p = first; p < first + count; ++p) visible += static_cast<std::uint64_t>(p + 1 - shape.first_visible(p));
  const auto read = static_cast<std::uint64_t>(first + count - shape.first_visible(first));
  return {read * layout.block_bytes() / kv_block, visible * 2 * shape.heads * (shape.head_dim + shape.value_width())};
}

/// The key (or value) of one position, as floats: what the stored form says.
inline void read_key(const KvView& kv, std::size_t head, std::int64_t position, std::span<float> out) noexcept;
inline void read_value(const KvView& kv, std::size_t head, std::int64_t position, std::span<float> out) noexcept;

namespace detail {
template <class T>
T stored(const std::byte* part, std::size_t index) noexcept {
  T value;
  std::memcpy(&value, part + index * sizeof(T), sizeof(T));
  return value;
}
// Value i of position p (0 to 15) of one part; `at` is its index in the codes.
inline float read_part(const KvPart& kind, const std::byte* part, std::size_t at, std::size_t i, std::size_t p) noexcept {
  switch (kind.type) {
    case KvType::f32: return stored<float>(part, at);
    case KvType::f16: return to_float(stored<f16>(part, at));
    case KvType::bf16: return to_float(stored<bf16>(part, at));
    case KvType::q8_0: break;
  }
  const float scale = to_float(stored<f16>(part, i / 32 * kv_block + p));
  return scale * static_cast<float>(stored<std::int8_t>(part + kind.scales() * kv_block * 2, at));
}
}  // namespace detail

inline void read_key(const KvView& kv, std::size_t head, std::int64_t position, std::span<float> out) noexcept {
  const auto p = static_cast<std::size_t>(position);
  const std::byte* part = kv.keys(p / kv_block, head);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = detail::read_part(kv.layout.key(), part, i * kv_block + p % kv_block, i, p % kv_block);
}
inline void read_value(const KvView& kv, std::size_t head, std::int64_t position, std::span<float> out) noexcept {
  if (kv.layout.values_in_keys) return read_key(kv, head, position, out);
  const auto p = static_cast<std::size_t>(position);
  const std::byte* part = kv.values(p / kv_block, head);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = detail::read_part(kv.layout.value(), part, p % kv_block * out.size() + i, i, p % kv_block);
}

namespace reference {

/// One query row at `position`: q is [heads * head_dim], out [heads * value width]. `probabilities`, if not null, receives
/// [heads][position + 1].
inline void attention(const AttentionShape& shape, const KvView& kv, std::int64_t position, std::span<const float> q,
                      std::span<float> out, std::vector<std::vector<float>>* probabilities = nullptr) {
  const std::size_t d = shape.head_dim, width = shape.value_width(), group = shape.heads / shape.kv_heads;
  std::vector<float> row(std::max(d, width));
  const std::span<float> key = std::span(row).first(d), value = std::span(row).first(width);
  for (std::size_t h = 0; h < shape.heads; ++h) {
    std::vector<double> score(static_cast<std::size_t>(position) + 1, -INFINITY);
    double most = -INFINITY;
    for (std::int64_t p = shape.first_visible(position); p <= position; ++p) {
      read_key(kv, h / group, p, key);
      double dot = 0;
      for (std::size_t i = 0; i < d; ++i) dot += static_cast<double>(q[h * d + i]) * static_cast<double>(row[i]);
      double& s = score[static_cast<std::size_t>(p)];
      s = dot * static_cast<double>(shape.scale);
      if (shape.softcap > 0) s = static_cast<double>(shape.softcap) * std::tanh(s / static_cast<double>(shape.softcap));
      most = std::max(most, s);
    }
    const double sink = shape.sinks != nullptr ? static_cast<double>(shape.sinks[h]) : -INFINITY;
    most = std::max(most, sink);
    double total = std::exp(sink - most);
    for (double& s : score) total += s = std::exp(s - most);
    std::vector<double> sum(width, 0.0);
    for (std::size_t p = 0; p < score.size(); ++p) {
      if (score[p] == 0) continue;
      read_value(kv, h / group, static_cast<std::int64_t>(p), value);
      for (std::size_t i = 0; i < width; ++i) sum[i] += score[p] / total * static_cast<double>(value[i]);
    }
    for (std::size_t i = 0; i < width; ++i) out[h * width + i] = static_cast<float>(sum[i]);
    if (probabilities != nullptr) {
      auto& to = probabilities->emplace_back();
      for (const double s : score) to.push_back(static_cast<float>(s / total));
    }
  }
}

}  // namespace reference
}  // namespace nihao
