// Floats of four bits, two in a byte, the earlier in the low half: MXFP4 and NVFP4.
#pragma once

#include "coded_matrix.hpp"
#include "parts.hpp"

namespace nihao::detail {

class Float4Matrix final : public CodedMatrix {
 public:
  /// `scales`: a byte for each 32 columns (mx_e2m1) or 16 (nv_e2m1); `scale`: of all values besides. `alternate`: rows of each
  /// matrix of a stack to be read in another order, the even ones before the odd; 0: all as they are. Errors: malformed.
  [[nodiscard]] static Expected<std::unique_ptr<CodedMatrix>> make(CodeKind kind, std::size_t rows, std::size_t cols,
                                                                   const Part& codes, const Part& scales,
                                                                   const std::string& scale_name, double scale = 1,
                                                                   std::size_t alternate = 0) {
    auto m = std::unique_ptr<Float4Matrix>(new Float4Matrix(kind, rows, cols, codes, scales, alternate));
    if (kind == CodeKind::nv_e2m1)
      for (std::size_t i = 0; i < scales.bytes.size(); ++i)
        if (scales.byte(i) >= 0x7f)
          return Error{ErrorCode::malformed, concat("scale ", i, " is negative or no number"),
                       concat("tensor ", printable(scale_name))};
    m->scale_ = scale;
    m->choose_format(m->group_, true);
    return std::unique_ptr<CodedMatrix>(std::move(m));
  }

 private:
  Float4Matrix(CodeKind kind, std::size_t rows, std::size_t cols, const Part& codes, const Part& scales, std::size_t alternate)
      : CodedMatrix(kind, rows, cols),
        group_(kind == CodeKind::mx_e2m1 ? 32 : 16),
        alternate_(alternate),
        codes_(codes),
        scales_(scales) {}

  [[nodiscard]] std::size_t stored(std::size_t row) const noexcept {
    if (alternate_ == 0) return row;
    const std::size_t first = row / alternate_ * alternate_, r = row - first, half = alternate_ / 2;
    return first + (r < half ? 2 * r : 2 * (r - half) + 1);
  }
  void codes(std::size_t first, std::size_t count, std::uint8_t* to) const noexcept override {
    for (std::size_t i = 0; i < count; ++i, to += cols_) {
      const std::size_t from = stored(first + i) * (cols_ / 2);
      for (std::size_t b = 0; b < cols_ / 2; ++b) {
        const std::uint8_t both = codes_.byte(from + b);
        to[2 * b] = both & 15, to[2 * b + 1] = both >> 4;
      }
    }
  }
  [[nodiscard]] std::uint8_t scale_byte(std::size_t r, std::size_t c) const noexcept override {
    return scales_.byte(stored(r) * (cols_ / group_) + c / group_);
  }
  [[nodiscard]] CodeScale scale_of(std::size_t r, std::size_t c) const noexcept override {
    const std::uint8_t byte = scale_byte(r, c);
    return {kind_ == CodeKind::mx_e2m1 ? power_of_two(byte) : to_float(e4m3{byte})};
  }

  std::size_t group_, alternate_;
  Part codes_, scales_;
};

}  // namespace nihao::detail
