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
enum class FormatId : std::uint8_t {
  F32,
  F16,
  BF16,
  Q8_0,
  Q4_0,
  Q4_1,
  Q5_0,
  Q5_1,
  Q2_K,
  Q3_K,
  Q4_K,
  Q5_K,
  Q6_K,
  Q8_K,
  IQ4_NL,
  IQ4_XS,
  IQ3_XXS,
  IQ3_S,
  IQ2_XXS,
  IQ2_XS,
  IQ2_S,
  IQ1_S,
  IQ1_M,
  TQ1_0,
  TQ2_0,
  Q1_0,
  Q2_0,
  MXFP4,
  NVFP4,
  INT4,  // from here on: of Hugging Face checkpoints
  INT8,
  FP8_E4M3,
  FP8_E5M2,
  NF4,
};

template <class F>
concept HasBlock = requires {
  typename F::Block;
  requires std::is_trivially_copyable_v<typename F::Block>;
};
/// A row of blocks may start at any byte of a file, so a block asks for no alignment: `struct [[gnu::packed]] Block`.
template <class F>
concept HasPackedBlock = HasBlock<F> && alignof(typename F::Block) == 1;
template <class F>
concept HasBlockSize = requires {
  { F::block_size } -> std::convertible_to<std::size_t>;
};
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
concept BlockFormat = HasPackedBlock<F> && HasBlockSize<F> && HasFormatName<F> && HasDequantize<F>;

/// Gives a sentence instead of a concept dump: `CheckFormat<F>` in a class that takes a format.
template <class F>
struct CheckFormat {
  static_assert(HasBlock<F>, "A weight format needs a trivially copyable nested type `Block`: the bytes of one block as stored.");
  static_assert(HasPackedBlock<F>, "A weight format's `Block` must be packed (alignof 1): blocks lie at any byte of a file.");
  static_assert(HasBlockSize<F>,
                "A weight format needs `static constexpr std::size_t block_size`: the number of values in a block.");
  static_assert(HasFormatName<F>,
                "A weight format needs `static constexpr std::string_view name` and `static constexpr FormatId id`.");
  static_assert(HasDequantize<F>,
                "A weight format needs `static void dequantize(const Block&, std::span<float, block_size>) noexcept`.");
};

/// Bytes of one block.
template <BlockFormat F>
inline constexpr std::size_t block_bytes = sizeof(typename F::Block);

/// Bits a weight takes, scales included: 4.5 for Q4_0.
template <BlockFormat F>
inline constexpr double bits_per_weight = 8.0 * sizeof(typename F::Block) / static_cast<double>(std::size_t{F::block_size});

/// Whether the CPU multiplies with this format's values as floats, and not with integers that a scale turns into values: floats
/// themselves, and formats whose codes are floats or levels that no integers stand for (they say `float_codes`).
template <BlockFormat F>
inline constexpr bool multiplied_as_floats = F::block_size == 1 || requires { requires F::float_codes; };

/// Stored bytes seen as blocks, in place; a rest shorter than a block is not seen.
template <BlockFormat F>
[[nodiscard]] std::span<const typename F::Block> as_blocks(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const typename F::Block*>(bytes.data()), bytes.size() / block_bytes<F>};
}

}  // namespace nihao
