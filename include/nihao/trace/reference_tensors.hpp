// A recording under the names that the reference data uses: what `nihao logits --states` writes, and what tests compare.
#pragma once

#include "../layers/config.hpp"
#include "recorder.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace nihao {

/// A tensor of a recording: "hidden.layer3", "layer0.q_proj", "logits".
struct NamedTensor {
  std::string name;
  std::vector<std::uint64_t> shape;  ///< outermost first
  std::vector<float> values;
};

namespace detail {

/// How a station's tensor is cut into heads: `inner` side by side in every row, or `outer` matrices one after the other.
struct HeadCut {
  std::size_t inner = 1, outer = 1;
  bool any = false;
};
[[nodiscard]] inline HeadCut head_cut(std::string_view name, const Config& config) noexcept {
  if (name == "q_before_rope" || name == "q_after_rope") return {config.heads, 1, true};
  if (name == "k_before_rope" || name == "k_after_rope") return {config.mla.kv_rank > 0 ? 1 : config.kv_heads, 1, true};
  if (name == "attn_probs" || name == "attn_tiles") return {1, config.heads, true};
  return {};
}

/// The rows of `parts` one after the other: [rows, cols], or [heads, rows, cols]. Later parts may have more columns.
[[nodiscard]] inline NamedTensor join(std::span<const Record* const> parts, const HeadCut& cut) {
  std::size_t rows = 0, cols = 0;
  for (const Record* part : parts) {
    rows += part->rows / cut.outer;
    cols = std::max(cols, part->cols / cut.inner);
  }
  const std::size_t heads = cut.outer * cut.inner;
  NamedTensor tensor;
  if (cut.any) tensor.shape = {heads, rows, cols};
  else tensor.shape = {rows, cols};
  tensor.values.assign(heads * rows * cols, 0.0f);
  std::size_t at = 0;
  for (const Record* part : parts) {
    const std::size_t here = part->rows / cut.outer, width = part->cols / cut.inner;
    for (std::size_t h = 0; h < heads; ++h)
      for (std::size_t r = 0; r < here; ++r) {
        const std::size_t from = cut.outer > 1 ? (h * here + r) * width : r * part->cols + h * width;
        std::copy_n(part->values.data() + from, width, tensor.values.data() + (h * rows + at + r) * cols);
      }
    at += here;
  }
  return tensor;
}

/// [rows, pairs] as [rows, 2 pairs]: the reference has each angle once for either half of its pair.
inline void repeat_columns(NamedTensor& tensor) {
  const std::size_t rows = static_cast<std::size_t>(tensor.shape[0]), pairs = static_cast<std::size_t>(tensor.shape[1]);
  std::vector<float> values(rows * 2 * pairs);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t i = 0; i < 2 * pairs; ++i) values[r * 2 * pairs + i] = tensor.values[r * pairs + i % pairs];
  tensor.shape[1] = 2 * pairs;
  tensor.values = std::move(values);
}

}  // namespace detail

/// The tensors of `records`, in the order of their first step, rows of later steps after those of earlier ones (of a batch of
/// several sequences too: a recording to be read by position has one). Most are [rows, width]; q and k before and after rope are
/// [heads, rows, head_dim]; "layer<i>.attn_probs" is [heads, rows, positions] and "layer<i>.attn_tiles" [heads, rows, tiles * 3],
/// zero where a row sees nothing; "rope.cos" and "rope.sin" are [rows, head_dim], or "layer<i>.rope.cos" where layers turn
/// differently. A tensor of which the recorder did not keep all is left out.
[[nodiscard]] inline std::vector<NamedTensor> reference_tensors(std::span<const Record> records, const Config& config) {
  std::vector<const Record*> sorted;
  for (const Record& record : records) sorted.push_back(&record);
  const auto same = [](const Record* a, const Record* b) { return a->layer == b->layer && a->name == b->name; };
  std::sort(sorted.begin(), sorted.end(), [](const Record* a, const Record* b) {
    return std::tuple(a->layer, std::string_view(a->name), a) < std::tuple(b->layer, std::string_view(b->name), b);
  });
  std::vector<std::span<const Record* const>> stations;
  for (std::size_t first = 0, last; first < sorted.size(); first = last) {
    for (last = first + 1; last < sorted.size() && same(sorted[first], sorted[last]);) ++last;
    stations.push_back(std::span(sorted).subspan(first, last - first));
  }
  std::sort(stations.begin(), stations.end(), [](const auto& a, const auto& b) { return a.front() < b.front(); });

  std::vector<NamedTensor> result;
  for (const auto& parts : stations) {
    const Record& first = *parts.front();
    const auto kept = [](const Record* part) { return part->values.size() == part->rows * part->cols; };
    if (!std::all_of(parts.begin(), parts.end(), kept)) continue;
    const bool angles = first.name.substr(0, 5) == "rope.", everywhere = config.ropes.size() == 1;
    if (angles && everywhere && first.layer > 0) continue;  // the same in every layer
    NamedTensor tensor = detail::join(parts, detail::head_cut(first.name, config));
    if (angles) detail::repeat_columns(tensor);
    if (first.name == "hidden") tensor.name = concat("hidden.layer", first.layer);
    else if (first.name == "embed" || first.name == "final_norm") tensor.name = concat("hidden.", first.name);
    else if (first.layer < 0 || (angles && everywhere)) tensor.name = first.name;
    else tensor.name = concat("layer", first.layer, ".", first.name);
    result.push_back(std::move(tensor));
  }
  return result;
}

}  // namespace nihao
