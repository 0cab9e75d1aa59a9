// What every consumer builds. Exits 0 if the library did what it says.
#include <nihao/base/bytes.hpp>
#include <nihao/base/floats.hpp>

#include <array>
#include <cstddef>
#include <cstdio>

int main() {
  const std::array<std::byte, 6> file{std::byte{0x00}, std::byte{0x3c}, std::byte{0x00},
                                      std::byte{0xc0}, std::byte{1},    std::byte{2}};
  nihao::ByteReader reader{file};
  const auto one = reader.read<std::uint16_t>("one");
  const auto minus_two = reader.read<std::uint16_t>("minus two");
  const auto too_much = reader.read<std::uint64_t>("too much");
  if (!one || nihao::to_float(nihao::f16{*one}) != 1.0f || !minus_two || nihao::to_float(nihao::f16{*minus_two}) != -2.0f)
    return 1;
  if (too_much) return 2;
  std::puts(too_much.error().message().c_str());
  return too_much.error().code == nihao::ErrorCode::truncated ? 0 : 3;
}
