// expect: A weight format's `Block` must be packed (alignof 1): blocks lie at any byte of a file.
#include "nihao/format/registry.hpp"

struct Aligned {
  struct Block {
    float value;
  };
  static constexpr std::size_t block_size = 1;
  static constexpr std::string_view name = "Aligned";
  static constexpr nihao::FormatId id = nihao::FormatId::F32;
  static void dequantize(const Block& block, std::span<float, 1> out) noexcept { out[0] = block.value; }
};
void use(std::span<const std::byte> row, std::span<float> out) { nihao::dequantize_row<Aligned>(row, out); }
