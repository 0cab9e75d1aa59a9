// A weight matrix as the CPU keeps it: packed into tiles, or (for the exact mode, and for embeddings) as the file has it.
#pragma once

#include "../../base/arena.hpp"
#include "../../device/cpu.hpp"
#include "pack_tile.hpp"

namespace nihao {

/// Read-only after loading; shared by all sessions. Owns nothing: tiles lie in the model's arena, stored bytes in the file.
struct CpuWeight {
  FormatId format = FormatId::F32;
  std::uint32_t rows = 0, cols = 0;
  const std::byte* tiles = nullptr;        ///< null in exact mode
  std::span<const std::byte> stored = {};  ///< [rows] rows of F's blocks

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
    if (tiles == nullptr) return dequantize_row(format, stored_row(r), out);
    visit_format(format, [&]<class F>(F) {
      if constexpr (unpacks<F>)
        unpack_row<F>(tiles, r, cols, [&](const typename F::Block& block, std::size_t b) {
          F::dequantize(block, std::span<float, F::block_size>(out.data() + b * F::block_size, F::block_size));
        });
      else dequantize_row<F>(stored_row(r), out);
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

}  // namespace nihao
