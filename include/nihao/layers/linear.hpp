// The only place for weights: a matrix as the device keeps it, and its bias.
#pragma once

#include "../device/ops.hpp"

#include <vector>

namespace nihao {

/// y = x W^T + b on device D.
template <class D>
struct Linear {
  typename Ops<D>::Weight weight;
  std::vector<float> bias = {};  ///< empty: none

  /// This product as one job of a matmul call.
  [[nodiscard]] typename Ops<D>::Job to(MatrixView<float> out, bool accumulate = false) const noexcept {
    return {&weight, out, bias.empty() ? nullptr : bias.data(), accumulate};
  }
  [[nodiscard]] Work work(std::size_t tokens) const noexcept {
    return {weight.bytes(), 2 * std::uint64_t{weight.rows} * weight.cols * tokens};
  }
};

}  // namespace nihao
