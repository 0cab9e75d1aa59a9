// Where attention finds keys and values: blocks of sixteen positions, reached through a table of block numbers.
#pragma once

#include "../base/checked.hpp"
#include "../base/floats.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace nihao {

/// How keys and values are stored.
enum class KvType : std::uint8_t { f32, f16, bf16, q8_0 };

constexpr std::string_view to_string(KvType type) noexcept {
  switch (type) {
    case KvType::f32: return "f32";
    case KvType::f16: return "f16";
    case KvType::bf16: return "bf16";
    case KvType::q8_0: return "q8_0";
  }
  return "unknown";
}
constexpr std::optional<KvType> kv_type_from_name(std::string_view name) noexcept {
  for (const KvType type : {KvType::f32, KvType::f16, KvType::bf16, KvType::q8_0})
    if (to_string(type) == name) return type;
  return std::nullopt;
}

/// Positions in a block: as many as a kernel has lanes, so that a lane of a score is a position.
inline constexpr std::size_t kv_block = 16;

/// Keys or values of one head: `width` floats a position, stored as `type`. In q8_0 they are int8 codes with an f16 scale for
/// every 32 values of a position ([scales][16 positions] before the codes).
struct KvPart {
  KvType type;
  std::uint32_t width;

  [[nodiscard]] constexpr std::size_t scales() const noexcept { return ceil_div<std::size_t>(width, 32); }  ///< per position
  /// Bytes of one head in one block.
  [[nodiscard]] constexpr std::size_t bytes() const noexcept {
    switch (type) {
      case KvType::f32: return kv_block * width * 4;
      case KvType::f16:
      case KvType::bf16: return kv_block * width * 2;
      case KvType::q8_0: return kv_block * (width + 2 * scales());
    }
    return 0;
  }
};

/// The layout of one (block, head): keys [key width][16 positions], then values [16 positions][value width].
struct KvLayout {
  KvType type;
  std::uint32_t kv_heads, head_dim;
  std::size_t stride = 0;       ///< bytes from a layer's block to its next; 0: nothing lies between them
  std::uint32_t value_dim = 0;  ///< width of values; 0: head_dim
  bool values_in_keys = false;  ///< values are the first value_dim of the keys, and are stored nowhere else (absorbed MLA)

  [[nodiscard]] constexpr KvPart key() const noexcept { return {type, head_dim}; }
  [[nodiscard]] constexpr KvPart value() const noexcept { return {type, value_dim > 0 ? value_dim : head_dim}; }
  /// Bytes of one head in one block.
  [[nodiscard]] constexpr std::size_t head_bytes() const noexcept {
    return key().bytes() + (values_in_keys ? 0 : value().bytes());
  }
  /// Bytes of one block of one layer: all heads, keys and values.
  [[nodiscard]] constexpr std::size_t block_bytes() const noexcept { return head_bytes() * kv_heads; }
  [[nodiscard]] constexpr std::size_t block_stride() const noexcept { return stride > 0 ? stride : block_bytes(); }
};

/// One sequence's keys and values in one layer.
struct KvView {
  KvLayout layout;
  std::byte* base;                       ///< block 0 of this layer
  std::span<const std::int32_t> blocks;  ///< block number of positions [16 i, 16 i + 16)

  [[nodiscard]] std::byte* keys(std::size_t block, std::size_t head) const noexcept {
    return base + static_cast<std::size_t>(blocks[block]) * layout.block_stride() + head * layout.head_bytes();
  }
  /// Not where values lie in the keys.
  [[nodiscard]] std::byte* values(std::size_t block, std::size_t head) const noexcept {
    return keys(block, head) + layout.key().bytes();
  }
};

}  // namespace nihao
