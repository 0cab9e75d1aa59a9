// Views of tensors that somebody else owns: a pointer and extents, rows contiguous.
#pragma once

#include "config.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace nihao {

/// A [rows, cols] matrix whose rows are contiguous; `stride` elements lie between the starts of two rows.
template <class T>
class MatrixView {
 public:
  MatrixView() noexcept = default;
  MatrixView(T* data, std::size_t rows, std::size_t cols) noexcept : MatrixView(data, rows, cols, cols) {}
  MatrixView(T* data, std::size_t rows, std::size_t cols, std::size_t stride) noexcept
      : data_(data), rows_(rows), cols_(cols), stride_(stride) {
    NIHAO_ASSERT(stride >= cols || rows <= 1);
  }
  /// A view of T converts to a view of const T.
  template <class U>
    requires std::is_same_v<const U, T>
  MatrixView(MatrixView<U> other) noexcept : MatrixView(other.data(), other.rows(), other.cols(), other.stride()) {}

  [[nodiscard]] T* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::size_t cols() const noexcept { return cols_; }
  [[nodiscard]] std::size_t stride() const noexcept { return stride_; }

  [[nodiscard]] std::span<T> row(std::size_t r) const noexcept {
    NIHAO_ASSERT(r < rows_);
    return {data_ + r * stride_, cols_};
  }
  [[nodiscard]] T& operator()(std::size_t r, std::size_t c) const noexcept {
    NIHAO_ASSERT(r < rows_ && c < cols_);
    return data_[r * stride_ + c];
  }
  /// Rows [first, first + count).
  [[nodiscard]] MatrixView slice_rows(std::size_t first, std::size_t count) const noexcept {
    NIHAO_ASSERT(first + count <= rows_);
    return {data_ + first * stride_, count, cols_, stride_};
  }
  /// Columns [first, first + count) of every row.
  [[nodiscard]] MatrixView slice_cols(std::size_t first, std::size_t count) const noexcept {
    NIHAO_ASSERT(first + count <= cols_);
    return {data_ + first, rows_, count, stride_};
  }

 private:
  T* data_ = nullptr;
  std::size_t rows_ = 0, cols_ = 0, stride_ = 0;
};

}  // namespace nihao
