// The operations of the CPU: each cuts its work by output and runs kernels on the device's instruction set.
#pragma once

#include "../../device/ops.hpp"
#include "../../format/quant.hpp"
#include "../batch_view.hpp"
#include "../experts.hpp"
#include "../router.hpp"
#include "attention.hpp"
#include "elementwise.hpp"
#include "layer_norm.hpp"
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
  std::size_t value_dim = 0;  ///< 0: head_dim
  bool reorders = false;      ///< whether a weight has an order of its columns
};

/// Memory that operations use while they run. One per session: two sessions never share one.
class CpuScratch {
 public:
  /// Errors: out_of_memory.
  [[nodiscard]] static Expected<CpuScratch> create(const Cpu& cpu, const ScratchShape& shape) {
    CpuScratch s;
    s.k_ = round_up(shape.max_cols, activation_block);
    const std::size_t value_dim = shape.value_dim > 0 ? shape.value_dim : shape.head_dim;
    s.worker_floats_ =
        std::max(attention_scratch(shape.head_dim, value_dim), cpu.exact() ? tile_rows * s.k_ : expanded_scratch());
    s.worker_floats_ = round_up<std::size_t>(s.worker_floats_, 16);
    const std::size_t splits = ceil_div(shape.max_positions, attention_split);
    s.partial_floats_ = splits > 1 ? splits * max_split_rows * shape.heads * attention_partial(value_dim) : 0;
    NIHAO_TRY(s.floats_, PageBuffer::allocate((static_cast<std::size_t>(cpu.workers()) * s.worker_floats_ + s.partial_floats_) *
                                              sizeof(float)));
    const std::size_t blocks = s.k_ / activation_block;
    const std::size_t row_bytes = blocks * quantized_block_bytes;
    s.rows_ = round_up(shape.rows, most_grouped_rows);
    NIHAO_TRY(s.quantized_, PageBuffer::allocate(cpu.exact() ? 0 : s.rows_ * row_bytes + 256));
    if (shape.reorders) { NIHAO_TRY(s.reordered_, PageBuffer::allocate(shape.rows * s.k_ * sizeof(float))); }
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
  /// Room for the input of weights that have an order of their columns.
  [[nodiscard]] MatrixView<float> reordered(std::size_t rows, std::size_t cols) const noexcept {
    NIHAO_ASSERT(rows * cols * sizeof(float) <= reordered_.size());
    return {reinterpret_cast<float*>(reordered_.data()), rows, cols};
  }
  [[nodiscard]] float* worker(int index) const noexcept {
    return reinterpret_cast<float*>(floats_.data()) + static_cast<std::size_t>(index) * worker_floats_;
  }
  [[nodiscard]] std::span<float> partial(int workers) const noexcept { return {worker(workers), partial_floats_}; }
  [[nodiscard]] std::size_t bytes() const noexcept { return floats_.size() + quantized_.size() + reordered_.size(); }

 private:
  // Of one block of a row: integers, two scales, d_sum, two sums.
  static constexpr std::size_t quantized_block_bytes = activation_block + 5 * sizeof(float);
  PageBuffer floats_, quantized_, reordered_;
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
  /// The same from rows that are made as they are packed.
  [[nodiscard]] static Expected<Weight> prepare(const Cpu& cpu, FormatId format, std::uint32_t rows, std::uint32_t cols,
                                                RowMaker make, const WeightTerms& terms, Arena& arena) {
    return pack_weight(cpu, format, rows, cols, make, terms, arena);
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

  /// All `jobs` on the same input x: [tokens, k]. Quantizes x once for all neighbours whose columns are in the same order. Q says
  /// which formats' kernels exist.
  template <class Q>
  static void linear(const Cpu& cpu, const Scratch& scratch, MatrixView<const float> x, std::span<const Job> jobs,
                     InputPrecision precision = InputPrecision::usual) noexcept {
    while (!jobs.empty()) {
      const std::uint32_t* const order = jobs[0].weight->order;
      std::size_t n = 1;
      while (n < jobs.size() && jobs[n].weight->order == order) ++n;
      if (order == nullptr) {
        linear_in_order<Q>(cpu, scratch, x, jobs.first(n), precision);
      } else {
        const MatrixView<float> moved = scratch.reordered(x.rows(), x.cols());
        each_row(cpu, x.rows(), x.cols(), [&](std::size_t t) {
          for (std::size_t i = 0; i < x.cols(); ++i) moved(t, i) = x(t, order[i]);
        });
        linear_in_order<Q>(cpu, scratch, moved, jobs.first(n), precision);
      }
      jobs = jobs.subspan(n);
    }
  }

  /// Head h of out = weights[h] times head h of x: heads begin every x_stride columns of x, every out_stride of out. A weight is
  /// [n, k], of floats; n and k are at most the strides.
  static void linear_heads(const Cpu& cpu, const Scratch& scratch, MatrixView<const float> x, std::size_t x_stride,
                           std::span<const Weight> weights, MatrixView<float> out, std::size_t out_stride) noexcept {
    const std::size_t n = weights[0].rows, k = weights[0].cols, tiles = ceil_div<std::size_t>(n, tile_rows);
    cpu.parallel(static_cast<int>(weights.size()), [&](int head, int worker) {
      const auto h = static_cast<std::size_t>(head);
      for (std::size_t tile = 0; tile < tiles; ++tile)
        matmul_one_tile<Quant<F32, F16, BF16>>(cpu, TileTask{&weights[h],
                                                             out.slice_cols(h * out_stride, n),
                                                             nullptr,
                                                             false,
                                                             tile,
                                                             1,
                                                             x.slice_cols(h * x_stride, k),
                                                             {},
                                                             false,
                                                             0,
                                                             x.rows(),
                                                             scratch.worker(worker)});
    });
  }

  /// Columns [from, from + width) of every head of x become columns [to, to + width) of that head of out. A head is a
  /// `heads`th of a row; an x as narrow as `width` gives the same to all.
  static void copy_heads(const Cpu& cpu, MatrixView<const float> x, std::size_t from, MatrixView<float> out, std::size_t to,
                         std::size_t width, std::size_t heads) noexcept {
    const std::size_t x_stride = x.cols() > width ? x.cols() / heads : 0, out_stride = out.cols() / heads;
    each_row(cpu, x.rows(), heads * width, [&](std::size_t t) {
      for (std::size_t h = 0; h < heads; ++h)
        std::copy_n(x.row(t).data() + h * x_stride + from, width, out.row(t).data() + h * out_stride + to);
    });
  }

  /// The choices of every row: logits is [tokens, experts], bias [experts] or empty, chosen [tokens * shape.chosen].
  template <class Router>
  static void route(const Cpu& cpu, const RouterShape& shape, MatrixView<const float> logits, std::span<const float> bias,
                    std::span<Choice> chosen) noexcept {
    each_row(cpu, logits.rows(), 16 * logits.cols(),
             [&](std::size_t t) { Router::route(shape, logits.row(t), bias, chosen.subspan(t * shape.chosen, shape.chosen)); });
  }

  /// out = for every row the sum of its choices' outputs times their weights, in the order of the experts; or, if WeighsInput, of
  /// the outputs for the row times the weight. Rows are gathered by expert, so that each expert that is chosen is read once, and
  /// no other. x, out: [tokens, d_model].
  template <class Q, class F, bool WeighsInput>
  static void experts(const Cpu& cpu, const Scratch& scratch, MatrixView<const float> x, std::span<const Expert<Weight>> experts,
                      std::span<const Choice> chosen, const ExpertBuffers& buffers, MatrixView<float> out, float limit) noexcept {
    const std::size_t each = chosen.size() / x.rows();
    const auto expert_of = [&](std::size_t slot) { return static_cast<std::size_t>(chosen[slot].expert); };
    std::fill(buffers.offsets.begin(), buffers.offsets.end(), 0u);
    for (std::size_t slot = 0; slot < chosen.size(); ++slot) ++buffers.offsets[expert_of(slot) + 1];
    for (std::size_t e = 0; e < experts.size(); ++e) buffers.offsets[e + 1] += buffers.offsets[e];
    for (std::size_t slot = chosen.size(); slot-- > 0;)  // from behind: offsets[e + 1] comes to where expert e begins
      buffers.order[--buffers.offsets[expert_of(slot) + 1]] = static_cast<std::uint32_t>(slot);
    each_row(cpu, out.rows(), out.cols(), [&](std::size_t t) { std::fill(out.row(t).begin(), out.row(t).end(), 0.0f); });
    for (std::size_t e = 0; e < experts.size(); ++e) {
      const std::size_t first = buffers.offsets[e + 1], end = e + 1 < experts.size() ? buffers.offsets[e + 2] : chosen.size();
      if (first == end) continue;
      const std::size_t count = end - first;
      const auto slot = [&](std::size_t i) { return std::size_t{buffers.order[first + i]}; };
      const Expert<Weight>& w = experts[e];
      const auto some = [&](const MatrixView<float>& all) { return all.slice_rows(0, count); };
      const MatrixView<float> in = some(buffers.gathered), gate = some(buffers.gate), up = some(buffers.up),
                              y = some(buffers.out);
      each_row(cpu, count, x.cols(), [&](std::size_t i) {
        if constexpr (WeighsInput)
          nihao::scale_and_cap(cpu.isa(), x.row(slot(i) / each), chosen[slot(i)].weight, 0.0f, in.row(i));
        else std::copy_n(x.row(slot(i) / each).data(), x.cols(), in.row(i).data());
      });
      const std::array<Job, 2> both{Job{&w.gate, gate, w.gate_bias}, Job{&w.up, up, w.up_bias}};
      linear<Q>(cpu, scratch, in, both);
      gated<F>(cpu, gate, up, limit);
      const std::array<Job, 1> down{Job{&w.down, y, w.down_bias}};
      linear<Q>(cpu, scratch, gate, down);
      each_row(cpu, count, out.cols(), [&](std::size_t i) {
        nihao::add_multiple(cpu.isa(), y.row(i), WeighsInput ? 1.0f : chosen[slot(i)].weight, out.row(slot(i) / each));
      });
    }
  }

  /// y = rms_norm(x) * weight, row by row; y may be x.
  static void rms_norm(const Cpu& cpu, MatrixView<const float> x, std::span<const float> weight, float eps,
                       MatrixView<float> y) noexcept {
    each_row(cpu, x.rows(), x.cols(), [&](std::size_t t) { nihao::rms_norm(cpu.isa(), x.row(t), weight, eps, y.row(t)); });
  }

  /// y = layer_norm(x) * weight + bias, row by row; bias may be empty, y may be x.
  static void layer_norm(const Cpu& cpu, MatrixView<const float> x, std::span<const float> weight, std::span<const float> bias,
                         float eps, MatrixView<float> y) noexcept {
    each_row(cpu, x.rows(), x.cols(),
             [&](std::size_t t) { nihao::layer_norm(cpu.isa(), x.row(t), weight, bias, eps, y.row(t)); });
  }

  /// rms_norm for every head of width weight.size() within a row, in place.
  static void rms_norm_heads(const Cpu& cpu, MatrixView<float> x, std::span<const float> weight, float eps) noexcept {
    each_row(cpu, x.rows(), x.cols(), [&](std::size_t t) {
      for (std::size_t i = 0; i < x.cols(); i += weight.size()) {
        const auto head = x.row(t).subspan(i, weight.size());
        nihao::rms_norm(cpu.isa(), head, weight, eps, head);
      }
    });
  }

  /// Turns every head of every row: x is [tokens, heads * head_dim], cos and sin [tokens, pairs]. Of a head the 2 * pairs values
  /// from `offset` on are turned, the others stay.
  static void rope(const Cpu& cpu, MatrixView<float> x, std::size_t head_dim, MatrixView<const float> cos,
                   MatrixView<const float> sin, RopeStyle style, std::size_t offset = 0) noexcept {
    each_row(cpu, x.rows(), x.cols(), [&](std::size_t t) {
      for (std::size_t i = offset; i < x.cols(); i += head_dim)
        nihao::rope(cpu.isa(), x.row(t).subspan(i, 2 * cos.cols()), cos.row(t), sin.row(t), style);
    });
  }

  /// x = cap * tanh(factor * x / cap), or factor * x if cap is 0.
  static void scale_and_cap(const Cpu& cpu, MatrixView<float> x, float factor, float cap) noexcept {
    each_row(cpu, x.rows(), x.cols(), [&](std::size_t t) { nihao::scale_and_cap(cpu.isa(), x.row(t), factor, cap, x.row(t)); });
  }

  /// Row t of x times factors[t].
  static void scale_rows(const Cpu& cpu, MatrixView<float> x, std::span<const float> factors) noexcept {
    each_row(cpu, x.rows(), x.cols(),
             [&](std::size_t t) { nihao::scale_and_cap(cpu.isa(), x.row(t), factors[t], 0.0f, x.row(t)); });
  }

  /// Stores the rows' keys and values, [tokens, kv_heads * head_dim] and [tokens, kv_heads * value width], at their positions;
  /// `values` is not read where they lie in the keys.
  static void append(const Cpu& cpu, const KvLayout& layout, std::byte* base, const BatchView& batch,
                     MatrixView<const float> keys, MatrixView<const float> values) noexcept {
    const std::size_t d = layout.key().width, width = layout.value().width;
    for (const SequenceRows& s : batch.sequences) {
      const KvView kv{layout, base, s.blocks};
      each_row(cpu, s.count, layout.kv_heads * (d + width), [&](std::size_t i) {
        const std::size_t t = s.first + i;
        const auto position = static_cast<std::size_t>(batch.position[t]);
        const std::size_t p = position % kv_block;
        for (std::size_t h = 0; h < layout.kv_heads; ++h) {
          NIHAO_ON_ISA(cpu.isa(),
                       store_part(layout.key(), kv.keys(position / kv_block, h), keys.row(t).data() + h * d, p, kv_block, p));
          if (layout.values_in_keys) continue;
          NIHAO_ON_ISA(cpu.isa(), store_part(layout.value(), kv.values(position / kv_block, h), values.row(t).data() + h * width,
                                             p * width, 1, p));
        }
      });
    }
  }

  /// out = attention of every row over its own sequence up to itself. q: [tokens, heads * head_dim], out: [tokens, heads * value
  /// width].
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
      const std::size_t rows = s.count * group, size = attention_partial(shape.value_width());
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
  static void gated(const Cpu& cpu, MatrixView<float> gate, MatrixView<const float> up, float limit = 0) noexcept {
    each_row(cpu, gate.rows(), gate.cols(),
             [&](std::size_t t) { nihao::gated<F>(cpu.isa(), gate.row(t), up.row(t), gate.row(t), limit); });
  }

  /// x cut off at +- limit.
  static void clip(const Cpu& cpu, MatrixView<float> x, float limit) noexcept {
    each_row(cpu, x.rows(), x.cols(), [&](std::size_t t) { nihao::clip(cpu.isa(), x.row(t), limit); });
  }

  /// x += factor * y
  static void add(const Cpu& cpu, MatrixView<float> x, MatrixView<const float> y, float factor = 1) noexcept {
    each_row(cpu, x.rows(), x.cols(), [&](std::size_t t) { nihao::add_multiple(cpu.isa(), y.row(t), factor, x.row(t)); });
  }

 private:
  template <class Q>
  static void linear_in_order(const Cpu& cpu, const Scratch& scratch, MatrixView<const float> x, std::span<const Job> jobs,
                              InputPrecision precision) noexcept {
    const std::size_t tokens = x.rows(), k = x.cols();
    const bool fine = precision == InputPrecision::fine;
    QuantizedRows quantized{};
    bool any_quantized = false;
    std::size_t tiles = 0;
    for (const Job& job : jobs) {
      any_quantized = any_quantized || !format_info(job.weight->format).as_floats;
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
        const std::size_t step = !format_info(job.weight->format).as_floats ? together : 1;
        for (std::size_t tile = from; tile < to; tile += step)
          matmul_one_tile<Q>(cpu, TileTask{job.weight, job.out, job.bias, job.accumulate, tile - skipped,
                                           std::min(step, to - tile), x, quantized, fine, first, count, scratch.worker(worker)});
        skipped += here;
      }
    });
  }

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
