// The importance matrix: for each matrix of a model the mean square of every input, which says how much an error in that column
// of weights costs. E[(sum_i e_i x_i)^2] is sum_i e_i^2 E[x_i^2] where inputs do not go together. Files: GGUF as llama.cpp writes
// it.
#pragma once

#include "../files/gguf.hpp"
#include "../files/gguf_writer.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace nihao {

/// Sums over the rows that one tensor was multiplied with.
struct ImportanceEntry {
  std::string tensor;       ///< GGUF's name, with ".weight"
  std::vector<float> sums;  ///< [matrices, cols]: of the squares; one matrix, or one for each expert
  std::vector<float> rows;  ///< [matrices]: how many were summed; or one number for all
};

class ImportanceMatrix {
 public:
  std::vector<std::string> datasets = {};  ///< what was read, by name
  std::uint32_t chunks = 0;                ///< windows of text
  std::uint32_t chunk_size = 0;            ///< tokens of each

  /// Adds a tensor's, in any order.
  void add(ImportanceEntry entry) {
    const auto at = std::lower_bound(entries_.begin(), entries_.end(), entry.tensor,
                                     [](const ImportanceEntry& e, const std::string& name) { return e.tensor < name; });
    entries_.insert(at, std::move(entry));
  }
  [[nodiscard]] std::span<const ImportanceEntry> entries() const noexcept { return entries_; }

  /// The entry of a tensor, or null.
  [[nodiscard]] const ImportanceEntry* find(std::string_view tensor) const noexcept {
    const auto at = std::lower_bound(entries_.begin(), entries_.end(), tensor,
                                     [](const ImportanceEntry& e, std::string_view name) { return e.tensor < name; });
    return at != entries_.end() && at->tensor == tensor ? &*at : nullptr;
  }

  /// Mean squares for a tensor of `matrices` matrices with `cols` columns, [matrices, cols], for quantize_row: none is below a
  /// thousandth of its matrix' mean, since other texts have other inputs; a matrix that nothing was multiplied with has ones.
  /// Empty without an entry. Errors: mismatch (an entry of another width).
  [[nodiscard]] Expected<std::vector<float>> weights(std::string_view tensor, std::size_t matrices, std::size_t cols) const {
    const ImportanceEntry* const entry = find(tensor);
    if (entry == nullptr) return std::vector<float>{};
    const std::size_t sums = entry->sums.size(), counts = entry->rows.size();
    if ((sums != cols && sums != matrices * cols) || (counts != 1 && counts * cols != sums))
      return Error{ErrorCode::mismatch,
                   concat("the importance matrix has ", counts, " x ", sums / counts, " columns for it, and it has ", matrices,
                          " x ", cols),
                   concat("tensor ", tensor)};
    std::vector<float> result(matrices * cols, 1.0f);
    for (std::size_t m = 0; m < matrices; ++m) {
      const std::size_t from = sums == cols ? 0 : m;
      if (!(entry->rows[counts == 1 ? 0 : from] > 0)) continue;
      const float* const squares = entry->sums.data() + from * cols;
      double mean = 0;
      for (std::size_t i = 0; i < cols; ++i) mean += static_cast<double>(squares[i]) / static_cast<double>(cols);
      if (!(mean > 0)) continue;
      for (std::size_t i = 0; i < cols; ++i)
        result[m * cols + i] = static_cast<float>(std::max(static_cast<double>(squares[i]) / mean, 1e-3));
    }
    return result;
  }

  /// Writes a GGUF file of general.type "imatrix": two tensors an entry, NAME.in_sum2 [counts, sums / counts] and NAME.counts
  /// [counts, 1]. Errors: io, invalid_argument.
  [[nodiscard]] Expected<void> write(const std::string& path) const {
    GgufWriter writer;
    writer.add("general.type", "imatrix");
    const std::vector<std::string_view> names(datasets.begin(), datasets.end());
    writer.add_strings("imatrix.datasets", names);
    writer.add("imatrix.chunk_count", chunks);
    writer.add("imatrix.chunk_size", chunk_size);
    for (const ImportanceEntry& e : entries_) {
      const std::uint64_t matrices = e.rows.size(), shape[] = {matrices, e.sums.size() / matrices}, ones[] = {matrices, 1};
      NIHAO_CHECK(writer.add_tensor(concat(e.tensor, ".in_sum2"), FormatId::F32, shape, std::as_bytes(std::span(e.sums))));
      NIHAO_CHECK(writer.add_tensor(concat(e.tensor, ".counts"), FormatId::F32, ones, std::as_bytes(std::span(e.rows))));
    }
    return writer.write(path);
  }

  /// Reads such a file, of either program. Errors: Gguf::open's, and malformed (no such file, a number that is negative or none),
  /// missing, mismatch.
  [[nodiscard]] static Expected<ImportanceMatrix> read(const std::string& path) {
    NIHAO_TRY(const Gguf file, Gguf::open(path));
    auto result = from(file);
    if (!result) return std::move(result).error().in(path);
    return result;
  }

 private:
  [[nodiscard]] static Expected<ImportanceMatrix> from(const Gguf& file) {
    NIHAO_TRY(const auto type, file.get_or<std::string_view>("general.type", ""));
    if (type != "imatrix") return Error{ErrorCode::malformed, "it is no importance matrix", "general.type"};
    ImportanceMatrix result;
    if (file.has("imatrix.datasets")) {
      NIHAO_TRY(const auto names, file.strings("imatrix.datasets"));
      result.datasets.assign(names.begin(), names.end());
    }
    NIHAO_TRY(result.chunks, file.get_or<std::uint32_t>("imatrix.chunk_count", 0));
    NIHAO_TRY(result.chunk_size, file.get_or<std::uint32_t>("imatrix.chunk_size", 0));
    constexpr std::string_view ending = ".in_sum2";
    for (const TensorInfo& sums : file.tensors().tensors()) {
      if (!sums.name.ends_with(ending)) continue;
      ImportanceEntry entry;
      entry.tensor = sums.name.substr(0, sums.name.size() - ending.size());
      const std::string place = concat("tensor ", printable(sums.name));
      const TensorInfo* const counts = file.tensors().find(concat(entry.tensor, ".counts"));
      if (counts == nullptr) return Error{ErrorCode::missing, "the file has no counts for it", place};
      if (sums.format != FormatId::F32 || counts->format != FormatId::F32 || sums.elements() % counts->elements() != 0)
        return Error{ErrorCode::mismatch, concat(sums.elements(), " sums for ", counts->elements(), " counts"), place};
      entry.sums.resize(static_cast<std::size_t>(sums.elements()));
      entry.rows.resize(static_cast<std::size_t>(counts->elements()));
      dequantize_row(FormatId::F32, sums.bytes, entry.sums);
      dequantize_row(FormatId::F32, counts->bytes, entry.rows);
      for (const std::vector<float>* numbers : {&entry.sums, &entry.rows})
        for (const float n : *numbers)
          if (!(n >= 0) || !std::isfinite(n)) return Error{ErrorCode::malformed, concat("a number is ", n), place};
      result.add(std::move(entry));
    }
    return result;
  }

  std::vector<ImportanceEntry> entries_;  // by name
};

}  // namespace nihao
