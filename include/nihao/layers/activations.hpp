// The activations of one step: allocated once for the largest step, so that a step neither allocates nor fails.
#pragma once

#include "../base/checked.hpp"
#include "../base/platform.hpp"
#include "../base/tensor.hpp"

#include <algorithm>
#include <cstdint>

namespace nihao {

/// Widths of what a step keeps, and the most rows it may have.
struct ActivationSizes {
  std::size_t rows, d_model, q_width, kv_width, d_ff, pairs, ropes;
};

/// Buffers of [rows, width] floats, by name. All views of one step have the same `rows`; where a buffer begins depends on it, so
/// that a small step touches little memory. What is never needed at once shares a place: `heads` is where `normed` is, and
/// `q`, `k`, `v` are where `gate` and `up` are.
class Activations {
 public:
  /// Errors: out_of_memory.
  [[nodiscard]] static Expected<Activations> create(const ActivationSizes& s) {
    Activations a;
    a.sizes_ = s;
    a.normed_ = padded(s.d_model);
    a.projected_ = a.normed_ + padded(std::max(s.d_model, s.q_width));
    a.angles_ = a.projected_ + std::max(padded(s.q_width) + 2 * padded(s.kv_width), 2 * padded(s.d_ff));
    a.branch_ = a.angles_ + 2 * s.ropes * padded(s.pairs);
    NIHAO_TRY(a.buffer_, PageBuffer::allocate(s.rows * (a.branch_ + padded(s.d_model)) * sizeof(float)));
    return a;
  }
  Activations() noexcept = default;

  [[nodiscard]] MatrixView<float> x(std::size_t rows) const noexcept {
    return view(0, rows, sizes_.d_model);
  }  ///< residual stream
  [[nodiscard]] MatrixView<float> normed(std::size_t rows) const noexcept { return view(normed_, rows, sizes_.d_model); }
  [[nodiscard]] MatrixView<float> branch(std::size_t rows) const noexcept {
    return view(branch_, rows, sizes_.d_model);
  }  ///< what a layer adds to x; last, as models that add at once never touch it
  [[nodiscard]] MatrixView<float> q(std::size_t rows) const noexcept { return view(projected_, rows, sizes_.q_width); }
  [[nodiscard]] MatrixView<float> k(std::size_t rows) const noexcept {
    return view(projected_ + padded(sizes_.q_width), rows, sizes_.kv_width);
  }
  [[nodiscard]] MatrixView<float> v(std::size_t rows) const noexcept {
    return view(projected_ + padded(sizes_.q_width) + padded(sizes_.kv_width), rows, sizes_.kv_width);
  }
  [[nodiscard]] MatrixView<float> heads(std::size_t rows) const noexcept {
    return view(normed_, rows, sizes_.q_width);
  }  ///< before the o projection
  [[nodiscard]] MatrixView<float> gate(std::size_t rows) const noexcept { return view(projected_, rows, sizes_.d_ff); }
  [[nodiscard]] MatrixView<float> up(std::size_t rows) const noexcept {
    return view(projected_ + padded(sizes_.d_ff), rows, sizes_.d_ff);
  }
  /// cos and sin of rope kind `rope`: [rows, pairs] each.
  [[nodiscard]] MatrixView<float> cos(std::size_t rows, std::size_t rope) const noexcept { return angles(rows, 2 * rope); }
  [[nodiscard]] MatrixView<float> sin(std::size_t rows, std::size_t rope) const noexcept { return angles(rows, 2 * rope + 1); }
  [[nodiscard]] std::size_t bytes() const noexcept { return buffer_.size(); }

 private:
  [[nodiscard]] static std::size_t padded(std::size_t width) noexcept { return round_up<std::size_t>(width, 16); }
  // What lies behind `before` floats of every row of the step.
  [[nodiscard]] MatrixView<float> view(std::size_t before, std::size_t rows, std::size_t width) const noexcept {
    NIHAO_ASSERT(rows <= sizes_.rows);
    return {reinterpret_cast<float*>(buffer_.data()) + rows * before, rows, width};
  }
  [[nodiscard]] MatrixView<float> angles(std::size_t rows, std::size_t part) const noexcept {
    return view(angles_ + part * padded(sizes_.pairs), rows, sizes_.pairs);
  }

  PageBuffer buffer_;
  ActivationSizes sizes_{};
  std::size_t normed_ = 0, projected_ = 0, angles_ = 0, branch_ = 0;  // floats of a row before each
};

}  // namespace nihao
