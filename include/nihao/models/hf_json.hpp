// The JSON files of Hugging Face folders: read with a limit, and asked whether something is stated.
#pragma once

#include "../base/platform.hpp"
#include "../files/json.hpp"

#include <string>
#include <string_view>

namespace nihao {

namespace detail {

[[nodiscard]] inline Expected<Json> read_config_json(const std::string& path) {
  constexpr std::size_t most = std::size_t{16} << 20;
  NIHAO_TRY(const MappedFile file, MappedFile::open(path));
  if (file.bytes().size() > most)
    return Error{ErrorCode::limit, concat("a configuration of ", file.bytes().size(), " bytes, the limit is ", most), path};
  auto json = parse_json({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, 32);
  if (!json) return std::move(json).error().in(path);
  return json;
}

/// Whether a value says that something is not there.
[[nodiscard]] inline bool hf_is_off(const Json& value) {
  double number = 1;
  bool flag = true;
  if (JsonRead<double>::read(value, number)) return number == 0;
  if (JsonRead<bool>::read(value, flag)) return !flag;
  return value.is_null() || ((value.is_array() || value.is_object()) && value.empty());
}
[[nodiscard]] inline bool hf_stated(const Json& json, std::string_view path) {
  const Json* value = json_find(json, path);
  return value != nullptr && !value->is_null();
}

}  // namespace detail
}  // namespace nihao
