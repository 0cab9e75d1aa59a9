// expect: A weight format needs `static constexpr std::size_t block_size`: the number of values in a block.
#include "nihao/format/registry.hpp"

struct NoSize {
  struct [[gnu::packed]] Block {
    float value;
  };
  static constexpr std::string_view name = "NoSize";
  static constexpr nihao::FormatId id = nihao::FormatId::F32;
};
void use(std::span<const std::byte> row, std::span<float> out) { nihao::dequantize_row<NoSize>(row, out); }
