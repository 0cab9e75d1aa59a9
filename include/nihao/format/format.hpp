// What a weight format is: the concepts every format models, and the names of the formats files use.
#pragma once

#include "../base/config.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace nihao {

/// The formats that tensors are stored in. Names are those of the files.
enum class FormatId : std::uint8_t { F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K, Q6_K };

template <class F>
concept HasBlock = requires {
  typename F::Block;
  requires std::is_trivially_copyable_v<typename F::Block>;
};
template <class F>
concept HasBlockSize = requires { { F::block_size } -> std::convertible_to<std::size_t>; };
template <class F>
concept HasFormatName = requires {
  { F::name } -> std::convertible_to<std::string_view>;
  { F::id } -> std::convertible_to<FormatId>;
};
template <class F>
concept HasDequantize = requires(const typename F::Block& block, std::span<float, F::block_size> out) {
  { F::dequantize(block, out) } noexcept;
};

/// A format of self-contained blocks (all GGUF formats): `Block` is a block's bytes as the file has them, `block_size` the
/// number of values in it, `dequantize` the scalar definition of what those values are.
template <class F>
concept BlockFormat = HasBlock<F> && HasBlockSize<F> && HasFormatName<F> && HasDequantize<F>;

/// Gives a sentence instead of a concept dump: `CheckFormat<F>` in a class that takes a format.
template <class F>
struct CheckFormat {
  static_assert(HasBlock<F>, "A weight format needs a trivially copyable nested type `Block`: the bytes of one block as stored.");
  static_assert(HasBlockSize<F>, "A weight format needs `static constexpr std::size_t block_size`: the number of values in a block.");
  static_assert(HasFormatName<F>, "A weight format needs `static constexpr std::string_view name` and `static constexpr FormatId id`.");
  static_assert(HasDequantize<F>, "A weight format needs `static void dequantize(const Block&, std::span<float, block_size>) noexcept`.");
};

/// Bytes of one block.
template <BlockFormat F>
inline constexpr std::size_t block_bytes = sizeof(typename F::Block);

}  // namespace nihao
