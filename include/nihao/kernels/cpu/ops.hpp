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

  /// Room for `rows` rows of `cols` columns, behind `before` others of as many columns.
  [[nodiscard]] QuantizedRows quantized(std::size_t rows, std::size_t cols, std::size_t before = 0) const noexcept {
    const std::size_t k = round_up(cols, activation_block), blocks = k / activation_block, at = before * blocks;
    NIHAO_ASSERT(before + grouped_rows(rows) <= rows_ && rows_ * blocks * quantized_block_bytes <= quantized_.size());
    auto* d = reinterpret_cast<float*>(quantized_.data());
    auto* d_sum = d + FineRows::scales * rows_ * blocks;
    auto* sum = reinterpret_cast<std::int32_t*>(d_sum + rows_ * blocks);
    auto* q = reinterpret_cast<std::int8_t*>(sum + 2 * rows_ * blocks);
    return {q + activation_block * at, d + FineRows::scales * at, d_sum + at, sum + 2 * at, k, group_of(rows)};
  }
  /// How many rows those are, whole groups.
  [[nodiscard]] static std::size_t grouped_rows(std::size_t rows) noexcept { return round_up(rows, group_of(rows)); }
  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
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
  // How many of `rows` rows lie side by side.
  [[nodiscard]] static std::size_t group_of(std::size_t rows) noexcept {
    return std::bit_floor(std::min(rows, most_grouped_rows));
  }
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

/// The products of one input: several inputs' are done side by side.
template <class Weight>
struct LinearCall {
  MatrixView<const float> x;  ///< [tokens, k], at least one token
  std::span<const LinearJob<Weight>> jobs;
};

template <>
struct Ops<Cpu> {
  using Weight = CpuWeight;
  using Scratch = CpuScratch;
  using Job = LinearJob<Weight>;
  using Call = LinearCall<Weight>;
  static constexpr std::size_t most_calls = 16;  ///< side by side

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
      MatrixView<const float> in = x;
      if (order != nullptr) {
        const MatrixView<float> moved = scratch.reordered(x.rows(), x.cols());
        each_row(cpu, x.rows(), x.cols(), [&](std::size_t t) {
          for (std::size_t i = 0; i < x.cols(); ++i) moved(t, i) = x(t, order[i]);
        });
        in = moved;
      }
      const Call call{in, jobs.first(n)};
      linear<Q>(cpu, scratch, std::span(&call, 1), precision);
      jobs = jobs.subspan(n);
    }
  }

  /// Up to most_calls calls, whose columns are in the order of their inputs and equally many, in one go: few tokens for each
  /// of many weights keep all threads at work. scratch.rows() holds the grouped_rows() of them all.
  template <class Q>
  static void linear(const Cpu& cpu, const Scratch& scratch, std::span<const Call> calls,
                     InputPrecision precision = InputPrecision::usual) noexcept {
    const bool fine = precision == InputPrecision::fine;
    std::array<Share, most_calls> shares;
    std::size_t rows = 0, grouped = 0, work = 0;
    bool integers = false;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      Share& share = shares[i];
      const std::size_t tokens = calls[i].x.rows(), k = calls[i].x.cols();
      share = {rows, 0, tokens, 1, 0, 0, false, {}};
      for (const Job& job : calls[i].jobs) {
        share.integers = share.integers || (!cpu.exact() && !format_info(job.weight->format).as_floats);
        share.tiles += ceil_div<std::size_t>(job.weight->rows, tile_rows);
      }
      if (share.integers) share.quantized = scratch.quantized(tokens, k, grouped);
      // Tokens in slabs whose quantized rows stay in the second-level cache while all tiles pass over them; slabs of about one
      // size, for a last one of a few rows would read all weights for those.
      const std::size_t most = std::max<std::size_t>(32, (std::size_t{256} << 10) / std::max<std::size_t>(k, 1));
      if (!cpu.exact()) share.slab = round_up<std::size_t>(ceil_div(tokens, ceil_div(tokens, most)), 8);
      share.slabs = ceil_div(tokens, share.slab);
      integers = integers || share.integers;
      rows += tokens, grouped += Scratch::grouped_rows(tokens), work += share.tiles * share.slabs;
    }
    each_row(cpu, integers ? rows : 0, calls[0].x.cols(), [&](std::size_t row) {
      const std::size_t i = share_of(shares, calls.size(), row, &Share::first_row);
      if (!shares[i].integers) return;
      const std::size_t t = row - shares[i].first_row, k = calls[i].x.cols();
      const float* x = calls[i].x.row(t).data();
      if (fine) NIHAO_ON_ISA(cpu.isa(), quantize_row(x, k, FineRows{shares[i].quantized}, t));
      else NIHAO_ON_ISA(cpu.isa(), quantize_row(x, k, shares[i].quantized, t));
    });
    const std::size_t usual = std::max<std::size_t>(1, work / (static_cast<std::size_t>(cpu.workers()) * 16));
    std::size_t tasks = 0;
    for (Share& share : std::span(shares).first(calls.size())) {
      share.each = share.integers ? round_up(usual, most_expanded_tiles) : usual;
      share.first_task = tasks;
      tasks += ceil_div(share.tiles, share.each) * share.slabs;
    }
    cpu.parallel(static_cast<int>(tasks), [&](int task, int worker) {
      const std::size_t i = share_of(shares, calls.size(), static_cast<std::size_t>(task), &Share::first_task);
      const Share& share = shares[i];
      const std::size_t own = static_cast<std::size_t>(task) - share.first_task, in_slab = ceil_div(share.tiles, share.each);
      const std::size_t first_tile = own % in_slab * share.each, first = own / in_slab * share.slab;
      const std::size_t count = std::min(share.slab, calls[i].x.rows() - first);
      std::size_t skipped = 0;
      for (const Job& job : calls[i].jobs) {
        const std::size_t here = ceil_div<std::size_t>(job.weight->rows, tile_rows);
        const std::size_t from = std::max(first_tile, skipped), to = std::min(first_tile + share.each, skipped + here);
        const std::size_t step = cpu.exact() || format_info(job.weight->format).as_floats ? 1 : most_expanded_tiles;
        for (std::size_t tile = from; tile < to; tile += step)
          matmul_one_tile<Q>(
              cpu, TileTask{job.weight, job.out, job.bias, job.accumulate, tile - skipped, std::min(step, to - tile), calls[i].x,
                            share.quantized, fine, first, count, scratch.worker(worker)});
        skipped += here;
      }
    });
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
    const auto begin_of = [&](std::size_t e) { return e < experts.size() ? std::size_t{buffers.offsets[e + 1]} : chosen.size(); };
    for (std::size_t e = 0; e < experts.size();) {
      // Experts side by side, as many as there is room for; one whose columns are reordered, alone.
      std::array<const Expert<Weight>*, most_calls> run;
      std::array<std::size_t, most_calls + 1> ends{};
      const std::size_t first = begin_of(e);
      std::size_t n = 0, grouped = 0;
      for (; e < experts.size(); ++e) {
        const std::size_t end = begin_of(e + 1) - first, count = end - ends[n];
        if (count == 0) continue;
        grouped += Scratch::grouped_rows(count);
        const bool fits = n < most_calls && end <= buffers.gathered.rows() && grouped <= scratch.rows();
        if (n > 0 && (!fits || reordered(experts[e]) || reordered(*run[0]))) break;
        run[n] = &experts[e], ends[++n] = end;
      }
      if (n == 0) break;  // nobody's are left
      const auto slot = [&](std::size_t i) { return std::size_t{buffers.order[first + i]}; };
      const auto some = [&](const MatrixView<float>& all) { return all.slice_rows(0, ends[n]); };
      const MatrixView<float> in = some(buffers.gathered), gate = some(buffers.gate), up = some(buffers.up),
                              y = some(buffers.out);
      each_row(cpu, ends[n], x.cols(), [&](std::size_t i) {
        if constexpr (WeighsInput)
          nihao::scale_and_cap(cpu.isa(), x.row(slot(i) / each), chosen[slot(i)].weight, 0.0f, in.row(i));
        else std::copy_n(x.row(slot(i) / each).data(), x.cols(), in.row(i).data());
      });
      std::array<std::array<Job, 2>, most_calls> both;
      std::array<Job, most_calls> down;
      std::array<Call, most_calls> calls;
      const auto rows_of = [&](const MatrixView<float>& all, std::size_t i) {
        return all.slice_rows(ends[i], ends[i + 1] - ends[i]);
      };
      for (std::size_t i = 0; i < n; ++i) {
        both[i] = {Job{&run[i]->gate, rows_of(gate, i), run[i]->gate_bias}, Job{&run[i]->up, rows_of(up, i), run[i]->up_bias}};
        calls[i] = {rows_of(in, i), both[i]};
      }
      linear_or_reordered<Q>(cpu, scratch, std::span(calls).first(n));
      gated<F>(cpu, gate, up, limit);
      if (buffers.kept.rows() > 0)
        for (std::size_t i = 0; i < ends[n]; ++i)
          std::copy_n(gate.row(i).data(), gate.cols(), buffers.kept.row(slot(i) / each).data() + slot(i) % each * gate.cols());
      for (std::size_t i = 0; i < n; ++i) {
        down[i] = {&run[i]->down, rows_of(y, i), run[i]->down_bias};
        calls[i] = {rows_of(gate, i), std::span(&down[i], 1)};
      }
      linear_or_reordered<Q>(cpu, scratch, std::span(calls).first(n));
      for (std::size_t i = 0; i < n; ++i)  // a token's experts one after the other
        each_row(cpu, ends[i + 1] - ends[i], out.cols(), [&](std::size_t r) {
          const Choice& choice = chosen[slot(ends[i] + r)];
          nihao::add_multiple(cpu.isa(), y.row(ends[i] + r), WeighsInput ? 1.0f : choice.weight,
                              out.row(slot(ends[i] + r) / each));
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
  [[nodiscard]] static bool reordered(const Expert<Weight>& e) noexcept {
    return e.gate.order != nullptr || e.up.order != nullptr || e.down.order != nullptr;
  }
  // Calls of which one may be of weights that have an order of their columns, if it is the only one.
  template <class Q>
  static void linear_or_reordered(const Cpu& cpu, const Scratch& scratch, std::span<const Call> calls) noexcept {
    if (calls.size() == 1) linear<Q>(cpu, scratch, calls[0].x, calls[0].jobs);
    else linear<Q>(cpu, scratch, calls);
  }

  // One call's part of the work of linear().
  struct Share {
    std::size_t first_row;  // among the tokens of all calls
    std::size_t tiles;      // of all jobs
    std::size_t slab, slabs;
    std::size_t each, first_task;  // tiles of a task, and its first among the tasks of all calls
    bool integers;                 // whether any job takes them
    QuantizedRows quantized;
  };
  // The last of `count` shares whose `member` is at most `value`.
  [[nodiscard]] static std::size_t share_of(const std::array<Share, most_calls>& shares, std::size_t count, std::size_t value,
                                            std::size_t Share::* member) noexcept {
    std::size_t i = 0;
    while (i + 1 < count && shares[i + 1].*member <= value) ++i;
    return i;
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
