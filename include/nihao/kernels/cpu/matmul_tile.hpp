// One or two tiles of a matmul, for a format and an instruction set known at run time: where the kernels are instantiated.
#pragma once

#include "../../format/quant.hpp"
#include "expanded_tile.hpp"
#include "matmul.hpp"
#include "weight.hpp"

namespace nihao {

/// Sixteen rows of a weight times some tokens, or twice sixteen.
struct TileTask {
  const CpuWeight* weight;  ///< [rows, k]
  MatrixView<float> out;    ///< [tokens, rows]
  const float* bias;        ///< [rows] or null
  bool accumulate;
  std::size_t tile;           ///< rows [16 tile, 16 (tile + tiles))
  std::size_t tiles;          ///< 1 to most_expanded_tiles; 1 in the exact mode and for float weights
  MatrixView<const float> x;  ///< [tokens, k]
  QuantizedRows quantized;    ///< the same, for formats that are multiplied as integers
  bool fine;                  ///< those are FineRows
  std::size_t first, count;   ///< tokens
  float* scratch;             ///< exact mode: [k][16] floats; else expanded_scratch()
};

namespace detail {

// The copy of matmul_tile<F> for `isa`.
template <Isa isa, class F, class X>
void matmul_tile_on(const Tile<F>* w, const X& x, std::size_t first, std::size_t count, const TileOutput& out) noexcept {
  NIHAO_RETURN_ON_ISA(isa, matmul_tile<F>(w, x, first, count, out));
}
// The same of matmul_expanded<F>.
template <Isa isa, class F>
void matmul_expanded_on(const Tile<F>* w, std::size_t tiles, const QuantizedRows& x, std::size_t first, std::size_t count,
                        const TileOutput* out, float* scratch) noexcept {
  if constexpr (requires(const Tile<F>& t) { t.min; }) {  // sixteen columns with a minimum of their own: one way for all
    for (std::size_t i = 0; i < tiles; ++i) matmul_tile_on<isa, F>(w + i * (x.k / F::block_size), x, first, count, out[i]);
  } else {
    NIHAO_RETURN_ON_ISA(isa, matmul_expanded<F>(w, tiles, x, first, count, out, scratch));
  }
}

// Row r of the matrix into column `lane` of a [k][16] tile of floats.
template <class Q>
void expand_row(const CpuWeight& w, std::size_t r, float* tile, std::size_t lane) noexcept {
  Q::visit(w.format, [&]<class F>(F) {
    float values[F::block_size];
    std::size_t i = 0;
    for (const auto& block : as_blocks<F>(w.stored_row(r))) {
      F::dequantize(block, values);
      for (const float v : values) tile[i++ * tile_rows + lane] = v;
    }
  });
}

template <Isa isa, class Q>
void matmul_one_tile(const TileTask& task) noexcept {
  const CpuWeight& w = *task.weight;
  const std::size_t row = task.tile * tile_rows;
  const auto output = [&](std::size_t first) {
    return TileOutput{task.out.data() + first,
                      task.out.stride(),
                      static_cast<int>(std::min(tile_rows, w.rows - first)),
                      task.bias == nullptr ? nullptr : task.bias + first,
                      task.accumulate,
                      static_cast<float>(w.scale)};
  };
  const FloatRows floats{task.x.data(), task.x.stride(), task.x.cols()};
  if (w.tiles == nullptr) {  // exact: the tile's rows as floats, side by side
    for (std::size_t r = 0; r < tile_rows; ++r) {
      if (row + r < w.rows) expand_row<Q>(w, row + r, task.scratch, r);
      else
        for (std::size_t i = 0; i < w.cols; ++i) task.scratch[i * tile_rows + r] = 0;
    }
    return matmul_tile_on<isa, F32>(reinterpret_cast<const Tile<F32>*>(task.scratch), floats, task.first, task.count,
                                    output(row));
  }
  Q::visit(w.format, [&]<class F>(F) {
    const auto* tiles = reinterpret_cast<const Tile<F>*>(w.tiles) + task.tile * (w.cols / F::block_size);
    if constexpr (multiplied_as_floats<F>) matmul_tile_on<isa, F>(tiles, floats, task.first, task.count, output(row));
    else {
      const QuantizedRows& x = task.quantized;
      TileOutput outs[most_expanded_tiles];
      for (std::size_t i = 0; i < task.tiles; ++i) outs[i] = output(row + i * tile_rows);
      const std::size_t per_row = w.cols / F::block_size;
      if (task.count > few_rows && !task.fine)
        return matmul_expanded_on<isa, F>(tiles, task.tiles, x, task.first, task.count, outs, task.scratch);
      for (std::size_t i = 0; i < task.tiles; ++i) {
        if (task.fine) matmul_tile_on<isa, F>(tiles + i * per_row, FineRows{x}, task.first, task.count, outs[i]);
        else matmul_tile_on<isa, F>(tiles + i * per_row, x, task.first, task.count, outs[i]);
      }
    }
  });
}

#if NIHAO_COMPILED  // nihao::compiled has these, one unit per set
#define NIHAO_COMPILED_TILE(set, ...) extern template void matmul_one_tile<Isa::set, Quant<Any>>(const TileTask&) noexcept;
NIHAO_EACH_ISA(NIHAO_COMPILED_TILE)
NIHAO_COMPILED_TILE(portable)
#undef NIHAO_COMPILED_TILE
#endif

}  // namespace detail

/// Runs `task` on `cpu`'s instruction set. Q says which formats' kernels exist.
template <class Q>
void matmul_one_tile(const Cpu& cpu, const TileTask& task) noexcept {
#define NIHAO_TILE_CASE(set, ...) \
  case Isa::set: return detail::matmul_one_tile<Isa::set, Q>(task);
  switch (cpu.isa()) {
    NIHAO_EACH_ISA(NIHAO_TILE_CASE)
    default: return detail::matmul_one_tile<Isa::portable, Q>(task);
  }
#undef NIHAO_TILE_CASE
}

}  // namespace nihao
