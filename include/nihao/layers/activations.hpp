// The activations of one step: allocated once for the largest step, so that a step neither allocates nor fails.
#pragma once

#include "../base/checked.hpp"
#include "../base/platform.hpp"
#include "../base/tensor.hpp"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>

namespace nihao {

/// Widths of what a step keeps, and the most rows it may have.
struct ActivationSizes {
  std::size_t rows, d_model, pairs, ropes;
  std::size_t area;       ///< floats of a row that the layer that needs most takes: Area::floats
  std::size_t least = 1;  ///< rows that a smaller step has room for too: a token's experts work side by side
};

/// Memory that the layer at work divides among its own tensors: attention and feed-forward of all layers have the same.
class Area {
 public:
  /// `rows` of a step that has room for `room`.
  Area(float* data, std::size_t rows, std::size_t room) noexcept : at_(data), rows_(rows), room_(room) {}
  /// The next [rows, width] tensor.
  [[nodiscard]] MatrixView<float> take(std::size_t width) noexcept { return take_room(width).slice_rows(0, rows_); }
  /// The same with all rows that there is room for.
  [[nodiscard]] MatrixView<float> take_room(std::size_t width) noexcept {
    const MatrixView<float> view(at_, room_, width);
    at_ += room_ * padded(width);
    return view;
  }
  /// `each` values of another type of four bytes for every row, or of eight.
  template <class T>
  [[nodiscard]] std::span<T> take_each(std::size_t each) noexcept {
    const std::span<T> span(reinterpret_cast<T*>(at_), rows_ * each);
    at_ += room_ * padded(each * sizeof(T) / sizeof(float));
    return span;
  }
  /// Floats of a row that tensors of such widths take.
  [[nodiscard]] static std::size_t floats(std::initializer_list<std::size_t> widths) noexcept {
    std::size_t total = 0;
    for (const std::size_t width : widths) total += padded(width);
    return total;
  }
  [[nodiscard]] static std::size_t padded(std::size_t width) noexcept { return round_up<std::size_t>(width, 16); }

 private:
  float* at_;
  std::size_t rows_, room_;
};

/// Buffers of [rows, width] floats, by name. All views of one step have the same `rows`; where a buffer begins depends on it, so
/// that a small step touches little memory.
class Activations {
 public:
  /// Errors: out_of_memory.
  [[nodiscard]] static Expected<Activations> create(const ActivationSizes& s) {
    Activations a;
    a.sizes_ = s;
    a.normed_ = Area::padded(s.d_model);
    a.area_ = a.normed_ + Area::padded(s.d_model);
    a.angles_ = a.area_ + s.area;
    a.temperature_ = a.angles_ + 2 * s.ropes * Area::padded(s.pairs);
    a.branch_ = a.temperature_ + Area::padded(1);
    NIHAO_TRY(a.buffer_, PageBuffer::allocate(a.room(s.rows) * (a.branch_ + Area::padded(s.d_model)) * sizeof(float)));
    return a;
  }
  Activations() noexcept = default;

  /// The residual stream.
  [[nodiscard]] MatrixView<float> x(std::size_t rows) const noexcept { return view(0, rows, sizes_.d_model); }
  [[nodiscard]] MatrixView<float> normed(std::size_t rows) const noexcept { return view(normed_, rows, sizes_.d_model); }
  /// What a layer adds to x; last, as models that add at once never touch it.
  [[nodiscard]] MatrixView<float> branch(std::size_t rows) const noexcept { return view(branch_, rows, sizes_.d_model); }
  [[nodiscard]] Area area(std::size_t rows) const noexcept { return {view(area_, rows, 0).data(), rows, room(rows)}; }
  /// cos and sin of rope kind `rope`: [rows, pairs] each.
  [[nodiscard]] MatrixView<float> cos(std::size_t rows, std::size_t rope) const noexcept { return angles(rows, 2 * rope); }
  [[nodiscard]] MatrixView<float> sin(std::size_t rows, std::size_t rope) const noexcept { return angles(rows, 2 * rope + 1); }
  /// A factor for each row's queries, in models that have one.
  [[nodiscard]] std::span<float> temperature(std::size_t rows) const noexcept {
    return {view(temperature_, rows, 1).data(), rows};
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return buffer_.size(); }

 private:
  // What lies behind `before` floats of every row of the step.
  [[nodiscard]] MatrixView<float> view(std::size_t before, std::size_t rows, std::size_t width) const noexcept {
    NIHAO_ASSERT(rows <= sizes_.rows);
    return {reinterpret_cast<float*>(buffer_.data()) + room(rows) * before, rows, width};
  }
  [[nodiscard]] std::size_t room(std::size_t rows) const noexcept { return std::max(rows, sizes_.least); }
  [[nodiscard]] MatrixView<float> angles(std::size_t rows, std::size_t part) const noexcept {
    return view(angles_ + part * Area::padded(sizes_.pairs), rows, sizes_.pairs);
  }

  PageBuffer buffer_;
  ActivationSizes sizes_{};
  std::size_t normed_ = 0, area_ = 0, angles_ = 0, temperature_ = 0, branch_ = 0;  // floats of a row before each
};

}  // namespace nihao
