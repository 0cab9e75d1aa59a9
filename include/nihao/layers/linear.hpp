// The only place for weights: a matrix as the device keeps it, its bias, and what adapters add to it.
#pragma once

#include "../device/ops.hpp"
#include "../format/quant.hpp"
#include "../kernels/batch_view.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace nihao {

/// y = x W^T + b on device D.
template <class D>
struct Linear {
  typename Ops<D>::Weight weight;
  std::vector<float> bias = {};   ///< empty: none
  std::uint32_t id = UINT32_MAX;  ///< its number among a model's linear layers: what adapters find it by

  /// This product as one job of a matmul call.
  [[nodiscard]] typename Ops<D>::Job to(MatrixView<float> out, bool accumulate = false) const noexcept {
    return {&weight, out, bias.empty() ? nullptr : bias.data(), accumulate};
  }
  [[nodiscard]] Work work(std::size_t tokens) const noexcept {
    return {weight.bytes(), 2 * std::uint64_t{weight.rows} * weight.cols * tokens};
  }
};

/// What one adapter adds to a linear layer: y += B (A x). Hu et al. 2021, arXiv:2106.09685.
template <class D>
struct LowRank {
  typename Ops<D>::Weight a;  ///< [rank, k]
  typename Ops<D>::Weight b;  ///< [rows, rank], times the adapter's scale
};

/// Adapters of one model, by number. An adapter has for each linear layer what it adds, or nothing.
template <class D>
class AdapterTable {
 public:
  [[nodiscard]] bool empty() const noexcept { return adapters_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return adapters_.size(); }
  [[nodiscard]] const LowRank<D>* find(std::uint32_t adapter, std::uint32_t linear) const noexcept {
    if (adapter >= adapters_.size() || linear >= adapters_[adapter].index.size()) return nullptr;
    const std::uint32_t at = adapters_[adapter].index[linear];
    return at == UINT32_MAX ? nullptr : &adapters_[adapter].layers[at];
  }
  /// The widest of the ranks: what a step needs room for.
  [[nodiscard]] std::size_t rank() const noexcept { return rank_; }
  /// A new adapter's number, and the place for its layers.
  std::uint32_t add() {
    adapters_.emplace_back();
    return static_cast<std::uint32_t>(adapters_.size() - 1);
  }
  void put(std::uint32_t adapter, std::uint32_t linear, LowRank<D> layer) {
    One& one = adapters_[adapter];
    if (one.index.size() <= linear) one.index.resize(linear + 1, UINT32_MAX);
    one.index[linear] = static_cast<std::uint32_t>(one.layers.size());
    rank_ = std::max<std::size_t>(rank_, layer.a.rows);
    one.layers.push_back(std::move(layer));
  }

 private:
  struct One {
    std::vector<std::uint32_t> index;  // [linear layers]: into layers, or UINT32_MAX
    std::vector<LowRank<D>> layers;
  };
  std::vector<One> adapters_;
  std::size_t rank_ = 0;
};

/// One of the products of an input.
template <class D>
struct Projection {
  const Linear<D>& linear;
  MatrixView<float> out;
  bool accumulate = false;
};

/// What a step's linear layers need beside weights and inputs.
template <class D>
struct Projector {
  const D& device;
  const typename Ops<D>::Scratch& scratch;
  const BatchView& batch;
  const AdapterTable<D>* adapters;
  MatrixView<float> low;  ///< [rows, rank of the adapters]

  /// All projections of x, and what the sequences' adapters add to each.
  template <class Q, std::size_t N>
  void operator()(MatrixView<const float> x, const std::array<Projection<D>, N>& all,
                  InputPrecision precision = InputPrecision::usual) const noexcept {
    std::array<typename Ops<D>::Job, N> jobs;
    for (std::size_t i = 0; i < N; ++i) jobs[i] = all[i].linear.to(all[i].out, all[i].accumulate);
    Ops<D>::template linear<Q>(device, scratch, x, jobs, precision);
    if (adapters->empty()) return;
    for (const Projection<D>& p : all) add_adapters(x, p);
  }

 private:
  // p.out += B (A x), for every sequence by its own adapter; neighbours that share one are one product.
  void add_adapters(MatrixView<const float> x, const Projection<D>& p) const noexcept {
    using Job = typename Ops<D>::Job;
    using Call = typename Ops<D>::Call;
    using Floats = Quant<F32, F16>;
    constexpr std::size_t most = Ops<D>::most_calls;
    for (auto s = batch.sequences.begin(); s != batch.sequences.end();) {
      std::array<Job, most> down, up;
      std::array<Call, most> first, second;
      std::size_t n = 0;
      while (s != batch.sequences.end() && n < most) {
        const SequenceRows& begin = *s;
        std::size_t rows = 0;
        for (; s != batch.sequences.end() && s->adapter == begin.adapter && s->first == begin.first + rows; ++s) rows += s->count;
        const LowRank<D>* more = adapters->find(begin.adapter, p.linear.id);
        if (more == nullptr) continue;
        const MatrixView<float> u = low.slice_rows(begin.first, rows).slice_cols(0, more->a.rows);
        down[n] = {&more->a, u};
        up[n] = {&more->b, p.out.slice_rows(begin.first, rows), nullptr, true};
        first[n] = {x.slice_rows(begin.first, rows), std::span(&down[n], 1)};
        second[n] = {u, std::span(&up[n], 1)};
        ++n;
      }
      if (n == 0) continue;
      Ops<D>::template linear<Floats>(device, scratch, std::span<const Call>(first).first(n));
      Ops<D>::template linear<Floats>(device, scratch, std::span<const Call>(second).first(n));
    }
  }
};

}  // namespace nihao
