#include "nihao/base/error.hpp"
#include "nihao/base/bytes.hpp"

#include <doctest/doctest.h>
#include <memory>
#include <vector>

using namespace nihao;

static Expected<int> half(int n) {
  if (n % 2) return Error{ErrorCode::invalid_argument, "odd"};
  return n / 2;
}
static Expected<int> quarter(int n) {
  NIHAO_TRY(const int h, half(n));
  return half(h);
}

TEST_CASE("an Expected holds a value or an error, and passes errors on") {
  CHECK(*quarter(8) == 2);
  CHECK(quarter(6).error().what == "odd");
  CHECK(quarter(5).value_or(-1) == -1);
  CHECK(*half(8).and_then(half) == 2);
  CHECK(*half(8).transform([](int n) { return n + 0.5; }) == 4.5);
  CHECK(half(3).transform_error([](Error e) { return std::move(e).in("half"); }).error().message() == "half: odd");
  CHECK_THROWS_AS(half(3).value(), BadExpectedAccess);
  auto moved = Expected<std::unique_ptr<int>>(std::make_unique<int>(5));
  CHECK(*std::move(moved).value() == 5);
  Expected<void> nothing;
  CHECK(nothing.has_value());
}

TEST_CASE("the byte reader never reads or promises past the end") {
  const std::vector<std::byte> bytes{std::byte{1}, std::byte{0}, std::byte{2}, std::byte{0}, std::byte{0}, std::byte{0}};
  ByteReader reader(bytes);
  CHECK(*reader.read<std::uint16_t>("a") == 1);
  CHECK(reader.read<std::uint64_t>("b").error().code == ErrorCode::truncated);
  CHECK(reader.read<std::uint64_t>("b").error().message() == "byte 2: b needs 8 bytes, and 4 are left");
  CHECK(reader.bytes(UINT64_MAX, "c").error().code == ErrorCode::truncated);
  CHECK_FALSE(reader.expect_items(UINT64_MAX / 2, 16, "d").has_value());
  CHECK(reader.expect_items(2, 2, "e").has_value());
  CHECK(reader.align(4).has_value());
  CHECK(reader.left() == 2);
  CHECK_FALSE(reader.align(8).has_value());
}
