// Sizes known at compile time or read from the file, per extent, as in std::extents.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nihao {

/// "Not stated here: read it from the file."
inline constexpr std::int32_t dyn = -1;

/// The sizes of a decoder. A size that is stated is a contract: a file that disagrees is refused with the first difference.
struct Sizes {
  std::int32_t d_model = dyn;   ///< width of the residual stream
  std::int32_t layers = dyn;    ///< number of blocks (never unrolled: depth is a loop)
  std::int32_t heads = dyn;     ///< query heads
  std::int32_t kv_heads = dyn;  ///< key/value heads (heads % kv_heads == 0)
  std::int32_t head_dim = dyn;  ///< width of one head
  std::int32_t d_ff = dyn;      ///< width of the feed-forward's hidden layer
  std::int32_t vocab = dyn;     ///< rows of the embedding and of the head

  friend constexpr bool operator==(const Sizes&, const Sizes&) = default;
};

/// The static size if there is one, else the run-time one. With a static size the compiler sees a constant.
template <std::int32_t Static>
[[nodiscard]] constexpr std::int32_t extent(std::int32_t from_file) noexcept {
  if constexpr (Static == dyn) return from_file;
  else return Static;
}

}  // namespace nihao
