// What kernels read of a batch: which rows belong to which sequence, and where each row stands.
#pragma once

#include "kv_view.hpp"

#include <cstdint>
#include <span>

namespace nihao {

inline constexpr std::uint32_t no_adapter = UINT32_MAX;

/// Rows [first, first + count) of the batch are consecutive positions of one sequence.
struct SequenceRows {
  std::uint32_t first, count;
  std::span<const std::int32_t> blocks;  ///< the sequence's block table, long enough for its last row
  std::uint32_t adapter = no_adapter;    ///< number of the adapter that works on it
};

/// The rows of one step, in order of their sequences.
struct BatchView {
  std::span<const std::int32_t> position;  ///< [rows]
  std::span<const SequenceRows> sequences;

  [[nodiscard]] std::size_t rows() const noexcept { return position.size(); }
};

}  // namespace nihao
