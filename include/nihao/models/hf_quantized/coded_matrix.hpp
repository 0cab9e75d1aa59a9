// A matrix of codes with scales, as Hugging Face checkpoints have it in several tensors, and how it becomes rows of blocks: the
// half of the work that all methods share. What a method adds is where a code, a scale and a zero point lie.
#pragma once

#include "../../base/checked.hpp"
#include "../../files/tensor_file.hpp"
#include "../../format/quant.hpp"

#include <cmath>
#include <cstring>

namespace nihao::detail {

/// What a code is before it meets its scale.
enum class CodeKind : std::uint8_t {
  four_bits,   ///< 0 to 15
  eight_bits,  ///< 0 to 255
  e4m3,
  e5m2,
  nf4,      ///< index into NF4::levels
  mx_e2m1,  ///< with scales of e8m0
  nv_e2m1,  ///< with scales of e4m3
};

/// value = (code - zero) * scale
struct CodeScale {
  float scale, zero = 0;
};

class CodedMatrix : public TensorParts {
 public:
  [[nodiscard]] FormatId format() const noexcept { return format_; }

  void rows(std::size_t first, std::size_t count, std::byte* to, std::uint8_t* working) const noexcept final {
    codes(first, count, working);
    for (std::size_t i = 0; i < count; ++i) write_row(first + i, working + i * cols_, to + i * row_bytes(format_, cols_));
  }

 protected:
  CodedMatrix(CodeKind kind, std::size_t rows, std::size_t cols) noexcept : kind_(kind), rows_(rows), cols_(cols) {}

  /// Rows [first, first + count) as one byte a code, [count][cols].
  virtual void codes(std::size_t first, std::size_t count, std::uint8_t* to) const noexcept = 0;
  /// Of the value in that place.
  [[nodiscard]] virtual CodeScale scale_of(std::size_t row, std::size_t col) const noexcept = 0;
  /// The same as the file has it, for the kinds whose scales are bytes.
  [[nodiscard]] virtual std::uint8_t scale_byte(std::size_t, std::size_t) const noexcept { return 0; }

  /// Chooses the format: blocks, if each `run` columns (in their order) have a scale of their own or share one with others, and
  /// if scales and zero points go into a block to the bit; else the values in float. `halves`: they are known to. To be called
  /// last, once scale_of() gives what it is to give.
  void choose_format(std::size_t run, bool halves) noexcept {
    const FormatId blocks = block_format();
    const std::size_t scaled = kind_ == CodeKind::nv_e2m1 ? 16 : 32;  // columns of a block that have a scale
    const bool fits = cols_ % format_info(blocks).block_size == 0 && run % scaled == 0 && (halves || scales_fit(run));
    format_ = fits ? blocks : FormatId::F32;
    if (!fits) order_.reset();
  }

  [[nodiscard]] std::size_t column(std::size_t i) const noexcept { return order_ == nullptr ? i : (*order_)[i]; }

  CodeKind kind_;
  std::size_t rows_, cols_;

 private:
  [[nodiscard]] FormatId block_format() const noexcept {
    switch (kind_) {
      case CodeKind::four_bits: return FormatId::INT4;
      case CodeKind::eight_bits: return FormatId::INT8;
      case CodeKind::e4m3: return FormatId::FP8_E4M3;
      case CodeKind::e5m2: return FormatId::FP8_E5M2;
      case CodeKind::nf4: return FormatId::NF4;
      case CodeKind::mx_e2m1: return FormatId::MXFP4;
      case CodeKind::nv_e2m1: return FormatId::NVFP4;
    }
    return FormatId::F32;
  }

  // Scales of INT4 are halves: those of bfloat16 become halves when all are multiplied by a power of two, for which scale_ makes
  // up. Zero points are halves in both.
  [[nodiscard]] bool scales_fit(std::size_t run) noexcept {
    if (kind_ != CodeKind::four_bits && kind_ != CodeKind::eight_bits) return true;
    float largest = 0;
    for (std::size_t r = 0; r < rows_; ++r)
      for (std::size_t i = 0; i < cols_; i += run) {
        const CodeScale s = scale_of(r, column(i));
        if (!is_half(s.zero - bias())) return false;
        largest = std::max(largest, std::fabs(s.scale));
      }
    if (kind_ == CodeKind::eight_bits) return true;
    if (!std::isfinite(largest)) return false;
    for (const int up : {0, largest > 0 ? 14 - std::ilogb(largest) : 0}) {
      if (!scales_are_halves(run, up)) continue;
      up_ = up, scale_ = std::ldexp(1.0, -up);
      return true;
    }
    return false;
  }
  [[nodiscard]] bool scales_are_halves(std::size_t run, int up) const noexcept {
    for (std::size_t r = 0; r < rows_; ++r)
      for (std::size_t i = 0; i < cols_; i += run)
        if (!is_half(std::ldexp(scale_of(r, column(i)).scale, up))) return false;
    return true;
  }
  [[nodiscard]] static bool is_half(float x) noexcept { return to_float(to_f16(x)) == x; }
  // What INT8 takes off codes and zero points.
  [[nodiscard]] float bias() const noexcept { return kind_ == CodeKind::eight_bits ? 128.0f : 0.0f; }

  // Codes i and i + half of each block, of four bits, side by side.
  void put_nibbles(const std::uint8_t* code, std::size_t first, std::size_t half, std::uint8_t* to) const noexcept {
    for (std::size_t j = 0; j < half; ++j)
      to[j] = static_cast<std::uint8_t>(code[column(first + j)] | code[column(first + half + j)] << 4);
  }

  void write_row(std::size_t row, const std::uint8_t* code, std::byte* to) const noexcept {
    Quant<F32, INT4, INT8, FP8_E4M3, FP8_E5M2, NF4, MXFP4, NVFP4>::visit(format_, [&]<class F>(F) {
      for (std::size_t i = 0; i < cols_; i += F::block_size, to += block_bytes<F>) {
        typename F::Block block;
        write_block<F>(row, i, code, block);
        std::memcpy(to, &block, sizeof block);
      }
    });
  }
  template <class F>
  void write_block(std::size_t row, std::size_t first, const std::uint8_t* code, typename F::Block& block) const noexcept {
    if constexpr (std::is_same_v<F, F32>) {
      block.value = value(row, first, code[first]);
    } else if constexpr (std::is_same_v<F, MXFP4>) {
      block.e = scale_byte(row, first);
      put_nibbles(code, first, 16, block.qs);
    } else if constexpr (std::is_same_v<F, NVFP4>) {
      for (std::size_t g = 0; g < 4; ++g) {
        block.d[g] = scale_byte(row, first + 16 * g);
        put_nibbles(code, first + 16 * g, 8, block.qs + 8 * g);
      }
    } else {
      const CodeScale s = scale_of(row, column(first));
      if constexpr (std::is_same_v<F, INT4>) block.d = to_f16(std::ldexp(s.scale, up_));
      else block.d = s.scale;
      if constexpr (requires { block.z; }) block.z = to_f16(s.zero - bias());
      if constexpr (requires { block.qs; }) put_nibbles(code, first, 16, block.qs);
      else if constexpr (std::is_same_v<F, INT8>)
        for (std::size_t j = 0; j < 32; ++j) block.q[j] = static_cast<std::int8_t>(code[column(first + j)] - 128);
      else
        for (std::size_t j = 0; j < 32; ++j) block.q[j].bits = code[column(first + j)];
    }
  }

  [[nodiscard]] float value(std::size_t row, std::size_t col, std::uint8_t code) const noexcept {
    const CodeScale s = scale_of(row, col);
    switch (kind_) {
      case CodeKind::four_bits:
      case CodeKind::eight_bits: return (static_cast<float>(code) - s.zero) * s.scale;
      case CodeKind::e4m3: return to_float(e4m3{code}) * s.scale;
      case CodeKind::e5m2: return to_float(e5m2{code}) * s.scale;
      case CodeKind::nf4: return NF4::levels[code] * s.scale;
      case CodeKind::mx_e2m1:
      case CodeKind::nv_e2m1: return 0.5f * static_cast<float>(doubled_e2m1[code]) * s.scale;
    }
    return 0;
  }

  FormatId format_ = FormatId::F32;
  int up_ = 0;  // INT4: blocks have scales times 2^up_
};

}  // namespace nihao::detail
