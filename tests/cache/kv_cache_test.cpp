#include "nihao/cache/kv_cache.hpp"

#include <doctest/doctest.h>

using namespace nihao;

namespace {
const CacheSpec two_layers[] = {{2, 16}, {1, 40}};
}

TEST_CASE("a cache has room for every type of keys and values, and says how much") {
  for (const auto& [type, bits] : {std::pair<KvType, std::size_t>{KvType::f32, 32}, {KvType::f16, 16}, {KvType::bf16, 16}}) {
    const auto cache = KvCache::create(two_layers, type, 40, 3);
    REQUIRE(cache.has_value());
    // 40 positions are three blocks of sixteen; keys and values; 2 heads of 16 and one of 40.
    CHECK(cache->bytes() == 3 * 48 * 2 * (2 * 16 + 40) * bits / 8);
    CHECK(cache->capacity() == 40);
    CHECK(cache->sequences() == 3);
    CHECK(cache->layers() == 2);
  }
  // int8, and an f16 scale for every 32 values of a head.
  CHECK(KvCache::create(two_layers, KvType::q8_0, 16)->bytes() == 16 * 2 * ((2 * (16 + 2)) + (40 + 4)));
}

TEST_CASE("what all layers keep of sixteen positions lies together, so that memory grows with the text") {
  const auto cache = KvCache::create(two_layers, KvType::f16, 40, 2);
  REQUIRE(cache.has_value());
  const std::size_t first = cache->layout(0).block_bytes(), second = cache->layout(1).block_bytes();
  CHECK(cache->data(1) == cache->data(0) + first);
  std::byte* expected = cache->data(0);
  for (std::size_t sequence = 0; sequence < 2; ++sequence)
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t layer = 0; layer < 2; ++layer) {
        const std::span<std::byte> block = cache->block(layer, sequence, i);
        CHECK(block.data() == expected);
        CHECK(block.size() == (layer == 0 ? first : second));
        const KvView view{cache->layout(layer), cache->data(layer), cache->blocks(sequence)};
        CHECK(view.keys(i, 0) == expected);
        expected += block.size();
      }
    }
  CHECK(expected == cache->data(0) + cache->bytes());
}

TEST_CASE("sequences have blocks of their own, and grow, shrink and fill up independently") {
  auto cache = *KvCache::create(two_layers, KvType::f16, 40, 3);
  std::vector<bool> taken(9, false);
  for (std::size_t s = 0; s < 3; ++s)
    for (const std::int32_t block : cache.blocks(s)) {
      REQUIRE((block >= 0 && block < 9));
      CHECK_FALSE(taken[static_cast<std::size_t>(block)]);
      taken[static_cast<std::size_t>(block)] = true;
    }
  REQUIRE(cache.extend(1, 17));
  CHECK(cache.length(0) == 0);
  CHECK(cache.length(1) == 17);
  CHECK(cache.used_blocks(1) == 2);
  CHECK(cache.used_blocks(0) == 0);
  const auto full = cache.extend(1, 24);
  REQUIRE(!full);
  CHECK(full.error().code == ErrorCode::context_full);
  CHECK(full.error().what == "the context holds 40 tokens; 17 are used, and 24 more do not fit");
  CHECK(cache.length(1) == 17);
  REQUIRE(cache.extend(1, 23));
  CHECK_FALSE(cache.extend(1, SIZE_MAX).has_value());
  cache.truncate(1, 5);
  CHECK(cache.length(1) == 5);
  cache.truncate(1, 30);  // nothing to forget
  CHECK(cache.length(1) == 5);
  const auto nobody = cache.extend(3, 1);
  REQUIRE(!nobody);
  CHECK(nobody.error().code == ErrorCode::invalid_argument);
}

TEST_CASE("a cache of no or of absurd size is an error") {
  const auto code = [](std::size_t capacity, std::size_t sequences) {
    return KvCache::create(two_layers, KvType::f16, capacity, sequences).error().code;
  };
  CHECK(code(0, 1) == ErrorCode::invalid_argument);
  CHECK(code(1, 0) == ErrorCode::invalid_argument);
  CHECK(code(SIZE_MAX, 1) == ErrorCode::invalid_argument);
  CHECK(code(1, SIZE_MAX) == ErrorCode::invalid_argument);
  CHECK(code(std::size_t{1} << 28, 1000) == ErrorCode::invalid_argument);
  const CacheSpec huge[] = {{UINT32_MAX, 1024}};
  CHECK(KvCache::create(huge, KvType::f32, std::size_t{1} << 28).error().code == ErrorCode::out_of_memory);
}
