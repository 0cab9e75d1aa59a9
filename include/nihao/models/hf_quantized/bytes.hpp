// A byte a weight: FP8 and signed integers, with a scale for all, for each row, for each group of a row's columns, or for each
// block of rows and columns.
#pragma once

#include "coded_matrix.hpp"
#include "parts.hpp"

namespace nihao::detail {

/// Rows and columns that share a scale. 0: all.
struct ScaleGrid {
  std::size_t rows = 0, cols = 0;
};

class ByteMatrix final : public CodedMatrix {
 public:
  /// `zeros`: the name of zero points, signed bytes laid out as the scales are, or "". `divisor`: what scales are to be divided
  /// by. Errors: missing, mismatch (the shape of the scales is that of no grid).
  [[nodiscard]] static Expected<std::unique_ptr<CodedMatrix>> make(PartTaker& parts, const Part& codes, std::size_t rows,
                                                                   std::size_t cols, const std::string& scales,
                                                                   const std::string& zeros, const ScaleGrid& blocks,
                                                                   float divisor = 1) {
    auto m = std::unique_ptr<ByteMatrix>(new ByteMatrix(codes, rows, cols, divisor));
    NIHAO_TRY(const auto shape, parts.shape(scales));
    NIHAO_CHECK(m->find_grid(scales, shape, blocks));
    NIHAO_TRY(m->scales_, parts.take(scales, float_types, shape));
    if (!zeros.empty()) { NIHAO_TRY(m->zeros_, parts.take(zeros, {SafetensorsType::I8}, shape)); }
    m->choose_format(std::min(m->grid_.cols, cols), true);
    return std::unique_ptr<CodedMatrix>(std::move(m));
  }

 private:
  ByteMatrix(const Part& codes, std::size_t rows, std::size_t cols, float divisor) noexcept
      : CodedMatrix(codes.type == SafetensorsType::F8_E4M3   ? CodeKind::e4m3
                    : codes.type == SafetensorsType::F8_E5M2 ? CodeKind::e5m2
                                                             : CodeKind::eight_bits,
                    rows, cols),
        codes_(codes),
        divisor_(divisor) {}

  // The grid that the scales' shape is of: [], [1], [1, 1]; [rows], [rows, 1]; or that of blocks.
  [[nodiscard]] Expected<void> find_grid(const std::string& name, const std::vector<std::uint64_t>& shape,
                                         const ScaleGrid& blocks) {
    std::uint64_t count = 1;
    for (const std::uint64_t axis : shape) count *= axis;
    const auto is = [&](std::uint64_t r, std::uint64_t c) { return shape.size() == 2 && shape[0] == r && shape[1] == c; };
    const std::size_t block_rows = blocks.rows == 0 ? rows_ : blocks.rows, block_cols = blocks.cols == 0 ? cols_ : blocks.cols;
    const bool blocked = blocks.rows > 0 || blocks.cols > 0;
    if (blocked && is(ceil_div(rows_, block_rows), ceil_div(cols_, block_cols))) grid_ = {block_rows, block_cols};
    else if (!blocked && count == 1) grid_ = {rows_, cols_};
    else if (!blocked && count == rows_ && shape[0] == rows_ && shape.size() <= 2) grid_ = {1, cols_};
    else
      return Error{ErrorCode::mismatch,
                   concat("scales of shape ", shape_text(shape), " for a matrix of [", rows_, ", ", cols_, "]"),
                   concat("tensor ", printable(name))};
    return {};
  }

  void codes(std::size_t first, std::size_t count, std::uint8_t* to) const noexcept override {
    std::memcpy(to, codes_.bytes.data() + first * cols_, count * cols_);
    if (kind_ == CodeKind::eight_bits)
      for (std::size_t i = 0; i < count * cols_; ++i) to[i] ^= 0x80;  // signed bytes: plus 128
  }
  [[nodiscard]] CodeScale scale_of(std::size_t r, std::size_t c) const noexcept override {
    const std::size_t at = r / grid_.rows * ceil_div(cols_, grid_.cols) + c / grid_.cols;
    CodeScale s{scales_.value(at) / divisor_, kind_ == CodeKind::eight_bits ? 128.0f : 0.0f};
    if (!zeros_.bytes.empty()) s.zero += static_cast<float>(static_cast<std::int8_t>(zeros_.byte(at)));
    return s;
  }

  Part codes_, scales_, zeros_;
  ScaleGrid grid_;
  float divisor_;
};

}  // namespace nihao::detail
