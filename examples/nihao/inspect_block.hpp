// nihao inspect --block: one block of a tensor, its fields as the format has them, and the values they make.
#pragma once

#include "common.hpp"

#include <nihao/files/tensor_file.hpp>

namespace nihao::program {

/// "blk.0.attn_q.weight:3:0": a tensor's name (which may have colons in it), a row and a block of that row.
struct BlockPlace {
  std::string tensor;
  std::uint64_t row = 0, block = 0;
};
/// Nothing if the text is not of that form.
[[nodiscard]] std::optional<BlockPlace> parse_block_place(std::string_view text);

/// Prints the block. Errors: missing (no such tensor), invalid_argument (no such row or block), both naming what there is.
[[nodiscard]] Expected<int> inspect_block(const TensorFile& file, const BlockPlace& place, bool json);

}  // namespace nihao::program
