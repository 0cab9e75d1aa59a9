// Integers packed into words of 32 bits, with scales and zero points by groups of columns: AWQ, GPTQ and compressed-tensors.
#pragma once

#include "coded_matrix.hpp"
#include "parts.hpp"

namespace nihao::detail {

/// Where codes lie.
enum class Packing : std::uint8_t {
  awq,   ///< [cols, rows / 8]: eight rows' codes of a column in a word, in AWQ's order
  gptq,  ///< [cols / n, rows]: n columns' codes of a row in a word, the first in the low bits
  rows,  ///< [rows, cols / n]: the same, row by row (compressed-tensors)
};

/// The row of a word's eight of which AWQ keeps the code in bits 4 i and up is {0, 2, 4, 6, 1, 3, 5, 7}[i]; this is the other
/// way.
inline constexpr std::uint8_t awq_place[8] = {0, 4, 1, 5, 2, 6, 3, 7};

struct PackedShape {
  Packing packing;
  unsigned bits;  ///< 4 or 8
  std::size_t rows, cols;
  std::size_t group_size;                  ///< columns of a group, the last one's perhaps fewer
  float zero_point;                        ///< of all, where the file has none; else what is added to those that it has
  std::string scales, zeros, group_index;  ///< names of parts; the last two "" for none
};

class PackedMatrix final : public CodedMatrix {
 public:
  /// From the codes and what goes with them. Errors: missing, mismatch (a part's type or shape), malformed (a group that is not
  /// there).
  [[nodiscard]] static Expected<std::unique_ptr<CodedMatrix>> make(PartTaker& parts, const PackedShape& shape,
                                                                   const Part& codes) {
    auto m = std::unique_ptr<PackedMatrix>(new PackedMatrix(shape, codes));
    const std::uint64_t groups = m->groups_, rows = shape.rows, per_word = 32 / shape.bits;
    const auto both = [&](std::uint64_t of_rows) {  // scales and zero points by group, or, row by row, the other way round
      return shape.packing == Packing::rows ? std::pair(of_rows, groups) : std::pair(groups, of_rows);
    };
    const auto [first, second] = both(rows);
    NIHAO_TRY(m->scales_, parts.take(shape.scales, float_types, {first, second}));
    if (!shape.zeros.empty()) {
      const auto [zero_first, zero_second] = both(ceil_div(rows, per_word));
      NIHAO_TRY(m->zeros_, parts.take(shape.zeros, {SafetensorsType::I32}, {zero_first, zero_second}));
    }
    std::size_t run = std::min(shape.group_size, shape.cols);
    if (!shape.group_index.empty()) { NIHAO_TRY(run, m->read_groups(parts, shape.group_index)); }
    m->choose_format(run, m->scales_.type == SafetensorsType::F16);
    return std::unique_ptr<CodedMatrix>(std::move(m));
  }

 private:
  PackedMatrix(const PackedShape& shape, const Part& codes) noexcept
      : CodedMatrix(shape.bits == 4 ? CodeKind::four_bits : CodeKind::eight_bits, shape.rows, shape.cols),
        packing_(shape.packing),
        bits_(shape.bits),
        group_size_(shape.group_size),
        groups_(ceil_div(shape.cols, shape.group_size)),
        zero_point_(shape.zero_point),
        codes_(codes) {}

  // Which group each column is in. Columns are put in the order of their groups, so that a block has one scale; how many stand
  // together at least.
  [[nodiscard]] Expected<std::size_t> read_groups(PartTaker& parts, const std::string& name) {
    NIHAO_TRY(const Part index, parts.take(name, {SafetensorsType::I32}, {cols_}));
    bool in_turn = true, unset = true;
    std::vector<std::uint32_t> group(cols_);
    for (std::size_t i = 0; i < cols_; ++i) {
      group[i] = index.word(i);
      in_turn = in_turn && group[i] == i / group_size_;
      unset = unset && group[i] == UINT32_MAX;
    }
    if (in_turn || unset) return std::min(group_size_, cols_);
    std::vector<std::uint32_t> begin(groups_ + 1, 0);
    for (std::size_t i = 0; i < cols_; ++i) {
      if (group[i] >= groups_)
        return Error{ErrorCode::malformed,
                     concat("column ", i, " is in group ", static_cast<std::int32_t>(group[i]), " of ", groups_),
                     concat("tensor ", printable(name))};
      ++begin[group[i] + 1];
    }
    std::size_t run = 32;
    for (std::size_t g = 0; g < groups_; ++g) {
      if (begin[g + 1] % 32 != 0) run = 1;
      begin[g + 1] += begin[g];
    }
    std::vector<std::uint32_t> order(cols_);
    for (std::size_t i = 0; i < cols_; ++i) order[begin[group[i]]++] = static_cast<std::uint32_t>(i);
    group_ = std::move(group);
    order_ = parts.shared(std::move(order));
    return run;
  }

  void codes(std::size_t first, std::size_t count, std::uint8_t* to) const noexcept override {
    const std::size_t n = 32 / bits_;
    const std::uint32_t mask = (1u << bits_) - 1;
    if (packing_ == Packing::awq) {
      for (std::size_t k = 0; k < cols_; ++k) {
        std::uint32_t word = 0;
        for (std::size_t r = first; r < first + count; ++r) {
          if (r == first || r % 8 == 0) word = codes_.word(k * (rows_ / 8) + r / 8);
          to[(r - first) * cols_ + k] = word >> 4 * awq_place[r % 8] & 15;
        }
      }
      return;
    }
    const std::size_t words = ceil_div(cols_, n);
    for (std::size_t w = 0; w < words; ++w)
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t r = first + i;
        const std::uint32_t word = codes_.word(packing_ == Packing::gptq ? w * rows_ + r : r * words + w);
        for (std::size_t j = 0; j < n && w * n + j < cols_; ++j)
          to[i * cols_ + w * n + j] = static_cast<std::uint8_t>(word >> bits_ * j & mask);
      }
  }

  [[nodiscard]] CodeScale scale_of(std::size_t r, std::size_t col) const noexcept override {
    const std::size_t g = group_.empty() ? col / group_size_ : group_[col], n = 32 / bits_;
    CodeScale s{scales_.value(packing_ == Packing::rows ? r * groups_ + g : g * rows_ + r), zero_point_};
    if (zeros_.bytes.empty()) return s;
    const std::uint32_t word = zeros_.word(packing_ == Packing::rows ? r / n * groups_ + g : g * ceil_div(rows_, n) + r / n);
    const std::size_t place = packing_ == Packing::awq ? awq_place[r % 8] : r % n;
    s.zero += static_cast<float>(word >> bits_ * place & ((1u << bits_) - 1));
    return s;
  }

  Packing packing_;
  unsigned bits_;
  std::size_t group_size_, groups_;
  float zero_point_;
  Part codes_, scales_, zeros_;
  std::vector<std::uint32_t> group_;  // of each column; empty: one after the other
};

}  // namespace nihao::detail
