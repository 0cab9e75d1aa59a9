#include "nihao/base/eigen.hpp"

#include <doctest/doctest.h>
#include <vector>

using namespace nihao;

namespace {
// Not inlined: where g++ 12 sees the size at -O3, it warns of the packets that Eigen would read of a larger one.
NIHAO_NOINLINE std::vector<float> counted(std::size_t n) {
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<float>(i);
  return values;
}
}  // namespace

TEST_CASE("a view and its Eigen matrix have the same elements, in the same memory, through a stride") {
  std::vector<float> memory = counted(4 * 10);
  const MatrixView<float> view = MatrixView<float>(memory.data(), 4, 10).slice_cols(3, 5).slice_rows(1, 3);
  auto matrix = as_eigen(view);
  REQUIRE(matrix.rows() == 3);
  REQUIRE(matrix.cols() == 5);
  CHECK(matrix.data() == view.data());
  for (std::size_t r = 0; r < 3; ++r)
    for (std::size_t c = 0; c < 5; ++c) CHECK(matrix(static_cast<Eigen::Index>(r), static_cast<Eigen::Index>(c)) == view(r, c));
  matrix(2, 4) = -1.0f;
  CHECK(view(2, 4) == -1.0f);

  const auto again = as_view(matrix);
  CHECK(again.data() == view.data());
  CHECK(again.rows() == view.rows());
  CHECK(again.cols() == view.cols());
  CHECK(again.stride() == view.stride());
}

TEST_CASE("blocks of a row-major Eigen matrix are views, and stay const if they were") {
  Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> matrix(3, 7);
  for (Eigen::Index i = 0; i < matrix.size(); ++i) matrix.data()[i] = static_cast<double>(i);
  auto block = matrix.block(1, 2, 2, 4);
  const MatrixView<double> view = as_view(block);
  CHECK(view.stride() == 7);
  CHECK(view(1, 3) == matrix(2, 5));
  const auto& fixed = matrix;
  static_assert(std::is_same_v<decltype(as_view(fixed)), MatrixView<const double>>);
  CHECK(as_view(fixed)(2, 6) == 20.0);
}

TEST_CASE("Eigen multiplies views: x W^T is the sum over k of x[t, k] W[r, k]") {
  const std::vector<float> x = counted(2 * 6), w = counted(3 * 6);
  std::vector<float> y(2 * 3);
  const MatrixView<const float> xs(x.data(), 2, 6), ws(w.data(), 3, 6);
  as_eigen(MatrixView<float>(y.data(), 2, 3)) = as_eigen(xs).lazyProduct(as_eigen(ws).transpose());
  for (std::size_t t = 0; t < 2; ++t)
    for (std::size_t r = 0; r < 3; ++r) {
      float sum = 0;
      for (std::size_t k = 0; k < 6; ++k) sum += xs(t, k) * ws(r, k);
      CHECK(y[t * 3 + r] == sum);
    }
  CHECK(as_eigen(std::span<const float>(x)).sum() == 66.0f);
}
