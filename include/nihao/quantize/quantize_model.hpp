// Writing a model in the formats of a mix: rows are read, quantized on all threads and written, a piece of a tensor at a time.
#pragma once

#include "../base/hooks.hpp"
#include "../device/cpu.hpp"
#include "importance.hpp"
#include "model_tensors.hpp"
#include "quantize_row.hpp"

#include <atomic>
#include <optional>

namespace nihao {

struct QuantizeOptions {
  const ImportanceMatrix* importance = nullptr;
  std::string importance_file = {};  ///< its name, for the metadata
  bool requantize = false;           ///< also from formats that have already lost bits
  Hooks hooks = {};                  ///< progress in bytes of the source
};

/// What was written of one tensor.
struct QuantizedTensor {
  std::string name;
  FormatId from, to;
  std::uint64_t bytes;                      ///< written
  std::string_view why = {};                ///< of the mix' rule, if one held
  std::optional<FormatId> instead_of = {};  ///< what the mix wanted, if rows of this length cannot have it
  bool weighted = false;                    ///< by the importance matrix
};

namespace detail {

/// Which format a tensor gets.
[[nodiscard]] inline QuantizedTensor plan_tensor(const ModelTensor& t, const ModelToWrite& model, const Recipe& mix,
                                                 const RecipeModel& shape) {
  QuantizedTensor plan{t.name, t.stored(), FormatId::F32, 0};
  if (!may_be_quantized(t.name, t.shape.size())) return plan;
  const TensorRole role = role_of_gguf_name(t.name, model.architecture);
  if (const RecipeRule* const rule = mix.rule(role, shape)) plan.why = rule->why;
  const FormatId wanted = mix.format(role, shape);
  plan.to = fitting_format(wanted, t.cols());
  if (plan.to != wanted) plan.instead_of = wanted;
  return plan;
}

/// Quantizes pieces of tensors.
class PieceWriter {
 public:
  PieceWriter(const Cpu& cpu, std::size_t most_cols)
      : cpu_(cpu), cols_(most_cols), rows_(static_cast<std::size_t>(cpu.workers()) * most_cols) {}

  /// Rows [first, first + count) in format `to`. Errors: numeric (a value is no number, or too large for the format), naming the
  /// row.
  [[nodiscard]] Expected<std::span<const std::byte>> rows(const ModelTensor& t, FormatId to, std::uint64_t first,
                                                          std::uint64_t count, std::span<const float> weights) {
    const auto cols = static_cast<std::size_t>(t.cols());
    const std::size_t size = row_bytes(to, cols);
    out_.resize(static_cast<std::size_t>(count) * size);
    std::atomic<std::uint64_t> wrong{UINT64_MAX};
    const float most = to == FormatId::F32 || to == FormatId::BF16 ? std::numeric_limits<float>::max() : 65504.0f;
    const std::size_t matrices = weights.size() / cols;
    const std::uint64_t rows_of_matrix = matrices > 0 ? t.rows() / matrices : 1;
    const std::uint64_t together = std::max<std::uint64_t>(1, 16384 / cols);  // rows of a task
    const auto tasks = static_cast<int>(ceil_div(count, together));
    cpu_.parallel(tasks, [&](int task, int worker) {
      const std::span<float> row(rows_.data() + static_cast<std::size_t>(worker) * cols_, cols);
      const std::uint64_t from = static_cast<std::uint64_t>(task) * together, end = std::min(count, from + together);
      for (std::uint64_t r = from; r < end; ++r) {
        t.read_row(first + r, row);
        bool good = true;
        for (const float v : row) good = good && std::abs(v) <= most;
        if (!good) {
          std::uint64_t least = wrong.load(std::memory_order_relaxed);
          while (first + r < least && !wrong.compare_exchange_weak(least, first + r, std::memory_order_relaxed)) {}
          continue;
        }
        std::span<const float> w;
        if (matrices > 0) w = weights.subspan(static_cast<std::size_t>((first + r) / rows_of_matrix) * cols, cols);
        quantize_row(to, row, w, std::span(out_).subspan(static_cast<std::size_t>(r) * size, size));
      }
    });
    if (const std::uint64_t row = wrong.load(); row != UINT64_MAX)
      return Error{ErrorCode::numeric,
                   concat("a value of row ", row, " is no number, or none that ", format_info(to).name, " holds"),
                   concat("tensor ", printable(t.name))};
    return std::span<const std::byte>(out_);
  }

 private:
  const Cpu& cpu_;
  std::size_t cols_;
  std::vector<float> rows_;  // [workers, cols_]
  std::vector<std::byte> out_;
};

}  // namespace detail

/// The formats that `mix` gives to a model's tensors, without writing anything. `importance`: whether there will be a matrix.
[[nodiscard]] inline std::vector<QuantizedTensor> plan_formats(const ModelToWrite& model, const Recipe& mix, bool importance) {
  RecipeModel shape = model.shape;
  shape.importance = importance;
  std::vector<QuantizedTensor> plans;
  for (const ModelTensor& t : model.tensors) {
    plans.push_back(detail::plan_tensor(t, model, mix, shape));
    plans.back().bytes = t.rows() * row_bytes(plans.back().to, static_cast<std::size_t>(t.cols()));
  }
  return plans;
}

/// Writes `model` to `path` in the formats of `mix`, whole or not at all. The same bytes for any number of threads. Errors:
/// invalid_argument (the source is quantized and options.requantize is not set), numeric (a value that is no number), mismatch
/// (an importance matrix of another model), io, cancelled; those of one tensor name it.
[[nodiscard]] inline Expected<std::vector<QuantizedTensor>> quantize_model(ModelToWrite model, const Recipe& mix,
                                                                           const std::string& path, const Cpu& cpu,
                                                                           const QuantizeOptions& options = {}) {
  std::vector<QuantizedTensor> plans = plan_formats(model, mix, options.importance != nullptr);
  GgufWriter& writer = model.metadata;
  writer.add("general.quantization_version", std::uint32_t{2});
  writer.add("general.file_type", mix.file_type);
  if (const ImportanceMatrix* const matrix = options.importance) {
    writer.add("quantize.imatrix.file", std::string_view(options.importance_file));
    writer.add("quantize.imatrix.dataset", std::string_view(matrix->datasets.empty() ? "" : matrix->datasets[0]));
    writer.add("quantize.imatrix.entries_count", static_cast<std::uint32_t>(matrix->entries().size()));
    writer.add("quantize.imatrix.chunks_count", matrix->chunks);
  }
  std::uint64_t total = 0, done = 0;
  std::size_t most_cols = 1;
  bool any_weighted = false;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const ModelTensor& t = model.tensors[i];
    if (!options.requantize && format_info(t.stored()).block_size > 1)
      return Error{ErrorCode::invalid_argument,
                   concat("it is stored as ", format_info(t.stored()).name, ", which has lost bits already, and would lose more"),
                   concat("tensor ", printable(t.name))};
    if (options.importance != nullptr) {
      plans[i].weighted = format_info(plans[i].to).block_size > 1 && options.importance->find(t.name) != nullptr;
      any_weighted = any_weighted || plans[i].weighted;
    }
    NIHAO_CHECK(writer.add_tensor(t.name, plans[i].to, t.shape));
    total += t.rows() * row_bytes(t.stored(), static_cast<std::size_t>(t.cols()));
    most_cols = std::max(most_cols, static_cast<std::size_t>(t.cols()));
  }
  if (options.importance != nullptr && !any_weighted && format_info(mix.usual).block_size > 1)
    return Error{ErrorCode::mismatch, "the importance matrix has none of the model's tensors", options.importance_file};

  detail::PieceWriter pieces(cpu, most_cols);
  std::vector<float> weights;
  NIHAO_CHECK(writer.write(path, [&](std::size_t i, std::uint64_t offset) -> Expected<std::span<const std::byte>> {
    if (options.hooks.stop.stop_requested()) return Error{ErrorCode::cancelled, "stopped while quantizing"};
    const ModelTensor& t = model.tensors[i];
    const auto cols = static_cast<std::size_t>(t.cols());
    const std::size_t size = row_bytes(plans[i].to, cols), source_size = row_bytes(t.stored(), cols);
    const std::uint64_t first = offset / size, count = std::min(t.rows() - first, std::max<std::uint64_t>(1, (4u << 20) / cols));
    options.hooks.report("quantizing", done += count * source_size, total);
    if (t.unchanged() && t.stored() == plans[i].to)
      return t.parts[0]->bytes.subspan(static_cast<std::size_t>(first) * size, static_cast<std::size_t>(count) * size);
    if (offset == 0) {
      weights.clear();
      if (plans[i].weighted) {
        const std::size_t matrices = t.shape.size() > 2 ? static_cast<std::size_t>(t.shape[0]) : 1;
        NIHAO_TRY(weights, options.importance->weights(t.name, matrices, cols));
      }
    }
    return pieces.rows(t, plans[i].to, first, count, weights);
  }));
  return plans;
}

}  // namespace nihao
