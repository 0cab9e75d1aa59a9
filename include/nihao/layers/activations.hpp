// The activations of one step: allocated once for the largest step, so that a step neither allocates nor fails.
#pragma once

#include "../base/checked.hpp"
#include "../base/platform.hpp"
#include "../base/tensor.hpp"

#include <array>
#include <cstdint>

namespace nihao {

/// Widths of what a step keeps, and the most rows it may have.
struct ActivationSizes {
  std::size_t rows, d_model, q_width, kv_width, d_ff, pairs, ropes;
};

/// Buffers of [rows, width] floats, by name.
class Activations {
 public:
  /// Errors: out_of_memory.
  [[nodiscard]] static Expected<Activations> create(const ActivationSizes& s) {
    Activations a;
    a.sizes_ = s;
    const std::array<std::size_t, buffers> widths{s.d_model,  s.d_model, s.d_model, s.q_width, s.kv_width,
                                                  s.kv_width, s.q_width, s.d_ff,    s.d_ff,    2 * s.pairs * s.ropes};
    std::size_t at = 0;
    for (std::size_t i = 0; i < buffers; ++i) {
      a.offset_[i] = at;
      at += round_up<std::size_t>(s.rows * widths[i], 16);
    }
    NIHAO_TRY(a.buffer_, PageBuffer::allocate(at * sizeof(float)));
    return a;
  }
  Activations() noexcept = default;

  [[nodiscard]] MatrixView<float> x(std::size_t rows) const noexcept {
    return view(0, rows, sizes_.d_model);
  }  ///< residual stream
  [[nodiscard]] MatrixView<float> normed(std::size_t rows) const noexcept { return view(1, rows, sizes_.d_model); }
  [[nodiscard]] MatrixView<float> branch(std::size_t rows) const noexcept {
    return view(2, rows, sizes_.d_model);
  }  ///< what a layer adds to x
  [[nodiscard]] MatrixView<float> q(std::size_t rows) const noexcept { return view(3, rows, sizes_.q_width); }
  [[nodiscard]] MatrixView<float> k(std::size_t rows) const noexcept { return view(4, rows, sizes_.kv_width); }
  [[nodiscard]] MatrixView<float> v(std::size_t rows) const noexcept { return view(5, rows, sizes_.kv_width); }
  [[nodiscard]] MatrixView<float> heads(std::size_t rows) const noexcept {
    return view(6, rows, sizes_.q_width);
  }  ///< before the o projection
  [[nodiscard]] MatrixView<float> gate(std::size_t rows) const noexcept { return view(7, rows, sizes_.d_ff); }
  [[nodiscard]] MatrixView<float> up(std::size_t rows) const noexcept { return view(8, rows, sizes_.d_ff); }
  /// cos and sin of rope kind `rope`: [rows, pairs] each.
  [[nodiscard]] MatrixView<float> cos(std::size_t rows, std::size_t rope) const noexcept { return angles(rows, 2 * rope); }
  [[nodiscard]] MatrixView<float> sin(std::size_t rows, std::size_t rope) const noexcept { return angles(rows, 2 * rope + 1); }
  [[nodiscard]] std::size_t bytes() const noexcept { return buffer_.size(); }

 private:
  static constexpr std::size_t buffers = 10;
  [[nodiscard]] float* data() const noexcept { return reinterpret_cast<float*>(buffer_.data()); }
  [[nodiscard]] MatrixView<float> view(std::size_t i, std::size_t rows, std::size_t width) const noexcept {
    NIHAO_ASSERT(rows <= sizes_.rows);
    return {data() + offset_[i], rows, width};
  }
  [[nodiscard]] MatrixView<float> angles(std::size_t rows, std::size_t part) const noexcept {
    return {data() + offset_[buffers - 1] + part * sizes_.rows * sizes_.pairs, rows, sizes_.pairs};
  }

  PageBuffer buffer_;
  ActivationSizes sizes_{};
  std::array<std::size_t, buffers> offset_{};
};

}  // namespace nihao
