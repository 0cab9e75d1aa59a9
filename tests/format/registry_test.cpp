#include "nihao/format/registry.hpp"

#include <cstring>
#include <doctest/doctest.h>
#include <vector>

using namespace nihao;

TEST_CASE("every format is found by its id and by its name") {
  for (const FormatId id : all_formats) {
    const FormatInfo info = format_info(id);
    CHECK(format_from_name(info.name) == id);
    CHECK(visit_format(id, []<class F>(F) { return F::id; }) == id);
    CHECK(row_bytes(id, 512) == 512 / info.block_size * info.block_bytes);
  }
  CHECK_FALSE(format_from_name("Q4").has_value());
  CHECK(bits_per_weight<Q4_0> == 4.5);
  CHECK(bits_per_weight<Q6_K> == 6.5625);
}

TEST_CASE("a row is read from any address") {
  std::vector<std::byte> bytes(1 + 2 * 18);
  const Q4_0::Block blocks[2] = {{to_f16(0.5f), {0xf0, 0x08}}, {to_f16(-2.0f), {0x11}}};
  std::memcpy(bytes.data() + 1, blocks, sizeof blocks);
  std::vector<float> out(64);
  dequantize_row(FormatId::Q4_0, std::span(bytes).subspan(1), out);
  CHECK(out[0] == -4.0f);
  CHECK(out[16] == 3.5f);
  CHECK(out[1] == 0.0f);
  CHECK(out[17] == -4.0f);
  CHECK(out[32] == 14.0f);
}
