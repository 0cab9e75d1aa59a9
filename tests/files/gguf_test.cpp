#include "nihao/files/gguf.hpp"
#include "nihao/files/gguf_writer.hpp"
#include "nihao/files/json.hpp"
#include "support/data.hpp"
#include "support/temp_folder.hpp"

#include <array>
#include <cstring>
#include <doctest/doctest.h>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

using namespace nihao;
using namespace std::string_view_literals;

namespace {

/// Bytes written one field after another: files that no writer would make.
struct Raw {
  std::vector<std::byte> bytes;
  template <class T>
  Raw& put(T value) {
    return append(&value, sizeof value);
  }
  Raw& text(std::string_view s) {
    put<std::uint64_t>(s.size());
    return chars(s);
  }
  Raw& chars(std::string_view s) { return append(s.data(), s.size()); }
  // Not insert(): at -O3 g++ 12 takes it for an overflow.
  Raw& append(const void* from, std::size_t size) {
    bytes.resize(bytes.size() + size);
    std::memcpy(bytes.data() + bytes.size() - size, from, size);
    return *this;
  }
  Raw& type(GgufType t) { return put(static_cast<std::uint32_t>(t)); }
};

Raw header(std::uint64_t tensors, std::uint64_t entries, std::uint32_t version = 3) {
  Raw raw;
  raw.chars("GGUF").put(version).put(tensors).put(entries);
  return raw;
}

/// The error of bytes that must not be read, or one that no check expects.
Error refused(const Raw& raw) {
  const auto file = Gguf::from_bytes(raw.bytes);
  return file ? Error{ErrorCode::cancelled, "the file was read"} : file.error();
}

/// One metadata value of raw bytes.
Error refused_value(GgufType type, const Raw& value) {
  GgufWriter writer;
  writer.add_raw("key", type, value.bytes);
  Raw raw;
  raw.bytes = writer.bytes();
  return refused(raw);
}

std::vector<std::byte> ramp(std::size_t size) {
  std::vector<std::byte> out(size);
  for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<std::byte>(i * 7 + 3);
  return out;
}

/// A small file with a bit of everything.
GgufWriter everything(const std::vector<std::byte>& weights) {
  GgufWriter writer;
  writer.add("general.architecture", "llama");
  writer.add("u8", std::uint8_t{200});
  writer.add("i8", std::int8_t{-3});
  writer.add("u16", std::uint16_t{60000});
  writer.add("i16", std::int16_t{-30000});
  writer.add("u32", std::uint32_t{4000000000});
  writer.add("i32", std::int32_t{-5});
  writer.add("u64", std::uint64_t{1} << 63);
  writer.add("i64", std::int64_t{-6000000000});
  writer.add("f32", 0.5f);
  writer.add("f64", 1e-5);
  writer.add("big", 1e300);
  writer.add("yes", true);
  writer.add_array<std::int32_t>("ints", std::array<std::int32_t, 3>{1, 2, -3});
  writer.add_array<float>("floats", std::array<float, 2>{0.25f, 8.0f});
  writer.add_bools("bools", std::array<bool, 3>{true, false, true});
  writer.add_strings("words", std::array<std::string_view, 3>{"a", "", "ccc"});
  writer.add_strings("no words", {});
  const std::uint64_t shape[] = {3, 32}, cube[] = {2, 3, 4};
  REQUIRE(writer.add_tensor("w", FormatId::Q4_0, shape, std::span(weights).first(3 * 18)).has_value());
  REQUIRE(writer.add_tensor("v", FormatId::F32, std::span(shape).first(1), std::span(weights).first(12)).has_value());
  REQUIRE(writer.add_tensor("c", FormatId::F16, cube, std::span(weights).first(48)).has_value());
  return writer;
}

}  // namespace

TEST_CASE("what the writer writes, the reader reads") {
  const auto weights = ramp(256);
  const auto bytes = everything(weights).bytes();
  const auto file = Gguf::from_bytes(bytes);
  REQUIRE_MESSAGE(file.has_value(), (file ? "" : file.error().message()));
  CHECK(*file->get<int>("u8") == 200);
  CHECK(*file->get<int>("i8") == -3);
  CHECK(*file->get<std::int64_t>("u32") == 4000000000);
  CHECK(*file->get<std::uint64_t>("u64") == std::uint64_t{1} << 63);
  CHECK(*file->get<std::int64_t>("i64") == -6000000000);
  CHECK(*file->get<float>("f64") == 1e-5f);
  CHECK(*file->get<double>("f64") == 1e-5);
  CHECK(*file->get<double>("u16") == 60000.0);
  CHECK(*file->get<bool>("yes"));
  CHECK(*file->array<std::int64_t>("ints") == std::vector<std::int64_t>{1, 2, -3});
  CHECK(*file->array<double>("floats") == std::vector<double>{0.25, 8.0});
  CHECK(*file->array<bool>("bools") == std::vector<bool>{true, false, true});
  CHECK(*file->strings("words") == std::vector{"a"sv, ""sv, "ccc"sv});
  CHECK(file->strings("no words")->empty());

  const TensorInfo* w = file->tensors().find("w");
  REQUIRE(w != nullptr);
  CHECK(w->rows() == 3);
  CHECK(w->cols() == 32);
  CHECK(w->bytes.size() == 54);
  CHECK(std::memcmp(w->bytes.data(), weights.data(), 54) == 0);
  CHECK(bytes.data() + w->offset == w->bytes.data());
  CHECK(file->tensors().find("v")->rank == 1);
  CHECK(file->tensors().find("v")->cols() == 3);
  const TensorInfo* c = file->tensors().find("c");
  CHECK(c->shape == std::array<std::uint64_t, 4>{2, 3, 4, 1});
  CHECK(c->rows() == 6);
  CHECK_FALSE(file->tensors().mapped());
}

TEST_CASE("a number that does not fit the type asked for is an error, never a wrap") {
  const auto weights = ramp(256);
  const auto bytes = everything(weights).bytes();
  const auto file = Gguf::from_bytes(bytes);
  REQUIRE(file.has_value());
  CHECK(file->get<std::int8_t>("u8").error().code == ErrorCode::mismatch);
  CHECK(file->get<unsigned>("i8").error().message() == "metadata key \"i8\": wanted a non-negative integer, the file has i8 -3");
  CHECK(file->get<std::int64_t>("u64").error().code == ErrorCode::mismatch);
  CHECK(file->get<int>("f32").error().code == ErrorCode::mismatch);
  CHECK(file->get<float>("u32").error().code == ErrorCode::mismatch);  // 4000000000 needs 32 bits, a float has 24
  CHECK(*file->get<double>("u32") == 4e9);
  CHECK(file->get<float>("big").error().code == ErrorCode::mismatch);
  CHECK(*file->get<double>("big") == 1e300);
  CHECK(file->get<int>("yes").error().code == ErrorCode::mismatch);
  CHECK(file->get<bool>("u8").error().code == ErrorCode::mismatch);
  CHECK(file->array<unsigned>("ints").error().code == ErrorCode::mismatch);
  CHECK(file->get<int>("ints").error().message() == "metadata key \"ints\": wanted an integer, the file has an array of i32");
}

TEST_CASE("every metadata value prints in one short line") {
  const auto weights = ramp(256);
  const auto bytes = everything(weights).bytes();
  const auto file = Gguf::from_bytes(bytes);
  REQUIRE(file.has_value());
  CHECK(file->find("general.architecture")->describe() == "\"llama\"");
  CHECK(file->find("i16")->describe() == "-30000");
  CHECK(file->find("yes")->describe() == "true");
  CHECK(file->find("ints")->describe() == "[3 x i32] {1, 2, -3}");
  CHECK(file->find("words")->describe() == "[3 x string] {\"a\", \"\", \"ccc\"}");
  CHECK(file->find("no words")->describe() == "[0 x string]");
  GgufWriter writer;
  writer.add("long", std::string_view(std::string(100000, 'x')));
  std::vector<int> many(100000, -123456789);
  writer.add_array<int>("many", many);
  const auto more = writer.bytes();
  const auto long_ones = Gguf::from_bytes(more);
  REQUIRE(long_ones.has_value());
  for (const GgufEntry& entry : long_ones->metadata()) CHECK(entry.describe().size() < 200);
}

TEST_CASE("version 2 is read like version 3; version 1, later ones and big-endian files are refused by name") {
  GgufWriter two(32, 2);
  two.add("k", 5);
  const auto bytes = two.bytes();
  const auto file = Gguf::from_bytes(bytes);
  REQUIRE(file.has_value());
  CHECK(file->version() == 2);
  CHECK(*file->get<int>("k") == 5);
  CHECK(refused(header(0, 0, 1)).what == "GGUF version 1; 2 and 3 are read");
  CHECK(refused(header(0, 0, 4)).code == ErrorCode::unsupported);
  CHECK(refused(header(0, 0, 0x03000000)).what == "a big-endian GGUF file");
  Raw other;
  CHECK(refused(other.chars("PK\x03\x04 and so on, and on")).message() ==
        "memory: not a GGUF file: it starts with \"PK\\x03\\x04\"");
  CHECK(refused(Raw{}).code == ErrorCode::truncated);
}

TEST_CASE("the alignment is the file's, a power of two from 8") {
  const auto weights = ramp(256);
  const std::uint64_t shape[] = {3};
  for (const std::uint32_t alignment : {8u, 64u, 4096u}) {
    GgufWriter writer(alignment);
    REQUIRE(writer.add_tensor("a", FormatId::F32, shape, std::span(weights).first(12)).has_value());
    REQUIRE(writer.add_tensor("b", FormatId::F32, shape, std::span(weights).subspan(12, 12)).has_value());
    const auto bytes = writer.bytes();
    const auto file = Gguf::from_bytes(bytes);
    REQUIRE(file.has_value());
    CHECK(file->alignment() == alignment);
    CHECK(file->tensors().find("b")->offset % alignment == 0);
    CHECK(std::memcmp(file->tensors().find("b")->bytes.data(), weights.data() + 12, 12) == 0);
  }
  for (const std::uint32_t alignment : {0u, 1u, 4u, 48u, 0xffffffffu}) {
    GgufWriter writer;
    writer.add("general.alignment", alignment);
    Raw raw;
    raw.bytes = writer.bytes();
    CHECK(refused(raw).code == ErrorCode::malformed);
  }
  GgufWriter text;
  text.add("general.alignment", "32");
  Raw raw;
  raw.bytes = text.bytes();
  CHECK(refused(raw).code == ErrorCode::mismatch);
  // 2^31 is a power of two; the data would then start far behind the end.
  GgufWriter huge;
  huge.add("general.alignment", 0x80000000u);
  huge.add_tensor_raw("a", 0, shape, 0);
  raw.bytes = huge.bytes();
  CHECK(refused(raw).code == ErrorCode::truncated);
}

TEST_CASE("bytes in memory must be aligned, so that every tensor is") {
  const auto weights = ramp(256);
  const auto bytes = everything(weights).bytes();
  std::vector<std::byte> shifted(bytes.size() + 1);
  std::copy(bytes.begin(), bytes.end(), shifted.begin() + 1);
  const auto file = Gguf::from_bytes(std::span<const std::byte>(shifted).subspan(1));
  CHECK(file.error().code == ErrorCode::invalid_argument);
  CHECK(Gguf::from_bytes(std::span<const std::span<const std::byte>>{}).error().code == ErrorCode::invalid_argument);
}

// Cases of public reports and advisories.

TEST_CASE("PR 27188: an array, metadata, tensors or a string longer than the file is refused in constant memory") {
  constexpr std::uint64_t huge = std::uint64_t{1} << 63;
  for (const GgufType type : {GgufType::u8, GgufType::u32, GgufType::f64, GgufType::string, GgufType::array, GgufType::boolean}) {
    Raw value;
    CHECK(refused_value(GgufType::array, value.type(type).put(huge)).code == ErrorCode::truncated);
  }
  CHECK(refused(header(0, huge)).code == ErrorCode::truncated);
  CHECK(refused(header(huge, 0)).code == ErrorCode::truncated);
  CHECK(refused_value(GgufType::string, Raw{}.put(huge).chars("short")).code == ErrorCode::truncated);
  CHECK(refused_value(GgufType::string, Raw{}.put(std::uint64_t{100}).chars("short")).code == ErrorCode::truncated);
  CHECK(refused(header(0, 1).put(std::uint64_t{100}).chars("key that is shorter")).code == ErrorCode::truncated);
  CHECK(refused(header(0, 1).put(UINT64_MAX).chars("key")).code == ErrorCode::truncated);
  CHECK(refused(header(1, 0).put(UINT64_MAX).chars("tensor, with a long enough line")).code == ErrorCode::truncated);
  Raw tiny;  // the reported file: 43 bytes, an array of 2^63
  tiny = header(0, 1).text("key").type(GgufType::array).type(GgufType::u8);
  CHECK(refused(tiny.put(huge)).message().find("metadata key \"key\"") != std::string::npos);
}

TEST_CASE("CVE-2024-21825: an array of strings whose count times size wraps is refused") {
  // 2^61 + 1 items of 8 bytes are 8 bytes after wrapping; 2^60 + 1 of 16 likewise.
  for (const std::uint64_t count : {(std::uint64_t{1} << 61) + 1, (std::uint64_t{1} << 60) + 1, UINT64_MAX}) {
    CHECK(refused_value(GgufType::array, Raw{}.type(GgufType::string).put(count).text("a").text("b")).code ==
          ErrorCode::truncated);
    CHECK(refused_value(GgufType::array, Raw{}.type(GgufType::u64).put(count).put(count).put(count)).code ==
          ErrorCode::truncated);
  }
  // A true count, and one string in the middle that is longer than the rest.
  CHECK(refused_value(GgufType::array, Raw{}.type(GgufType::string).put(std::uint64_t{3}).text("a").put(UINT64_MAX - 7).text("c"))
            .code == ErrorCode::truncated);
}

TEST_CASE("CVE-2024-21836 and CVE-2024-23605: counts of tensors and entries whose product wraps are refused") {
  for (const std::uint64_t count :
       {UINT64_MAX, UINT64_MAX / 2, UINT64_MAX / 32 + 1, UINT64_MAX / 56 + 1, std::uint64_t{1} << 32}) {
    CHECK(refused(header(count, 0).text("padding that is long enough to hold a line or two of the file")).code ==
          ErrorCode::truncated);
    CHECK(refused(header(0, count).text("padding that is long enough to hold a line or two of the file")).code ==
          ErrorCode::truncated);
    CHECK(refused(header(count, count)).code == ErrorCode::truncated);
  }
}

TEST_CASE("CVE-2024-32878: a metadata array that ends early leaves nothing half-made") {
  Raw whole;
  whole = header(0, 2).text("first").type(GgufType::u32).put(1).text("second").type(GgufType::array).type(GgufType::string);
  whole.put(std::uint64_t{3}).text("one").text("two").text("three");
  REQUIRE(Gguf::from_bytes(whole.bytes).has_value());
  for (std::size_t size = 0; size < whole.bytes.size(); ++size) {
    const std::vector<std::byte> cut(whole.bytes.begin(), whole.bytes.begin() + static_cast<std::ptrdiff_t>(size));
    CHECK(Gguf::from_bytes(cut).error().code == ErrorCode::truncated);
  }
}

TEST_CASE("CVE-2025-53630 and CVE-2026-27940: tensor sizes whose sum or product wraps are refused") {
  const auto one = [](std::uint32_t type, std::vector<std::uint64_t> shape, std::uint64_t offset) {
    GgufWriter writer;
    writer.add_tensor_raw("t", type, shape, offset);
    Raw raw;
    raw.bytes = writer.bytes();
    raw.bytes.resize(raw.bytes.size() + 1024);
    return refused(raw);
  };
  CHECK(one(0, {1}, 0).what == "the file was read");                              // the helper itself makes a good file
  CHECK(one(0, {std::uint64_t{1} << 62}, 0).code == ErrorCode::truncated);        // x 4 bytes is 0
  CHECK(one(0, {(std::uint64_t{1} << 62) + 1}, 0).code == ErrorCode::truncated);  // x 4 bytes is 4
  CHECK(one(0, {std::uint64_t{1} << 32, std::uint64_t{1} << 32}, 0).code == ErrorCode::malformed);
  CHECK(one(0, {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}, 0).code == ErrorCode::malformed);
  CHECK(one(0, {1}, UINT64_MAX - 31).code == ErrorCode::truncated);  // offset + size wraps
  CHECK(one(0, {256}, 32).code == ErrorCode::truncated);             // one alignment too far
  CHECK(one(0, {256}, 0).what == "the file was read");
  // Two tensors whose padded sizes sum to a small number.
  GgufWriter writer;
  const std::uint64_t half[] = {(std::uint64_t{1} << 61) - 8};
  writer.add_tensor_raw("a", 0, half, 0);
  writer.add_tensor_raw("b", 0, half, std::uint64_t{1} << 63);
  Raw raw;
  raw.bytes = writer.bytes();
  raw.bytes.resize(raw.bytes.size() + 1024);
  CHECK(refused(raw).code == ErrorCode::truncated);
}

TEST_CASE("nested arrays are read to a small depth and refused beyond it") {
  const auto nested = [](int depth) {
    Raw value;
    for (int i = 0; i < depth; ++i) value.type(GgufType::array).put(std::uint64_t{1});
    value.type(GgufType::u8).put(std::uint64_t{2}).put(std::uint8_t{1}).put(std::uint8_t{2});
    return value;
  };
  GgufWriter writer;
  writer.add_raw("nested", GgufType::array, nested(3).bytes);
  writer.add("after", 5);
  const auto bytes = writer.bytes();
  const auto file = Gguf::from_bytes(bytes);
  REQUIRE_MESSAGE(file.has_value(), (file ? "" : file.error().message()));
  CHECK(*file->get<int>("after") == 5);
  CHECK(file->array<int>("nested").error().code == ErrorCode::mismatch);
  CHECK(file->strings("nested").error().code == ErrorCode::mismatch);
  CHECK(file->find("nested")->describe() == "[1 x array]");
  CHECK(refused_value(GgufType::array, nested(4)).code == ErrorCode::limit);
  CHECK(refused_value(GgufType::array, nested(100000)).code == ErrorCode::limit);
}

TEST_CASE("values break their own rules: unknown types, bools of other values, empty and endless keys") {
  CHECK(refused_value(static_cast<GgufType>(13), Raw{}.put(0)).code == ErrorCode::malformed);
  CHECK(refused_value(static_cast<GgufType>(UINT32_MAX), Raw{}.put(0)).code == ErrorCode::malformed);
  CHECK(refused_value(GgufType::array, Raw{}.put(std::uint32_t{13}).put(std::uint64_t{0})).code == ErrorCode::malformed);
  CHECK(refused_value(GgufType::boolean, Raw{}.put(std::uint8_t{2})).what == "a bool is neither 0 nor 1");
  CHECK(refused_value(GgufType::array, Raw{}.type(GgufType::boolean).put(std::uint64_t{2}).put(std::uint16_t{0x0301})).code ==
        ErrorCode::malformed);
  CHECK(refused(header(0, 1).text("").type(GgufType::u8).put(0)).what == "a metadata key is empty");
  CHECK(refused(header(0, 1).text(std::string(65536, 'k')).type(GgufType::u8).put(0)).code == ErrorCode::malformed);
  Raw twice;
  twice = header(0, 2).text("k").type(GgufType::u8).put(std::uint8_t{1}).text("k").type(GgufType::u8).put(std::uint8_t{2});
  CHECK(refused(twice).message() == "memory: metadata key \"k\": it is there twice");
}

TEST_CASE("a tensor line is held to the format: rank, axes, type, whole blocks, alignment, range, no overlap, one name") {
  struct Line {
    const char* name;
    std::uint32_t type;
    std::vector<std::uint64_t> shape;
    std::uint64_t offset;
  };
  const auto lines = [](const std::vector<Line>& all) {
    GgufWriter writer;
    for (const Line& line : all) writer.add_tensor_raw(line.name, line.type, line.shape, line.offset);
    Raw raw;
    raw.bytes = writer.bytes();
    raw.bytes.resize(raw.bytes.size() + 1024);
    return refused(raw);
  };
  CHECK(lines({{"t", 0, {}, 0}}).what == "rank 0, not 1 to 4");
  CHECK(lines({{"t", 0, {1, 1, 1, 1, 1}, 0}}).what == "rank 5, not 1 to 4");
  CHECK(lines({{"t", 0, {4, 0}, 0}}).what == "axis 1 has size 0");
  CHECK(lines({{"t", 2, {1, 33}, 0}}).what == "rows of 33 values are not whole blocks of Q4_0 (32 values)");
  CHECK(lines({{"t", 2, {32, 16}, 0}}).code == ErrorCode::malformed);  // the blocks of a row, not of the tensor
  CHECK(lines({{"t", 0, {4}, 8}}).what == "offset 8 is not a multiple of the alignment 32");
  CHECK(lines({{"t", 0, {257}, 0}}).code == ErrorCode::truncated);
  CHECK(lines({{"t", 0, {1}, 1024}}).code == ErrorCode::truncated);
  CHECK(lines({{"a", 0, {16}, 0}, {"b", 0, {16}, 32}}).message() == "memory: tensor \"b\": its bytes overlap those of \"a\"");
  CHECK(lines({{"b", 0, {16}, 32}, {"a", 0, {16}, 0}}).code == ErrorCode::malformed);
  CHECK(lines({{"a", 0, {16}, 0}, {"b", 0, {16}, 0}}).code == ErrorCode::malformed);
  CHECK(lines({{"a", 0, {16}, 64}, {"b", 0, {16}, 0}}).what == "the file was read");  // any order, gaps too
  CHECK(lines({{"a", 0, {16}, 0}, {"a", 0, {16}, 64}}).message() == "memory: tensor \"a\": it is there twice");
  CHECK(lines({{"", 0, {16}, 0}}).what == "a tensor's name is empty");
  CHECK(lines({{"t", 9, {256}, 0}}).what == "tensors of type Q8_1 are not supported");
  CHECK(lines({{"t", 26, {256}, 0}}).what == "tensors of type I32 are not supported");
  CHECK(lines({{"t", 4, {256}, 0}}).what == "tensors of type Q4_2 (removed from ggml) are not supported");
  CHECK(lines({{"t", 9999, {256}, 0}}).message() == "memory: tensor \"t\": unknown tensor type 9999");
  CHECK(lines({{"t", UINT32_MAX, {256}, 0}}).code == ErrorCode::unsupported);
}

TEST_CASE("ggml's table of types agrees with the formats that the library has") {
  for (const FormatId format : all_formats) {
    if (ggml_type_of(format) == UINT32_MAX) continue;  // of other files
    const auto info = ggml_type_info(ggml_type_of(format));
    REQUIRE(info.has_value());
    CHECK(info->name == format_info(format).name);
    CHECK(info->block_size == format_info(format).block_size);
    CHECK(info->block_bytes == format_info(format).block_bytes);
    CHECK(format_of_ggml_type(ggml_type_of(format)) == format);
  }
  CHECK_FALSE(ggml_type_info(43).has_value());
  const auto golden = test::data("golden/quant/blocks/golden.json");
  if (!golden) NIHAO_SKIP("golden/quant/blocks/golden.json");
  const auto types = parse_json(test::read_text(*golden));
  REQUIRE(types.has_value());
  for (const auto& [name, type] : types->items()) {  // some are counted in blocks of 32 there that have none
    const auto info = ggml_type_info(type["ggml_type"].get<std::uint32_t>());
    REQUIRE(info.has_value());
    CHECK(info->name == name);
    CHECK(info->block_bytes * type["block_size"].get<std::size_t>() == type["block_bytes"].get<std::size_t>() * info->block_size);
  }
  CHECK_FALSE(format_of_ggml_type(9).has_value());
}

TEST_CASE("a file with tensors of types that the library lacks can be listed, and is refused where weights are wanted") {
  const test::TempFolder folder;
  const auto file = [&](std::uint32_t type, std::uint64_t cols) {
    GgufWriter writer;
    writer.add_tensor_raw("a", 0, std::vector<std::uint64_t>{4}, 0);
    writer.add_tensor_raw("b", type, std::vector<std::uint64_t>{2, cols}, 32);
    writer.add_tensor_raw("c", 0, std::vector<std::uint64_t>{8}, 1024);
    auto bytes = writer.bytes();
    bytes.resize(bytes.size() + 1024 + 32);
    std::ofstream(folder.path("m"), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return Gguf::open(folder.path("m"), GgufTypes::listed);
  };
  // Q8_1: 36 bytes for 32 values.
  const auto listed = file(9, 256);
  REQUIRE_MESSAGE(listed.has_value(), (listed ? "" : listed.error().message()));
  REQUIRE(listed->tensors().tensors().size() == 2);
  CHECK(listed->tensors().find("b") == nullptr);
  CHECK(listed->tensors().find("c")->shape[0] == 8);
  REQUIRE(listed->other_tensors().size() == 1);
  const GgufOtherTensor& other = listed->other_tensors()[0];
  CHECK(other.name == "b");
  CHECK(other.type.name == "Q8_1");
  CHECK(other.rank == 2);
  CHECK(other.shape == std::array<std::uint64_t, 4>{2, 256, 1, 1});
  CHECK(other.bytes.size() == 2 * 8 * 36);
  CHECK(other.offset == listed->tensors().find("a")->offset + 32);
  CHECK(other.index == 1);
  CHECK(Gguf::open(folder.path("m")).error().message() ==
        folder.path("m") + ": tensor \"b\": tensors of type Q8_1 are not supported");
  // It is held to the same rules: whole blocks, inside the file, nobody else's bytes. A type without a size cannot be.
  CHECK(file(9, 250).error().what == "rows of 250 values are not whole blocks of Q8_1 (32 values)");
  CHECK(file(9, 51200).error().code == ErrorCode::truncated);
  CHECK(file(28, 64).error().message().find("tensor \"c\": its bytes overlap those of \"b\"") != std::string::npos);
  CHECK(file(31, 256).error().what == "tensors of type Q4_0_4_4 (removed from ggml) are not supported");
  CHECK(file(43, 256).error().what == "unknown tensor type 43");
}

TEST_CASE("a file cut at any byte is an error") {
  const auto weights = ramp(256);
  auto bytes = everything(weights).bytes();
  bytes.resize(bytes.size() - (32 - 48 % 32));  // the padding behind the last tensor, which no reader needs
  REQUIRE(Gguf::from_bytes(bytes).has_value());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::vector<std::byte> cut(bytes.begin(),
                                     bytes.begin() + static_cast<std::ptrdiff_t>(size));  // its own allocation, for ASan
    const auto file = Gguf::from_bytes(cut);
    REQUIRE_FALSE(file.has_value());
    CHECK(file.error().code == ErrorCode::truncated);
  }
}

TEST_CASE("a file with any one bit turned is read or refused, and what is read can be used") {
  const auto weights = ramp(256);
  const auto bytes = everything(weights).bytes();
  std::size_t refused_count = 0;
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    auto turned = bytes;
    turned[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    const auto file = Gguf::from_bytes(turned);
    if (!file) {
      ++refused_count;
      CHECK_FALSE(file.error().message().empty());
      continue;
    }
    for (const GgufEntry& entry : file->metadata()) {
      CHECK_FALSE(entry.describe().empty());
      static_cast<void>(entry.strings());
      static_cast<void>(entry.items<double>());
    }
    for (const TensorInfo& tensor : file->tensors().tensors()) {
      std::vector<float> row(tensor.cols());
      dequantize_row(tensor.format, tensor.bytes.first(row_bytes(tensor.format, row.size())), row);
    }
  }
  CHECK(refused_count > bytes.size());  // most bits of lengths, types and counts matter
}
