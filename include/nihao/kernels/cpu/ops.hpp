// The operations of the CPU: each cuts its work by output and runs kernels on the device's instruction set.
#pragma once

#include "../../device/ops.hpp"
#include "../../format/quant.hpp"
#include "../batch_view.hpp"
#include "attention.hpp"
#include "elementwise.hpp"
#include "matmul_tile.hpp"
#include "rms_norm.hpp"

#include <bit>

namespace nihao {

/// The largest step a scratch is made for.
struct ScratchShape {
  std::size_t rows;      ///< of the batch
  std::size_t max_cols;  ///< widest matmul input
  std::size_t head_dim, heads;
  std::size_t max_positions;
};

/// Memory that operations use while they run. One per session: two sessions never share one.
class CpuScratch {
 public:
  /// Errors: out_of_memory.
  [[nodiscard]] static Expected<CpuScratch> create(const Cpu& cpu, const ScratchShape& shape) {
    CpuScratch s;
    s.k_ = round_up(shape.max_cols, activation_block);
    s.worker_floats_ = std::max(attention_scratch(shape.head_dim), cpu.exact() ? tile_rows * s.k_ : expanded_scratch());
    s.worker_floats_ = round_up<std::size_t>(s.worker_floats_, 16);
    const std::size_t splits = ceil_div(shape.max_positions, attention_split);
    s.partial_floats_ = splits > 1 ? splits * max_split_rows * shape.heads * attention_partial(shape.head_dim) : 0;
    NIHAO_TRY(s.floats_, PageBuffer::allocate((static_cast<std::size_t>(cpu.workers()) * s.worker_floats_ + s.partial_floats_) *
                                              sizeof(float)));
    const std::size_t blocks = s.k_ / activation_block;
    const std::size_t row_bytes = blocks * quantized_block_bytes;
    s.rows_ = round_up(shape.rows, most_grouped_rows);
    NIHAO_TRY(s.quantized_, PageBuffer::allocate(cpu.exact() ? 0 : s.rows_ * row_bytes + 256));
    return s;
  }
  CpuScratch() noexcept = default;

  /// Rows of a step up to which attention may be cut by splits too.
  static constexpr std::size_t max_split_rows = 16;

  /// Room for `rows` rows of `cols` columns.
  [[nodiscard]] QuantizedRows quantized(std::size_t rows, std::size_t cols) const noexcept {
    const std::size_t k = round_up(cols, activation_block), blocks = k / activation_block;
    NIHAO_ASSERT(rows_ * blocks * quantized_block_bytes <= quantized_.size());
    auto* d = reinterpret_cast<float*>(quantized_.data());
    auto* d_sum = d + FineRows::scales * rows_ * blocks;
    auto* sum = reinterpret_cast<std::int32_t*>(d_sum + rows_ * blocks);
    return {reinterpret_cast<std::int8_t*>(sum + 2 * rows_ * blocks), d, d_sum, sum, k,
            std::bit_floor(std::min(rows, most_grouped_rows))};
  }
  [[nodiscard]] float* worker(int index) const noexcept {
    return reinterpret_cast<float*>(floats_.data()) + static_cast<std::size_t>(index) * worker_floats_;
  }
  [[nodiscard]] std::span<float> partial(int workers) const noexcept { return {worker(workers), partial_floats_}; }
  [[nodiscard]] std::size_t bytes() const noexcept { return floats_.size() + quantized_.size(); }

 private:
  // Of one block of a row: integers, two scales, d_sum, two sums.
  static constexpr std::size_t quantized_block_bytes = activation_block + 5 * sizeof(float);
  PageBuffer floats_, quantized_;
  std::size_t rows_ = 0, k_ = 0, worker_floats_ = 0, partial_floats_ = 0;
};

/// One product of a matmul call: out = x W^T (+ bias), or out += that.
template <class Weight>
struct LinearJob {
  const Weight* weight;         ///< [rows, k]
  MatrixView<float> out;        ///< [tokens, rows]
  const float* bias = nullptr;  ///< [rows] or null
  bool accumulate = false;
};

template <>
struct Ops<Cpu> {
  using Weight = CpuWeight;
  using Scratch = CpuScratch;
  using Job = LinearJob<Weight>;

  [[nodiscard]] static Expected<Weight> prepare(const Cpu& cpu, FormatId format, std::uint32_t rows, std::uint32_t cols,
                                                std::span<const std::byte> stored, Arena& arena, bool release) {
    return pack_weight(cpu, format, rows, cols, stored, arena, release);
  }

  /// A matrix whose rows are looked up: nothing is packed.
  [[nodiscard]] static Weight table(FormatId format, std::uint32_t rows, std::uint32_t cols,
                                    std::span<const std::byte> stored) noexcept {
    return {format, rows, cols, nullptr, stored};
  }

  /// out[t] = scale * row ids[t] of the table. ids are in range.
  static void embed(const Cpu& cpu, const Weight& table, std::span<const std::int32_t> ids, float scale,
                    MatrixView<float> out) noexcept {
    each_row(cpu, ids.size(), table.cols, [&](std::size_t t) {
      const auto row = out.row(t);
      table.read_row(static_cast<std::size_t>(ids[t]), row);
      if (scale != 1.0f)
        for (float& v : row) v *= scale;
    });
  }

  /// All `jobs` on the same input x: [tokens, k]. Quantizes x once. Q says which formats' kernels exist.
  template <class Q>
  static void linear(const Cpu& cpu, const Scratch& scratch, MatrixView<const float> x, std::span<const Job> jobs,
                     InputPrecision precision = InputPrecision::usual) noexcept {
    const std::size_t tokens = x.rows(), k = x.cols();
    const bool fine = precision == InputPrecision::fine;
    QuantizedRows quantized{};
    bool any_quantized = false;
    std::size_t tiles = 0;
    for (const Job& job : jobs) {
      any_quantized = any_quantized || format_info(job.weight->format).block_size > 1;
      tiles += ceil_div<std::size_t>(job.weight->rows, tile_rows);
    }
    if (any_quantized && !cpu.exact()) {
      quantized = scratch.quantized(tokens, k);
      each_row(cpu, tokens, k, [&](std::size_t t) {
        if (fine) NIHAO_ON_ISA(cpu.isa(), quantize_row(x.row(t).data(), k, FineRows{quantized}, t));
        else NIHAO_ON_ISA(cpu.isa(), quantize_row(x.row(t).data(), k, quantized, t));
      });
    }
    // Tokens in slabs whose quantized rows stay in the second-level cache while all tiles pass over them; slabs of about one
    // size, for a last one of a few rows would read all weights for those.
    const std::size_t most = std::max<std::size_t>(32, (std::size_t{256} << 10) / std::max<std::size_t>(k, 1));
    const std::size_t even = ceil_div(tokens, std::max<std::size_t>(1, ceil_div(tokens, most)));
    const std::size_t slab = std::max<std::size_t>(1, cpu.exact() ? tokens : round_up<std::size_t>(even, 8));
    const std::size_t slabs = ceil_div(tokens, slab);
    const std::size_t together = cpu.exact() || !any_quantized ? 1 : most_expanded_tiles;
    const std::size_t each =
        round_up(std::max<std::size_t>(1, tiles * slabs / (static_cast<std::size_t>(cpu.workers()) * 16)), together);
    const std::size_t tasks_per_slab = ceil_div(tiles, each);
    cpu.parallel(static_cast<int>(tasks_per_slab * slabs), [&](int task, int worker) {
      const std::size_t s = static_cast<std::size_t>(task) / tasks_per_slab,
                        first_tile = static_cast<std::size_t>(task) % tasks_per_slab * each;
      const std::size_t first = s * slab, count = std::min(slab, tokens - first);
      std::size_t skipped = 0;
      for (const Job& job : jobs) {
        const std::size_t here = ceil_div<std::size_t>(job.weight->rows, tile_rows);
        const std::size_t from = std::max(first_tile, skipped), to = std::min(first_tile + each, skipped + here);
        const std::size_t step = format_info(job.weight->format).block_size > 1 ? together : 1;
        for (std::size_t tile = from; tile < to; tile += step)
          matmul_one_tile<Q>(cpu, TileTask{job.weight, job.out, job.bias, job.accumulate, tile - skipped,
                                           std::min(step, to - tile), x, quantized, fine, first, count, scratch.worker(worker)});
        skipped += here;
      }
    });
  }

  /// y = rms_norm(x) * weight, row by row; y may be x.
  static void rms_norm(const Cpu& cpu, MatrixView<const float> x, std::span<const float> weight, float eps,
                       MatrixView<float> y) noexcept {
    each_row(cpu, x.rows(), x.cols(), [&](std::size_t t) { nihao::rms_norm(cpu.isa(), x.row(t), weight, eps, y.row(t)); });
  }

  /// The same for every head of width weight.size() within a row, in place.
  static void rms_norm_heads(const Cpu& cpu, MatrixView<float> x, std::span<const float> weight, float eps) noexcept {
    each_row(cpu, x.rows(), x.cols(), [&](std::size_t t) {
      for (std::size_t i = 0; i < x.cols(); i += weight.size()) {
        const auto head = x.row(t).subspan(i, weight.size());
        nihao::rms_norm(cpu.isa(), head, weight, eps, head);
      }
    });
  }

  /// Turns every head of every row: x is [tokens, heads * head_dim], cos and sin [tokens, pairs].
  static void rope(const Cpu& cpu, MatrixView<float> x, std::size_t head_dim, MatrixView<const float> cos,
                   MatrixView<const float> sin, RopeStyle style) noexcept {
    each_row(cpu, x.rows(), x.cols(), [&](std::size_t t) {
      for (std::size_t i = 0; i < x.cols(); i += head_dim)
        nihao::rope(cpu.isa(), x.row(t).subspan(i, head_dim), cos.row(t), sin.row(t), style);
    });
  }

  /// Stores the rows' keys and values, [tokens, kv_heads * head_dim], at their positions.
  static void append(const Cpu& cpu, const KvLayout& layout, std::byte* base, const BatchView& batch,
                     MatrixView<const float> keys, MatrixView<const float> values) noexcept {
    const std::size_t d = layout.head_dim;
    for (const SequenceRows& s : batch.sequences) {
      const KvView kv{layout, base, s.blocks};
      each_row(cpu, s.count, layout.kv_heads * d, [&](std::size_t i) {
        const std::size_t t = s.first + i;
        const auto position = static_cast<std::size_t>(batch.position[t]);
        const std::size_t p = position % kv_block;
        for (std::size_t h = 0; h < layout.kv_heads; ++h) {
          NIHAO_ON_ISA(cpu.isa(),
                       store_part(layout, kv.keys(position / kv_block, h), keys.row(t).data() + h * d, p, kv_block, p));
          NIHAO_ON_ISA(cpu.isa(),
                       store_part(layout, kv.values(position / kv_block, h), values.row(t).data() + h * d, p * d, 1, p));
        }
      });
    }
  }

  /// out = attention of every row over its own sequence up to itself. q, out: [tokens, heads * head_dim].
  static void attention(const Cpu& cpu, const Scratch& scratch, const AttentionShape& shape, const KvLayout& layout,
                        std::byte* base, const BatchView& batch, MatrixView<const float> q, MatrixView<float> out) noexcept {
    const std::size_t group = shape.heads / shape.kv_heads;
    const auto rows_of = [&](const SequenceRows& s, std::size_t kv_head, std::size_t first) {
      return AttentionRows{q.row(s.first).data(),
                           out.row(s.first).data(),
                           q.stride(),
                           out.stride(),
                           batch.position.data() + s.first,
                           kv_head,
                           group,
                           first,
                           std::min(attention_rows, s.count * group - first)};
    };
    const auto slices_of = [&](const SequenceRows& s) { return ceil_div(s.count * group, attention_rows); };
    // Task `task` of sequence s: a slice of one kv head's rows. Later slices see more positions: they go first, so that the last
    // tasks are short.
    const auto one = [&](const SequenceRows& s, std::size_t task, int worker) {
      const std::size_t slice = slices_of(s) - 1 - task / shape.kv_heads, head = task % shape.kv_heads;
      const KvView kv{layout, base, s.blocks};
      NIHAO_ON_ISA(cpu.isa(), attention(shape, kv, rows_of(s, head, slice * attention_rows), scratch.worker(worker)));
    };
    std::size_t tasks = 0;
    for (const SequenceRows& s : batch.sequences) tasks += slices_of(s) * shape.kv_heads;
    if (cpu.workers() == 1 || tasks >= 2 * static_cast<std::size_t>(cpu.workers()))
      return cpu.parallel(static_cast<int>(tasks), [&](int task, int worker) {
        auto left = static_cast<std::size_t>(task);
        const SequenceRows* s = batch.sequences.data();
        for (; left >= slices_of(*s) * shape.kv_heads; ++s) left -= slices_of(*s) * shape.kv_heads;
        one(*s, left, worker);
      });
    for (const SequenceRows& s : batch.sequences) {
      const auto last = static_cast<std::size_t>(batch.position[s.first + s.count - 1]);
      const std::size_t splits = last / attention_split + 1;
      if (splits == 1 || slices_of(s) > 1 || s.count > CpuScratch::max_split_rows) {
        cpu.parallel(static_cast<int>(slices_of(s) * shape.kv_heads),
                     [&](int task, int worker) { one(s, static_cast<std::size_t>(task), worker); });
        continue;
      }
      // Too few heads to go round: the splits of each are tasks too. The arithmetic is that of the other branches.
      const KvView kv{layout, base, s.blocks};
      const std::span<float> partial = scratch.partial(cpu.workers());
      const std::size_t rows = s.count * group, size = attention_partial(shape.head_dim);
      NIHAO_ASSERT(splits * rows * shape.kv_heads * size <= partial.size());
      cpu.parallel(static_cast<int>(shape.kv_heads * splits), [&](int task, int worker) {
        const std::size_t head = static_cast<std::size_t>(task) / splits, split = static_cast<std::size_t>(task) % splits;
        float* to = partial.data() + (head * splits + split) * rows * size;
        NIHAO_ON_ISA(cpu.isa(), attention_one_split(shape, kv, rows_of(s, head, 0), split, to, scratch.worker(worker)));
      });
      for (std::size_t head = 0; head < shape.kv_heads; ++head)
        NIHAO_ON_ISA(cpu.isa(),
                     attention_merge(shape, rows_of(s, head, 0), splits, partial.data() + head * splits * rows * size));
    }
  }

  /// gate = F(gate) * up
  template <class F>
  static void gated(const Cpu& cpu, MatrixView<float> gate, MatrixView<const float> up) noexcept {
    each_row(cpu, gate.rows(), gate.cols(),
             [&](std::size_t t) { nihao::gated<F>(cpu.isa(), gate.row(t), up.row(t), gate.row(t)); });
  }

  /// x += y
  static void add(const Cpu& cpu, MatrixView<float> x, MatrixView<const float> y) noexcept {
    each_row(cpu, x.rows(), x.cols(), [&](std::size_t t) { nihao::add(cpu.isa(), x.row(t), y.row(t), x.row(t)); });
  }

 private:
  // A few rows are quicker done here than handed over.
  template <class F>
  static void each_row(const Cpu& cpu, std::size_t rows, std::size_t width, const F& f) noexcept {
    if (rows * width < 16384 || rows < 4) {
      for (std::size_t t = 0; t < rows; ++t) f(t);
      return;
    }
    const std::size_t each = std::max<std::size_t>(1, rows / (static_cast<std::size_t>(cpu.workers()) * 4));
    cpu.parallel(static_cast<int>(ceil_div(rows, each)), [&](int i, int) {
      const std::size_t first = static_cast<std::size_t>(i) * each;
      for (std::size_t t = first; t < std::min(first + each, rows); ++t) f(t);
    });
  }
};

}  // namespace nihao
