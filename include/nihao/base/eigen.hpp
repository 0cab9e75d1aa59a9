// The library's tensor views and Eigen's, over the same memory: for hosts that use Eigen, and for independent references in
// tests. Nothing here copies. No other header includes this one: no interface of the library has an Eigen type in it.
#pragma once

#include "tensor.hpp"

#include <Eigen/Core>

namespace nihao {

namespace detail {
template <class T, class Plain>
using const_if_const = std::conditional_t<std::is_const_v<T>, const Plain, Plain>;
}  // namespace detail

/// How Eigen sees a MatrixView<T>: row-major, rows `stride` elements apart, at any address.
template <class T>
using EigenMatrix =
    Eigen::Map<detail::const_if_const<T, Eigen::Matrix<std::remove_const_t<T>, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>,
               Eigen::Unaligned, Eigen::OuterStride<>>;

/// How Eigen sees a span: a column vector.
template <class T>
using EigenVector =
    Eigen::Map<detail::const_if_const<T, Eigen::Matrix<std::remove_const_t<T>, Eigen::Dynamic, 1>>, Eigen::Unaligned>;

/// The view's own memory as an Eigen matrix [rows, cols]: valid as long as that memory.
template <class T>
[[nodiscard]] EigenMatrix<T> as_eigen(MatrixView<T> view) noexcept {
  const auto size = [](std::size_t n) { return static_cast<Eigen::Index>(n); };
  return {view.data(), size(view.rows()), size(view.cols()), Eigen::OuterStride<>(size(view.stride()))};
}
template <class T>
[[nodiscard]] EigenVector<T> as_eigen(std::span<T> values) noexcept {
  return {values.data(), static_cast<Eigen::Index>(values.size())};
}

/// The memory of a row-major Eigen matrix, block or map as a view: valid as long as that memory. Of a const matrix it is a
/// MatrixView<const T>.
template <class Matrix>
[[nodiscard]] auto as_view(Matrix& matrix) noexcept {
  using Plain = std::remove_const_t<Matrix>;
  static_assert((Plain::Flags & Eigen::DirectAccessBit) != 0,
                "nihao::as_view needs a matrix that lies in memory; evaluate the expression into one first.");
  static_assert(Plain::IsRowMajor, "nihao::as_view needs rows that are contiguous: an Eigen::RowMajor matrix.");
  static_assert(Plain::InnerStrideAtCompileTime == 1, "nihao::as_view needs rows that are contiguous: inner stride 1.");
  using T = std::remove_pointer_t<decltype(matrix.data())>;
  return MatrixView<T>(matrix.data(), static_cast<std::size_t>(matrix.rows()), static_cast<std::size_t>(matrix.cols()),
                       static_cast<std::size_t>(matrix.outerStride()));
}

}  // namespace nihao
