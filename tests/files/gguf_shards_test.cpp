#include "nihao/files/gguf.hpp"
#include "nihao/files/gguf_writer.hpp"
#include "support/data.hpp"
#include "support/temp_folder.hpp"

#include <cstring>
#include <doctest/doctest.h>
#include <string>
#include <vector>

using namespace nihao;

namespace {

const std::uint64_t shape[] = {8};

/// Shard `number` (from 0) of `count`, with one tensor.
std::vector<std::byte> shard(std::uint16_t number, std::uint16_t count, std::string_view tensor, std::int32_t total, bool head) {
  std::vector<std::byte> weights(32, static_cast<std::byte>(number + 1));
  GgufWriter writer;
  if (head) writer.add("general.architecture", "llama");
  writer.add("split.no", number);
  writer.add("split.count", count);
  writer.add("split.tensors.count", total);
  REQUIRE(writer.add_tensor(tensor, FormatId::F32, shape, weights).has_value());
  return writer.bytes();
}

void save(const std::string& path, const std::vector<std::byte>& bytes) {
  auto file = OutputFile::create(path);
  REQUIRE(file.has_value());
  REQUIRE(file->write(bytes).has_value());
  REQUIRE(std::move(*file).commit().has_value());
}

}  // namespace

TEST_CASE("a model in shards opens from any of them") {
  const test::TempFolder folder;
  const auto path = [&](const char* name) { return folder.path(name); };
  save(path("m-00001-of-00003.gguf"), shard(0, 3, "a", 3, true));
  save(path("m-00002-of-00003.gguf"), shard(1, 3, "b", 3, false));
  save(path("m-00003-of-00003.gguf"), shard(2, 3, "c", 3, false));
  for (const char* name : {"m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf"}) {
    const auto file = Gguf::open(path(name));
    REQUIRE_MESSAGE(file.has_value(), (file ? "" : file.error().message()));
    CHECK(*file->architecture() == "llama");
    CHECK(file->tensors().tensors().size() == 3);
    CHECK(file->tensors().find("b")->file == 1);
    CHECK(file->tensors().find("c")->bytes[0] == std::byte{3});
  }
  save(path("other.gguf"), shard(1, 3, "b", 3, false));
  CHECK(Gguf::open(path("other.gguf")).error().code == ErrorCode::mismatch);
  CHECK(Gguf::open(path("none-00001-of-00002.gguf")).error().code == ErrorCode::io);
}

TEST_CASE("shards that do not belong together are refused") {
  const test::TempFolder folder;
  const std::string first = folder.path("m-00001-of-00002.gguf"), second = folder.path("m-00002-of-00002.gguf");
  save(first, shard(0, 2, "a", 2, true));
  CHECK(Gguf::open(first).error().code == ErrorCode::io);  // the second is not there
  CHECK(Gguf::open(first).error().where == second);

  save(second, shard(1, 2, "a", 2, false));
  CHECK(Gguf::open(first).error().message() == first + ": tensor \"a\": it is there twice");
  save(second, shard(0, 2, "b", 2, false));
  CHECK(Gguf::open(first).error().code == ErrorCode::mismatch);
  save(second, shard(1, 3, "b", 2, false));
  CHECK(Gguf::open(first).error().code == ErrorCode::mismatch);
  save(second, shard(5, 2, "b", 2, false));
  CHECK(Gguf::open(first).error().code == ErrorCode::malformed);
  save(second, shard(1, 2, "b", 2, false));
  CHECK(Gguf::open(first).has_value());
  save(first, shard(0, 2, "a", 7, true));
  CHECK(Gguf::open(first).error().what == "split.tensors.count is 7, the shards hold 2");
}

TEST_CASE("a file of holes does not keep the reader busy") {
  const test::TempFolder folder;
  const std::string path = folder.path("holes.gguf");
  GgufWriter writer;
  const std::uint64_t count = std::uint64_t{1} << 33;  // empty strings: 64 GiB of zeros
  std::vector<std::byte> value(12);
  const auto type = GgufType::string;
  std::memcpy(value.data(), &type, 4);
  std::memcpy(value.data() + 4, &count, 8);
  writer.add_raw("zeros", GgufType::array, value);
  save(path, writer.bytes());
  std::error_code failed;
  // Not larger: ThreadSanitizer leaves a program little more than a TiB of addresses, in which a file has to find its place.
  std::filesystem::resize_file(path, std::uint64_t{1} << 37, failed);
  if (failed) NIHAO_SKIP("a file system with sparse files of 128 GiB");
  const auto file = Gguf::open(path);
  REQUIRE_FALSE(file.has_value());
  CHECK(file.error().code == ErrorCode::limit);
}

TEST_CASE("shards are read from memory, all of them and in order") {
  const auto one = shard(0, 2, "a", 2, true), two = shard(1, 2, "b", 2, false);
  const std::span<const std::byte> both[] = {one, two}, turned[] = {two, one};
  const auto file = Gguf::from_bytes(both);
  REQUIRE_MESSAGE(file.has_value(), (file ? "" : file.error().message()));
  CHECK(file->tensors().find("b") != nullptr);
  CHECK(Gguf::from_bytes(turned).error().code == ErrorCode::mismatch);
  CHECK(Gguf::from_bytes(one).error().code == ErrorCode::mismatch);
  CHECK(Gguf::from_bytes(one).error().message() == "memory: the file says that it is shard 1 of 2, and it is read as 1 of 1");
}

TEST_CASE("a file is written whole or not at all") {
  const test::TempFolder folder;
  const std::string path = folder.path("out.gguf");
  GgufWriter writer;
  REQUIRE(writer.add_tensor("a", FormatId::F32, shape).has_value());
  REQUIRE(writer.add_tensor("b", FormatId::F32, shape).has_value());
  const std::vector<std::byte> weights(32, std::byte{1});
  const auto failing = [&](std::size_t i, std::uint64_t) -> Expected<std::span<const std::byte>> {
    if (i == 1) return Error{ErrorCode::numeric, "cannot make it"};
    return weights;
  };
  CHECK(writer.write(path, failing).error().what == "cannot make it");
  CHECK(writer.write(path).error().code == ErrorCode::invalid_argument);
  CHECK(std::filesystem::is_empty(folder.root()));
  const auto good = [&](std::size_t, std::uint64_t) -> Expected<std::span<const std::byte>> { return weights; };
  REQUIRE(writer.write(path, good).has_value());
  CHECK(Gguf::open(path)->tensors().tensors().size() == 2);
  // Pieces of a tensor come one after the other, and no byte too many.
  const auto halves = [&](std::size_t, std::uint64_t offset) -> Expected<std::span<const std::byte>> {
    CHECK(offset % 16 == 0);
    return std::span<const std::byte>(weights).first(16);
  };
  const auto too_many = [&](std::size_t, std::uint64_t) -> Expected<std::span<const std::byte>> {
    return std::span<const std::byte>(weights).first(24);
  };
  REQUIRE(writer.write(folder.path("pieces"), halves).has_value());
  CHECK(test::read_text(folder.path("pieces")) == test::read_text(path));
  CHECK(writer.write(path, too_many).error().code == ErrorCode::invalid_argument);
  CHECK(writer.write(folder.path("no/such/folder"), good).error().code == ErrorCode::io);
  CHECK(writer.add_tensor("c", FormatId::Q4_K, shape).error().code == ErrorCode::invalid_argument);
}
