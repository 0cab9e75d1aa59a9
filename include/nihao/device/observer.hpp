// Who watches a forward pass. The observer is a template parameter: NoTrace leaves the machine code as it is without one.
#pragma once

#include "../base/tensor.hpp"

#include <concepts>
#include <cstdint>
#include <string_view>

namespace nihao {

struct AttentionInputs;  // kernels/attention.hpp

/// What an operation read and did, for rooflines. Bytes are those of weights and cache; activations stay in the caches.
struct Work {
  std::uint64_t bytes = 0;
  std::uint64_t flops = 0;
};

/// One tensor as a station of the forward pass has just made it. The first of every step is "begin", which has no values: the
/// work of the step starts there.
struct Seen {
  std::string_view name;           ///< a literal, as in the reference data: "attn_out", "ffn_gate", "hidden"
  int layer;                       ///< -1 outside the blocks
  MatrixView<const float> values;  ///< [rows of the batch, width]; valid during the call
  Work work = {};                  ///< what making it took
  /// Of "attn_heads_concat" alone: what its attention read, for those who want the probabilities; valid during the call.
  const AttentionInputs* attention = nullptr;
};

/// `active` says at compile time whether anybody watches: only then are tensors kept that fusion would never write.
template <class O>
concept Observer = requires(O& observer, const Seen& seen) {
  { O::active } -> std::convertible_to<bool>;
  observer.see(seen);
};

/// Nobody watches.
struct NoTrace {
  static constexpr bool active = false;
  void see(const Seen&) const noexcept {}
};

}  // namespace nihao
