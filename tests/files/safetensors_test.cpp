#include "nihao/files/safetensors.hpp"
#include "nihao/files/safetensors_writer.hpp"
#include "support/data.hpp"
#include "support/temp_folder.hpp"

#include <cstring>
#include <doctest/doctest.h>
#include <string>
#include <vector>

using namespace nihao;

namespace {

std::vector<std::byte> file_of(std::string header, std::size_t data_bytes) {
  std::vector<std::byte> out(8 + header.size() + data_bytes);
  const std::uint64_t size = header.size();
  std::memcpy(out.data(), &size, 8);
  std::memcpy(out.data() + 8, header.data(), header.size());
  for (std::size_t i = 0; i < data_bytes; ++i) out[8 + header.size() + i] = static_cast<std::byte>(i);
  return out;
}

Error refused(const std::string& header, std::size_t data_bytes) {
  const auto bytes = file_of(header, data_bytes);
  const auto file = Safetensors::from_bytes(bytes);
  return file ? Error{ErrorCode::cancelled, "the file was read"} : file.error();
}

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

void save(const std::string& path, std::span<const std::byte> bytes) {
  auto file = OutputFile::create(path);
  REQUIRE(file.has_value());
  REQUIRE(file->write(bytes).has_value());
  REQUIRE(std::move(*file).commit().has_value());
}
void save(const std::string& path, std::string_view text) { save(path, std::as_bytes(std::span(text))); }

}  // namespace

TEST_CASE("what the writer writes, the reader reads") {
  const test::TempFolder folder;
  const std::vector<float> logits{1.5f, -2.0f, 3.25f, 0.0f, 1e-30f, -7.0f};
  const std::vector<std::int64_t> ids{1, -2, std::int64_t{1} << 40};
  const std::vector<std::uint8_t> flags{1, 0, 1};
  const std::vector<std::uint16_t> halves{0x3c00, 0xc000}, brains{0x3f80, 0xc000};
  const std::vector<double> doubles{0.1};
  const SafetensorsTensor tensors[] = {{"flags", SafetensorsType::BOOL, {3}, bytes_of(flags)},
                                       {"logits", SafetensorsType::F32, {2, 3}, bytes_of(logits)},
                                       {"ids", SafetensorsType::I64, {3}, bytes_of(ids)},
                                       {"half \"quoted\" 你好", SafetensorsType::F16, {2}, bytes_of(halves)},
                                       {"brain", SafetensorsType::BF16, {1, 2}, bytes_of(brains)},
                                       {"scalar", SafetensorsType::F64, {}, bytes_of(doubles)},
                                       {"empty", SafetensorsType::F32, {4, 0}, {}}};
  const std::pair<std::string, std::string> metadata[] = {{"format", "pt"}};
  const std::string path = folder.path("t.safetensors");
  REQUIRE(write_safetensors(path, tensors, metadata).has_value());

  const auto file = Safetensors::open(path);
  REQUIRE_MESSAGE(file.has_value(), (file ? "" : file.error().message()));
  CHECK(file->entries().size() == 7);
  CHECK(file->metadata()[0].second == "pt");
  CHECK(*file->values<float>("logits") == logits);
  CHECK(*file->values<std::int64_t>("ids") == ids);
  CHECK(*file->values<double>("ids") == std::vector<double>{1, -2, 1099511627776.0});
  CHECK(*file->values<bool>("flags") == std::vector<bool>{true, false, true});
  CHECK(*file->values<float>("half \"quoted\" 你好") == std::vector<float>{1, -2});
  CHECK(*file->values<float>("brain") == std::vector<float>{1, -2});
  CHECK(*file->values<double>("scalar") == doubles);
  CHECK(file->values<float>("empty")->empty());
  CHECK(file->values<int>("ids").error().code == ErrorCode::mismatch);  // 2^40 does not fit
  CHECK(file->values<int>("logits").error().code == ErrorCode::mismatch);
  CHECK(file->values<bool>("ids").error().code == ErrorCode::mismatch);
  CHECK(file->values<float>("flags").error().code == ErrorCode::mismatch);
  CHECK(file->values<float>("none").error().message() == "tensor \"none\": the file does not have it");
  for (const SafetensorsEntry& entry : file->entries()) {
    const std::uint32_t element = safetensors_type_info(entry.type).bits / 8;
    CHECK(reinterpret_cast<std::uintptr_t>(entry.bytes.data()) % element == 0);
  }
}

TEST_CASE("the float tensors are weights, and outlive the reader") {
  const test::TempFolder folder;
  const std::vector<float> values(24, 2.0f);
  const std::vector<std::int32_t> codes(8, 7);
  const SafetensorsTensor tensors[] = {{"w", SafetensorsType::F32, {2, 3, 4}, bytes_of(values)},
                                       {"five", SafetensorsType::F32, {1, 2, 1, 3, 4}, bytes_of(values)},
                                       {"codes", SafetensorsType::I32, {8}, bytes_of(codes)},
                                       {"scale", SafetensorsType::F32, {}, bytes_of(values).first(4)}};
  REQUIRE(write_safetensors(folder.path("model.safetensors"), tensors).has_value());
  TensorFile weights;
  {
    auto file = Safetensors::open(folder.root().string());  // the folder finds model.safetensors
    REQUIRE_MESSAGE(file.has_value(), (file ? "" : file.error().message()));
    CHECK(file->find("codes") != nullptr);
    weights = std::move(*file).take_tensors();
  }
  CHECK(weights.tensors().size() == 2);
  const TensorInfo* w = weights.find("w");
  REQUIRE(w != nullptr);
  CHECK(w->rank == 3);
  CHECK(w->rows() == 6);
  CHECK(w->cols() == 4);
  float first = 0;
  std::memcpy(&first, w->bytes.data(), 4);
  CHECK(first == 2.0f);
  CHECK(weights.find("scale")->elements() == 1);
  CHECK(weights.find("codes") == nullptr);
  CHECK(weights.mapped());
}

TEST_CASE("a tensor that the file does not align is still aligned as a weight") {
  const auto bytes = file_of(
      R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"F32","shape":[2],"data_offsets":[3,11]}})", 11);
  const auto file = Safetensors::from_bytes(bytes);
  REQUIRE_MESSAGE(file.has_value(), (file ? "" : file.error().message()));
  const TensorInfo* b = file->tensors().find("b");
  REQUIRE(b != nullptr);
  CHECK(reinterpret_cast<std::uintptr_t>(b->bytes.data()) % 4 == 0);
  CHECK(std::memcmp(b->bytes.data(), file->find("b")->bytes.data(), 8) == 0);
  CHECK(file->values<float>("b")->size() == 2);
}

TEST_CASE("a safetensors header is held to the specification") {
  const std::string good =
      R"({"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"b":{"dtype":"U8","shape":[4],"data_offsets":[16,20]}})";
  CHECK(refused(good, 20).what == "the file was read");
  CHECK(refused(good + "     ", 20).what == "the file was read");  // padded with spaces
  CHECK(refused(" " + good, 20).message() == "memory: byte 8: the header does not start with {");
  CHECK(refused(good, 21).message().find("1 bytes after the last tensor") != std::string::npos);
  CHECK(refused(good, 19).code == ErrorCode::truncated);
  CHECK(refused("{}", 0).what == "the file was read");
  CHECK(refused("{}", 1).code == ErrorCode::malformed);
  CHECK(refused("[]", 0).code == ErrorCode::malformed);
  CHECK(refused("{\"a\":", 0).code == ErrorCode::malformed);

  const auto line = [](const std::string& dtype, const std::string& shape, const std::string& range) {
    return "{\"a\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + range + "}}";
  };
  CHECK(refused(line("F32", "[2,2]", "[0,16]"), 16).what == "the file was read");
  CHECK(refused(line("F4", "[8]", "[0,4]"), 4).what == "the file was read");
  CHECK(refused(line("F4", "[7]", "[0,3]"), 3).code == ErrorCode::malformed);
  CHECK(refused(line("F32", "[2,2]", "[0,12]"), 12).message() ==
        "memory: tensor \"a\": dtype and shape make 16 bytes, data_offsets 12");
  CHECK(refused(line("F128", "[1]", "[0,16]"), 16).code == ErrorCode::unsupported);
  CHECK(refused(line("F32", "[1]", "[8,4]"), 16).code == ErrorCode::malformed);
  CHECK(refused(line("F32", "[1]", "[0,4,8]"), 16).code == ErrorCode::malformed);
  CHECK(refused(line("F32", "[1]", "[0]"), 16).code == ErrorCode::malformed);
  CHECK(refused(line("F32", "[1]", "[4,8]"), 8).message().find("leave a gap") != std::string::npos);
  CHECK(refused(line("F32", "[-1]", "[0,4]"), 4).code == ErrorCode::mismatch);
  CHECK(refused(line("F32", "[1.5]", "[0,4]"), 4).code == ErrorCode::mismatch);
  CHECK(refused(line("F32", "\"1\"", "[0,4]"), 4).code == ErrorCode::mismatch);
  CHECK(refused(line("F32", "[4611686018427387905]", "[0,4]"), 4).code == ErrorCode::malformed);    // x 32 bits wraps
  CHECK(refused(line("F32", "[4294967296,4294967296]", "[0,0]"), 0).code == ErrorCode::malformed);  // product wraps to 0
  CHECK(refused(line("F32", "[0,18446744073709551615,9]", "[0,0]"), 0).code == ErrorCode::malformed);
  CHECK(refused(line("F32", "[1]", "[0,18446744073709551615]"), 4).code == ErrorCode::truncated);
  CHECK(refused(line("F32", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,4]"), 4).code == ErrorCode::limit);
  CHECK(refused(R"({"a":{"shape":[1],"data_offsets":[0,4]}})", 4).message() == "memory: tensor \"a\": dtype: not there");
  CHECK(refused(R"({"a":5})", 0).code == ErrorCode::missing);
  CHECK(refused(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})", 6)
            .message() == "memory: tensor \"b\": its bytes overlap those before");
  CHECK(refused(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", 2)
            .code == ErrorCode::malformed);
  CHECK(refused(R"({"__metadata__":{"a":5}})", 0).message() == "memory: __metadata__: a: wanted a string, found 5");
  CHECK(refused("{\"a\":" + std::string(100000, '[') + "}", 0).code == ErrorCode::limit);
}

TEST_CASE("a safetensors header's length is held against the file and the limit") {
  for (const std::uint64_t size : {UINT64_MAX, std::uint64_t{1} << 63, std::uint64_t{100'000'001}, std::uint64_t{100}}) {
    std::vector<std::byte> bytes(16, std::byte{'{'});
    std::memcpy(bytes.data(), &size, 8);
    CHECK_FALSE(Safetensors::from_bytes(bytes).has_value());
  }
  CHECK(Safetensors::from_bytes({}).error().code == ErrorCode::truncated);
}

TEST_CASE("a safetensors file cut at any byte is an error, and one with any bit turned is read or refused") {
  const auto bytes = file_of(
      R"({"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"b":{"dtype":"U8","shape":[4],"data_offsets":[16,20]}})", 20);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    CHECK_FALSE(Safetensors::from_bytes(cut).has_value());
  }
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    auto turned = bytes;
    turned[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    const auto file = Safetensors::from_bytes(turned);
    if (!file) continue;
    for (const SafetensorsEntry& entry : file->entries()) static_cast<void>(file->values<double>(entry.name));
  }
}

TEST_CASE("a folder with an index opens its shards, and nothing outside the folder") {
  const test::TempFolder folder;
  const std::vector<float> values(4, 1.0f);
  const SafetensorsTensor a{"a", SafetensorsType::F32, {4}, bytes_of(values)},
      b{"b", SafetensorsType::F32, {2}, bytes_of(values).first(8)};
  REQUIRE(write_safetensors(folder.path("m-00001-of-00002.safetensors"), {&a, 1}).has_value());
  REQUIRE(write_safetensors(folder.path("m-00002-of-00002.safetensors"), {&b, 1}).has_value());
  const std::string index = folder.path("model.safetensors.index.json");
  const auto open_with = [&](const std::string& map) {
    save(index, "{\"metadata\": {\"total_size\": 24}, \"weight_map\": " + map + "}");
    return Safetensors::open(folder.root().string());
  };
  const auto file = open_with(R"({"a": "m-00001-of-00002.safetensors", "b": "m-00002-of-00002.safetensors"})");
  REQUIRE_MESSAGE(file.has_value(), (file ? "" : file.error().message()));
  CHECK(file->tensors().tensors().size() == 2);
  CHECK(file->find("b")->file == 1);
  CHECK(*file->values<float>("b") == std::vector<float>{1, 1});
  CHECK(Safetensors::open(index).has_value());

  CHECK(open_with(R"({"a": "m-00002-of-00002.safetensors", "b": "m-00002-of-00002.safetensors"})").error().code ==
        ErrorCode::mismatch);
  CHECK(open_with(R"({"a": "m-00001-of-00002.safetensors", "c": "m-00002-of-00002.safetensors"})").error().code ==
        ErrorCode::mismatch);
  CHECK(open_with(R"({"a": "m-00003-of-00002.safetensors"})").error().code == ErrorCode::io);
  CHECK(open_with("[]").error().code == ErrorCode::malformed);
  CHECK(open_with("{\"a\": 5}").error().code == ErrorCode::mismatch);
  for (const char* name : {"../m-00001-of-00002.safetensors", "/etc/x.safetensors", "sub/x.safetensors", "..\\\\x.safetensors",
                           ".safetensors", "..safetensors", "", "model.bin", "a\\u0000.safetensors"}) {
    const auto refused_name = open_with(std::string("{\"a\": \"") + name + "\"}");
    REQUIRE_FALSE(refused_name.has_value());
    CHECK(refused_name.error().code == ErrorCode::malformed);
  }
  // The same name in two shards.
  REQUIRE(write_safetensors(folder.path("m-00002-of-00002.safetensors"), {&a, 1}).has_value());
  CHECK(open_with(R"({"a": "m-00001-of-00002.safetensors", "b": "m-00002-of-00002.safetensors"})").error().what ==
        "it is there twice");
  CHECK(Safetensors::open(folder.path("nothing here")).error().code == ErrorCode::io);
}

TEST_CASE("the safetensors writer refuses what no reader would take") {
  const test::TempFolder folder;
  const std::vector<float> values(4, 1.0f);
  const std::string path = folder.path("t.safetensors");
  const auto write = [&](std::vector<SafetensorsTensor> tensors) { return write_safetensors(path, tensors); };
  CHECK(write({{"a", SafetensorsType::F32, {5}, bytes_of(values)}}).error().code == ErrorCode::mismatch);
  CHECK(write({{"a", SafetensorsType::F32, {UINT64_MAX, 4}, bytes_of(values)}}).error().code == ErrorCode::mismatch);
  CHECK(write({{"a", SafetensorsType::F32, {4}, bytes_of(values)}, {"a", SafetensorsType::F32, {4}, bytes_of(values)}})
            .error()
            .code == ErrorCode::invalid_argument);
  CHECK(write({{"\xff", SafetensorsType::F32, {4}, bytes_of(values)}}).error().code == ErrorCode::invalid_argument);
  CHECK(write({{"__metadata__", SafetensorsType::F32, {4}, bytes_of(values)}}).error().code == ErrorCode::invalid_argument);
  CHECK(std::filesystem::is_empty(folder.root()));
}

TEST_CASE("every golden file of safetensors opens whole") {
  const auto root = test::data("golden");
  if (!root) NIHAO_SKIP("golden");
  int count = 0;
  for (const auto& found : std::filesystem::recursive_directory_iterator(*root)) {
    if (found.path().extension() != ".safetensors") continue;
    const auto file = Safetensors::open(found.path().string());
    REQUIRE_MESSAGE(file.has_value(), (file ? "" : file.error().message()));
    CHECK(!file->entries().empty());
    ++count;
  }
  CHECK(count > 50);
}
