// Keys and values of several sequences, each in its own run of blocks, reserved before a step so that the step cannot fail.
#pragma once

#include "../base/checked.hpp"
#include "../base/platform.hpp"
#include "../kernels/batch_view.hpp"

#include <algorithm>
#include <span>
#include <vector>

namespace nihao {

/// What the attention of one layer asks of a cache: KvLayout, but for how numbers are stored.
struct CacheSpec {
  std::uint32_t kv_heads, head_dim, value_dim = 0;
  bool values_in_keys = false;

  [[nodiscard]] KvLayout layout(KvType type) const noexcept { return {type, kv_heads, head_dim, 0, value_dim, values_in_keys}; }
};

/// A contiguous cache: `sequences` sequences of up to `capacity` positions each. Block tables are there from the start, so that
/// kernels read a paged cache in the same way. The blocks of all layers for the same positions lie together, and memory is the
/// system's zero pages until positions are written: it grows with the longest text, not by a huge page for every layer.
class KvCache {
 public:
  /// Errors: invalid_argument (no capacity, no sequence), out_of_memory.
  [[nodiscard]] static Expected<KvCache> create(std::span<const CacheSpec> layers, KvType type, std::size_t capacity,
                                                std::size_t sequences = 1) {
    if (capacity == 0 || sequences == 0 || capacity > (std::size_t{1} << 28) || sequences > (std::size_t{1} << 16) ||
        ceil_div(capacity, kv_block) * sequences > INT32_MAX)
      return Error{ErrorCode::invalid_argument,
                   concat("a cache of ", capacity, " positions in each of ", sequences, " sequences is out of range")};
    KvCache cache;
    cache.capacity_ = capacity;
    cache.lengths_.assign(sequences, 0);
    const std::size_t blocks = ceil_div(capacity, kv_block) * sequences;
    cache.blocks_.resize(blocks);
    for (std::size_t i = 0; i < blocks; ++i) cache.blocks_[i] = static_cast<std::int32_t>(i);
    std::size_t stride = 0;
    for (const CacheSpec& layer : layers) {
      const KvLayout layout = layer.layout(type);
      cache.layers_.push_back({layout, stride});
      const auto sum = checked_add<std::size_t>(stride, layout.block_bytes());
      if (!sum) return too_large(capacity);
      stride = *sum;
    }
    for (Layer& layer : cache.layers_) layer.layout.stride = stride;
    const auto size = checked_mul<std::size_t>(stride, blocks);
    if (!size) return too_large(capacity);
    NIHAO_TRY(cache.buffer_, PageBuffer::allocate(*size));
    return cache;
  }
  KvCache() noexcept = default;

  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::size_t sequences() const noexcept { return lengths_.size(); }
  [[nodiscard]] std::size_t layers() const noexcept { return layers_.size(); }
  /// Positions that `sequence` holds.
  [[nodiscard]] std::size_t length(std::size_t sequence) const noexcept { return lengths_[sequence]; }
  /// Bytes reserved for all sequences at full length.
  [[nodiscard]] std::size_t bytes() const noexcept { return buffer_.size(); }
  [[nodiscard]] const KvLayout& layout(std::size_t layer) const noexcept { return layers_[layer].layout; }
  /// Block 0 of a layer; its others follow at the layout's stride.
  [[nodiscard]] std::byte* data(std::size_t layer) const noexcept { return buffer_.data() + layers_[layer].offset; }
  [[nodiscard]] std::span<const std::int32_t> blocks(std::size_t sequence) const noexcept {
    const std::size_t each = ceil_div(capacity_, kv_block);
    return std::span(blocks_).subspan(sequence * each, each);
  }

  /// Makes room for `count` more positions and takes them. Errors: context_full, invalid_argument; then nothing has changed.
  [[nodiscard]] Expected<void> extend(std::size_t sequence, std::size_t count) {
    if (sequence >= lengths_.size())
      return Error{ErrorCode::invalid_argument, concat("there is no sequence ", sequence, " in a cache of ", lengths_.size())};
    if (count > capacity_ - lengths_[sequence])
      return Error{ErrorCode::context_full, concat("the context holds ", capacity_, " tokens; ", lengths_[sequence],
                                                   " are used, and ", count, " more do not fit")};
    lengths_[sequence] += count;
    return {};
  }

  /// Forgets positions [length, end) of a sequence; nothing if it is shorter.
  void truncate(std::size_t sequence, std::size_t length) noexcept { lengths_[sequence] = std::min(lengths_[sequence], length); }

  /// Blocks that a sequence uses, in every layer.
  [[nodiscard]] std::size_t used_blocks(std::size_t sequence) const noexcept { return ceil_div(lengths_[sequence], kv_block); }
  /// The bytes of one of them in one layer: what saving and loading copies.
  [[nodiscard]] std::span<std::byte> block(std::size_t layer, std::size_t sequence, std::size_t i) const noexcept {
    const KvLayout& layout = layers_[layer].layout;
    return {data(layer) + static_cast<std::size_t>(blocks(sequence)[i]) * layout.block_stride(), layout.block_bytes()};
  }

 private:
  struct Layer {
    KvLayout layout;
    std::size_t offset;  // of its part of a block
  };
  [[nodiscard]] static Error too_large(std::size_t capacity) {
    return Error{ErrorCode::out_of_memory, concat("a cache of ", capacity, " positions does not fit the address space")};
  }
  PageBuffer buffer_;  // [blocks][layers] blocks
  std::vector<Layer> layers_;
  std::vector<std::int32_t> blocks_;
  std::vector<std::size_t> lengths_;
  std::size_t capacity_ = 0;
};

}  // namespace nihao
