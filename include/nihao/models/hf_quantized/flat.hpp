// Groups of the flattened matrix, row after row: HQQ and the four-bit codes of bitsandbytes.
#pragma once

#include "coded_matrix.hpp"
#include "parts.hpp"

#include <numeric>

namespace nihao::detail {

/// How the codes of a flattened matrix lie in bytes.
enum class FlatPacking : std::uint8_t {
  bytes,   ///< one each
  pairs,   ///< the earlier in the high four bits (bitsandbytes)
  halves,  ///< the first half of all in the high four bits, the second in the low (HQQ)
};

struct FlatShape {
  CodeKind kind;
  FlatPacking packing;
  std::size_t rows, cols, group_size;
};

class FlatMatrix final : public CodedMatrix {
 public:
  /// With scales, and zero points where a method has them, of each group: values that were read (bitsandbytes), or parts.
  [[nodiscard]] static std::unique_ptr<CodedMatrix> make(const FlatShape& shape, const Part& codes, std::vector<float> scales) {
    auto m = std::unique_ptr<FlatMatrix>(new FlatMatrix(shape, codes));
    m->values_ = std::move(scales);
    m->choose_format(m->run(), true);
    return m;
  }
  [[nodiscard]] static std::unique_ptr<CodedMatrix> make(const FlatShape& shape, const Part& codes, const Part& scales,
                                                         const Part& zeros) {
    auto m = std::unique_ptr<FlatMatrix>(new FlatMatrix(shape, codes));
    m->scales_ = scales, m->zeros_ = zeros;
    const bool halves = scales.type == SafetensorsType::F16 && zeros.type == SafetensorsType::F16;
    m->choose_format(m->run(), halves && shape.kind == CodeKind::four_bits);
    return m;
  }

 private:
  FlatMatrix(const FlatShape& shape, const Part& codes) noexcept
      : CodedMatrix(shape.kind, shape.rows, shape.cols), packing_(shape.packing), group_size_(shape.group_size), codes_(codes) {}

  // Columns that share a scale in every row: a group may begin within a row and end in the next.
  [[nodiscard]] std::size_t run() const noexcept { return std::gcd(group_size_, cols_); }

  void codes(std::size_t first, std::size_t count, std::uint8_t* to) const noexcept override {
    const std::size_t half = rows_ * cols_ / 2;
    for (std::size_t i = 0; i < count * cols_; ++i) {
      const std::size_t n = first * cols_ + i;
      if (packing_ == FlatPacking::bytes) to[i] = codes_.byte(n);
      else if (packing_ == FlatPacking::pairs) to[i] = codes_.byte(n / 2) >> (n % 2 == 0 ? 4 : 0) & 15;
      else to[i] = n < half ? codes_.byte(n) >> 4 : codes_.byte(n - half) & 15;
    }
  }
  [[nodiscard]] CodeScale scale_of(std::size_t r, std::size_t c) const noexcept override {
    const std::size_t g = (r * cols_ + c) / group_size_;
    if (!values_.empty()) return {values_[g]};
    return {scales_.value(g), zeros_.value(g)};
  }

  FlatPacking packing_;
  std::size_t group_size_;
  Part codes_, scales_, zeros_;
  std::vector<float> values_;
};

}  // namespace nihao::detail
