// A weight matrix as the CPU keeps it: packed into tiles, or (for the exact mode, and for embeddings) as the file has it.
#pragma once

#include "../../base/arena.hpp"
#include "../../base/function_ref.hpp"
#include "../../device/cpu.hpp"
#include "pack_tile.hpp"

namespace nihao {

/// What else the values of stored rows need to be a matrix's.
struct WeightTerms {
  double scale = 1;                      ///< of all values
  const std::uint32_t* order = nullptr;  ///< [cols]: column i of those rows is the matrix's column order[i]; null: column i
};

/// Columns [first, first + values.size()) of a stored row to where they belong in a row of the matrix.
inline void place_values(const WeightTerms& terms, std::size_t first, std::span<const float> values,
                         std::span<float> row) noexcept {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float v = terms.scale == 1 ? values[i] : static_cast<float>(static_cast<double>(values[i]) * terms.scale);
    row[terms.order == nullptr ? first + i : terms.order[first + i]] = v;
  }
}

/// Writes rows [first, first + count) of a matrix as blocks of its format; `working` is count * cols bytes to work in. Called by
/// several threads at once.
using RowMaker = FunctionRef<void(std::size_t first, std::size_t count, std::byte* to, std::uint8_t* working)>;

/// Read-only after loading; shared by all sessions. Owns nothing: tiles lie in the model's arena, stored bytes in the file.
struct CpuWeight {
  FormatId format = FormatId::F32;
  std::uint32_t rows = 0, cols = 0;
  const std::byte* tiles = nullptr;        ///< null in exact mode
  std::span<const std::byte> stored = {};  ///< [rows] rows of F's blocks
  double scale = 1;                        ///< of all values
  const std::uint32_t* order = nullptr;    ///< [cols]: column i of those rows is the matrix's column order[i]; null: column i

  [[nodiscard]] std::size_t bytes() const noexcept { return stored.size(); }
  /// For a packed matrix whose stored bytes are about to go: only their number is kept.
  void forget_stored() noexcept { stored = {tiles, stored.size()}; }
  [[nodiscard]] std::span<const std::byte> stored_row(std::size_t r) const noexcept {
    const std::size_t size = row_bytes(format, cols);
    return stored.subspan(r * size, size);
  }
  /// The values of row r, from the tiles where those have them: then the file is not touched, and nobody has to give its pages
  /// back.
  void read_row(std::size_t r, std::span<float> out) const noexcept {
    visit_format(format, [&]<class F>(F) {
      const auto put = [&](const typename F::Block& block, std::size_t b) {
        float values[F::block_size];
        F::dequantize(block, values);
        place_values({scale, order}, b * F::block_size, values, out);
      };
      if constexpr (unpacks<F>)
        if (tiles != nullptr) return unpack_row<F>(tiles, r, cols, put);
      const auto blocks = as_blocks<F>(stored_row(r));
      for (std::size_t b = 0; b < blocks.size(); ++b) put(blocks[b], b);
    });
  }
};

/// Packs a [rows, cols] matrix for `cpu`, on all its workers. `release` gives pages of a mapped file back as they are packed, so
/// that a tensor is never in memory twice. Errors: out_of_memory.
[[nodiscard]] inline Expected<CpuWeight> pack_weight(const Cpu& cpu, FormatId format, std::uint32_t rows, std::uint32_t cols,
                                                     std::span<const std::byte> stored, Arena& arena, bool release = false) {
  CpuWeight weight{format, rows, cols, nullptr, stored};
  if (cpu.exact()) return weight;
  NIHAO_TRY(std::byte* const tiles, arena.allocate(packed_bytes(format, rows, cols)));
  // Slices of up to 2 MiB, for each that is given back interrupts all workers.
  const std::size_t count = ceil_div<std::size_t>(rows, tile_rows), tile_bytes = tile_rows * row_bytes(format, cols);
  const std::size_t each = std::clamp<std::size_t>(count / (4 * static_cast<std::size_t>(cpu.workers())), 1,
                                                   (std::size_t{2} << 20) / (tile_bytes + 1) + 1);
  const std::size_t slice = each * tile_bytes;
  cpu.parallel(static_cast<int>(ceil_div(count, each)), [&](int i, int) {
    const std::size_t first = static_cast<std::size_t>(i) * each;
    visit_format(format, [&]<class F>(F) { pack_tiles<F>(stored, rows, cols, first, std::min(each, count - first), tiles); });
    const std::size_t from = static_cast<std::size_t>(i) * slice;
    if (release) MappedFile::release(stored.subspan(from, std::min(slice, stored.size() - from)));
  });
  if (release) MappedFile::release(stored);  // what lay on pages that two slices share
  weight.tiles = tiles;
  return weight;
}

/// The same of rows that no file has: they are made some tiles at a time, and are in memory once, as they are multiplied with.
[[nodiscard]] inline Expected<CpuWeight> pack_weight(const Cpu& cpu, FormatId format, std::uint32_t rows, std::uint32_t cols,
                                                     RowMaker make, const WeightTerms& terms, Arena& arena) {
  constexpr std::size_t each = 4 * tile_rows;
  const std::size_t row = row_bytes(format, cols), slices = ceil_div<std::size_t>(rows, each),
                    slice_bytes = round_up<std::size_t>(each * row, 64), worker_bytes = slice_bytes + each * cols;
  CpuWeight weight{format, rows, cols, nullptr, {}, terms.scale, terms.order};
  NIHAO_TRY(std::byte* const to, arena.allocate(cpu.exact() ? rows * row : packed_bytes(format, rows, cols)));
  NIHAO_TRY(const PageBuffer working, PageBuffer::allocate(static_cast<std::size_t>(cpu.workers()) * worker_bytes));
  cpu.parallel(static_cast<int>(slices), [&](int i, int worker) {
    const std::size_t first = static_cast<std::size_t>(i) * each, count = std::min(each, rows - first);
    std::byte* const slice = working.data() + static_cast<std::size_t>(worker) * worker_bytes;
    auto* const codes = reinterpret_cast<std::uint8_t*>(slice + slice_bytes);
    if (cpu.exact()) return make(first, count, to + first * row, codes);
    make(first, count, slice, codes);
    visit_format(format, [&]<class F>(F) {
      pack_tiles<F>({slice, count * row}, count, cols, 0, ceil_div(count, tile_rows),
                    to + first / tile_rows * (cols / F::block_size) * sizeof(Tile<F>));
    });
  });
  if (cpu.exact()) weight.stored = {to, rows * row};
  else weight.tiles = to, weight.stored = {to, rows * row};  // of which only the number of bytes is looked at
  return weight;
}

}  // namespace nihao
