// y = x W^T: the contract of every linear layer, and its plain definition.
#pragma once

#include "../base/tensor.hpp"
#include "../format/registry.hpp"

#include <vector>

namespace nihao::reference {

/// y[t, r] = sum over k of x[t, k] * W[r, k], in double.
/// x: [tokens, k]; weights: [rows, k] in format F, rows contiguous; y: [tokens, rows]. No aliasing. k is a multiple of the block.
inline void matmul(FormatId format, std::span<const std::byte> weights, MatrixView<const float> x, MatrixView<float> y) {
  const std::size_t row_size = row_bytes(format, x.cols());
  std::vector<float> row(x.cols());
  for (std::size_t r = 0; r < y.cols(); ++r) {
    dequantize_row(format, weights.subspan(r * row_size, row_size), row);
    for (std::size_t t = 0; t < x.rows(); ++t) {
      double sum = 0;
      for (std::size_t k = 0; k < x.cols(); ++k) sum += static_cast<double>(x(t, k)) * static_cast<double>(row[k]);
      y(t, r) = static_cast<float>(sum);
    }
  }
}

}  // namespace nihao::reference
