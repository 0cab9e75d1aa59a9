// A model as a list of tensors to be written: GGUF's names and shapes, and where the rows of each come from.
#pragma once

#include "../files/gguf.hpp"
#include "../files/gguf_writer.hpp"
#include "../layers/config.hpp"
#include "recipe.hpp"

#include <optional>
#include <string>
#include <vector>

namespace nihao {

/// One tensor of a file to be written. Its rows are those of `parts`, one after the other: one tensor of the source, or several
/// that GGUF has in one (a layer's experts).
struct ModelTensor {
  std::string name;
  std::vector<std::uint64_t> shape;  ///< outermost axis first
  std::vector<const TensorInfo*> parts;
  /// Rows of a head whose halves change into neighbours: GGUF's llama family turns values 2 i and 2 i + 1 of a head together,
  /// Hugging Face's i and i + half. 0: they stay.
  std::size_t head_rows = 0;
  float add = 0;                 ///< to every value: Gemma's norms, which Hugging Face stores as their distance from 1
  std::vector<float> made = {};  ///< the values, of a tensor that the source does not have; parts is empty then
  /// How matrices [shape[0], shape[1], shape[2]] lie in the one part: `pitch` of its rows from one to the next, the first at
  /// `row`. Transposed: its rows are their columns, and their rows its columns `column`, `column` + `step`, ...
  struct Cut {
    bool transposed;
    std::uint64_t pitch, row = 0, column = 0, step = 1;
  };
  std::optional<Cut> cut = {};

  [[nodiscard]] std::uint64_t cols() const noexcept { return shape.back(); }
  [[nodiscard]] std::uint64_t rows() const noexcept {
    std::uint64_t product = 1;
    for (std::size_t i = 0; i + 1 < shape.size(); ++i) product *= shape[i];
    return product;
  }
  [[nodiscard]] FormatId stored() const noexcept { return parts.empty() ? FormatId::F32 : parts[0]->format; }
  /// Whether a row's bytes can be taken as they are.
  [[nodiscard]] bool unchanged() const noexcept { return parts.size() == 1 && head_rows == 0 && add == 0 && !cut; }

  /// The values of row r.
  void read_row(std::uint64_t r, std::span<float> out) const noexcept {
    if (parts.empty()) {
      std::copy_n(made.data() + r * out.size(), out.size(), out.data());
      return;
    }
    if (cut) return read_cut(r / shape[1], r % shape[1], out);
    const std::uint64_t rows_of_part = rows() / parts.size();
    const TensorInfo& part = *parts[static_cast<std::size_t>(r / rows_of_part)];
    std::uint64_t row = r % rows_of_part;
    if (head_rows > 0) {
      const std::uint64_t within = row % head_rows;
      row += within / 2 + within % 2 * (head_rows / 2) - within;
    }
    const std::size_t size = row_bytes(part.format, out.size());
    dequantize_row(part.format, part.bytes.subspan(static_cast<std::size_t>(row) * size, size), out);
    if (add != 0)
      for (float& v : out) v += add;
  }

 private:
  void read_cut(std::uint64_t matrix, std::uint64_t r, std::span<float> out) const noexcept {
    const TensorInfo& part = *parts[0];
    const std::size_t size = row_bytes(part.format, static_cast<std::size_t>(part.cols()));
    const auto row = [&](std::uint64_t i) {
      return part.bytes.subspan(static_cast<std::size_t>(matrix * cut->pitch + cut->row + i) * size, size);
    };
    if (!cut->transposed) return dequantize_row(part.format, row(r), out);
    const std::size_t value = format_info(part.format).block_bytes;  // of formats of one value a block: all that folders have
    for (std::size_t i = 0; i < out.size(); ++i)
      dequantize_row(part.format, row(i).subspan(static_cast<std::size_t>(cut->column + cut->step * r) * value, value),
                     out.subspan(i, 1));
  }
};

/// What a file to be written says, beside its tensors' formats.
struct ModelToWrite {
  std::string architecture;  ///< general.architecture
  RecipeModel shape;
  std::vector<ModelTensor> tensors;
  GgufWriter metadata;  ///< all but what quantization says of itself
};

/// A GGUF file as it is. Errors: missing, mismatch (the architecture or one of its sizes).
[[nodiscard]] inline Expected<ModelToWrite> tensors_of_gguf(const Gguf& file) {
  ModelToWrite model;
  NIHAO_TRY(model.architecture, file.get<std::string_view>("general.architecture"));
  const auto size = [&](std::string_view name, std::uint32_t& to) -> Expected<void> {
    const GgufEntry* const entry = file.find(concat(model.architecture, ".", name));
    if (entry == nullptr) return {};
    if (entry->type == GgufType::array) {  // one for each layer: the largest
      NIHAO_TRY(const auto all, entry->items<std::uint32_t>());
      for (const std::uint32_t n : all) to = std::max(to, n);
      return {};
    }
    NIHAO_TRY(to, entry->as<std::uint32_t>());
    return {};
  };
  NIHAO_CHECK(size("block_count", model.shape.layers));
  NIHAO_CHECK(size("attention.head_count", model.shape.heads));
  model.shape.kv_heads = model.shape.heads;
  if (file.has(concat(model.architecture, ".attention.head_count_kv"))) {
    model.shape.kv_heads = 0;
    NIHAO_CHECK(size("attention.head_count_kv", model.shape.kv_heads));
  }
  NIHAO_CHECK(size("expert_count", model.shape.experts));
  model.shape.tied = file.tensors().find("output.weight") == nullptr;
  for (const GgufEntry& entry : file.metadata()) {
    const bool ours = entry.key == "general.file_type" || entry.key == "general.quantization_version" ||
                      entry.key == "general.alignment" || entry.key.starts_with("quantize.") || entry.key.starts_with("split.");
    if (!ours) model.metadata.add(entry);
  }
  for (const TensorInfo& t : file.tensors().tensors())
    model.tensors.push_back({std::string(t.name), {t.shape.begin(), t.shape.begin() + t.rank}, {&t}});
  return model;
}

}  // namespace nihao
