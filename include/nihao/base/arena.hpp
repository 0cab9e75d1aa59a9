// Memory for many tensors that live and die together, in few large allocations (which then sit on huge pages).
#pragma once

#include "checked.hpp"
#include "platform.hpp"

#include <vector>

namespace nihao {

/// Hands out zeroed, 64-byte aligned pieces. Not for concurrent use.
class Arena {
 public:
  static constexpr std::size_t chunk_bytes = std::size_t{32} << 20;

  /// Errors: out_of_memory.
  [[nodiscard]] Expected<std::byte*> allocate(std::size_t size) {
    const auto padded = checked_round_up<std::size_t>(size, 64);
    if (!padded) return Error{ErrorCode::out_of_memory, concat("cannot allocate ", size, " bytes")};
    if (chunks_.empty() || chunks_.back().size() - used_ < *padded) {
      NIHAO_TRY(auto chunk, PageBuffer::allocate(*padded > chunk_bytes ? *padded : chunk_bytes));
      chunks_.push_back(std::move(chunk));
      used_ = 0;
    }
    std::byte* piece = chunks_.back().data() + used_;
    used_ += *padded;
    total_ += *padded;
    return piece;
  }

  /// Bytes handed out.
  [[nodiscard]] std::size_t total() const noexcept { return total_; }

 private:
  std::vector<PageBuffer> chunks_;
  std::size_t used_ = 0, total_ = 0;
};

}  // namespace nihao
