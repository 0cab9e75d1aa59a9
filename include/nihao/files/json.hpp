// JSON from files and requests: parsed without exceptions and under a depth cap, and read by path with errors that name it.
#pragma once

#include "../base/error.hpp"
#include "../base/str.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace nihao {

/// A JSON value; objects keep the order of the text.
using Json = nlohmann::ordered_json;

/// The nesting that parse_json reads by default: more than any configuration, schema or message needs.
inline constexpr std::size_t json_max_depth = 128;

namespace detail {

/// Reads the text one byte at a time and tells where it is, which the parser tells nobody.
class JsonCursor {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  JsonCursor(const char* at, const char** seen) noexcept : at_(at), seen_(seen) {}
  const char& operator*() const noexcept { return *at_; }
  JsonCursor& operator++() noexcept { return *seen_ = ++at_, *this; }
  JsonCursor operator++(int) noexcept {
    const JsonCursor before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const JsonCursor& a, const JsonCursor& b) noexcept { return a.at_ == b.at_; }
  friend bool operator!=(const JsonCursor& a, const JsonCursor& b) noexcept { return a.at_ != b.at_; }

 private:
  const char* at_;
  const char** seen_;
};

/// Builds a Json from the parser's events. A value nested too deep, or a key that is there twice, stops the parse at once.
class JsonBuilder {
 public:
  using number_integer_t = Json::number_integer_t;
  using number_unsigned_t = Json::number_unsigned_t;
  using number_float_t = Json::number_float_t;
  using string_t = Json::string_t;
  using binary_t = Json::binary_t;

  JsonBuilder(std::string_view text, std::size_t max_depth) : begin_(text.data()), seen_(text.data()), max_depth_(max_depth) {}

  /// Where a JsonCursor keeps the place behind the last byte that was read.
  const char** seen() noexcept { return &seen_; }

  bool null() { return add(Json()) != nullptr; }
  bool boolean(bool value) { return add(Json(value)) != nullptr; }
  bool number_integer(number_integer_t value) { return add(Json(value)) != nullptr; }
  bool number_unsigned(number_unsigned_t value) { return add(Json(value)) != nullptr; }
  bool number_float(number_float_t value, const string_t&) { return add(Json(value)) != nullptr; }
  bool string(string_t& value) { return add(Json(std::move(value))) != nullptr; }
  bool binary(binary_t&) { return fail(ErrorCode::malformed, "binary data in JSON text"); }
  bool start_object(std::size_t) { return open(Json(Json::value_t::object)); }
  bool start_array(std::size_t) { return open(Json(Json::value_t::array)); }
  bool key(string_t& name) { return key_ = std::move(name), true; }
  bool end_array() { return open_.pop_back(), true; }

  bool end_object() {
    // Objects are searched in order by their readers, so a list of keys is sorted once here instead of at every insertion.
    const auto& members = *open_.back()->get_ptr<const Json::object_t*>();
    open_.pop_back();
    std::vector<std::string_view> keys;
    for (const auto& member : members) keys.push_back(member.first);
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    return twice == keys.end() || fail(ErrorCode::malformed, concat("the key \"", printable(*twice), "\" is there twice"));
  }

  template <class Exception>
  bool parse_error(std::size_t position, const std::string&, const Exception& exception) {
    // The parser's text is "[json.exception…] parse error at line 1, column 5: syntax error while …".
    std::string_view what = exception.what();
    if (const auto end = what.find("] "); end != what.npos) what.remove_prefix(end + 2);
    if (const auto end = what.find(": "); what.substr(0, 11) == "parse error" && end != what.npos) what.remove_prefix(end + 2);
    error_ = Error{ErrorCode::malformed, concat("not JSON: ", printable(what, 200)),
                   concat("byte ", position == 0 ? 0 : position - 1)};
    return false;
  }

  Expected<Json> result(bool complete) && {
    if (complete) return std::move(root_);
    return std::move(error_);
  }

 private:
  bool open(Json container) {
    if (open_.size() >= max_depth_) return fail(ErrorCode::limit, concat("nested deeper than ", max_depth_));
    open_.push_back(add(std::move(container)));
    return true;
  }

  Json* add(Json value) {
    if (open_.empty()) return root_ = std::move(value), &root_;
    if (auto* items = open_.back()->get_ptr<Json::array_t*>()) return items->push_back(std::move(value)), &items->back();
    // The object's own insertion would search all keys before each: quadratic in a vocabulary.
    auto& members = *open_.back()->get_ptr<Json::object_t*>();
    members.Json::object_t::Container::emplace_back(std::move(key_), std::move(value));
    return &members.back().second;
  }

  bool fail(ErrorCode code, std::string_view what) {
    error_ = Error{code, what, concat("byte ", seen_ == begin_ ? 0 : seen_ - begin_ - 1)};
    return false;
  }

  const char* begin_;
  const char* seen_;
  std::size_t max_depth_;
  Json root_;
  std::vector<Json*> open_;  // the containers being filled; a parent does not grow while its child is open
  std::string key_;
  Error error_{ErrorCode::malformed, "not JSON"};
};

/// What a JSON value is, for an error: "a string", "null".
inline std::string json_kind(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  if (value.is_string()) return concat("\"", printable(*value.get_ptr<const std::string*>(), 40), "\"");
  return value.dump(-1, ' ', true, Json::error_handler_t::replace);
}

template <class T>
struct JsonRead;  // how a T is read from a Json; `wanted` names it in errors

template <>
struct JsonRead<bool> {
  static constexpr std::string_view wanted = "true or false";
  static bool read(const Json& from, bool& to) {
    const auto* value = from.get_ptr<const Json::boolean_t*>();
    return value != nullptr && (to = *value, true);
  }
};

template <class T>
  requires std::integral<T>
struct JsonRead<T> {
  static constexpr std::string_view wanted = std::is_signed_v<T> ? "an integer that fits" : "a non-negative integer that fits";
  static bool read(const Json& from, T& to) {
    if (from.is_number_unsigned()) return put(*from.get_ptr<const Json::number_unsigned_t*>(), to);
    if (from.is_number_integer()) return put(*from.get_ptr<const Json::number_integer_t*>(), to);
    // JSON has one kind of number: 64.0 is 64. 2^53 is where doubles begin to skip integers.
    const auto* value = from.get_ptr<const Json::number_float_t*>();
    if (value == nullptr || std::trunc(*value) != *value || std::abs(*value) > 0x1p53) return false;
    return put(static_cast<std::int64_t>(*value), to);
  }
  template <class S>
  static bool put(S value, T& to) {
    return std::in_range<T>(value) && (to = static_cast<T>(value), true);
  }
};

template <class T>
  requires std::floating_point<T>
struct JsonRead<T> {
  static constexpr std::string_view wanted = "a number that fits";
  static bool read(const Json& from, T& to) {
    double value = 0;
    if (const auto* u = from.get_ptr<const Json::number_unsigned_t*>()) value = static_cast<double>(*u);
    else if (const auto* i = from.get_ptr<const Json::number_integer_t*>()) value = static_cast<double>(*i);
    else if (const auto* f = from.get_ptr<const Json::number_float_t*>()) value = *f;
    else return false;
    return std::abs(value) <= std::numeric_limits<T>::max() && (to = static_cast<T>(value), true);
  }
};

template <class T>
  requires std::same_as<T, std::string> || std::same_as<T, std::string_view>
struct JsonRead<T> {
  static constexpr std::string_view wanted = "a string";
  static bool read(const Json& from, T& to) {
    const auto* value = from.get_ptr<const std::string*>();
    return value != nullptr && (to = *value, true);
  }
};

}  // namespace detail

/// The value that `text` holds, all of it. Errors: malformed (not JSON, not UTF-8, a key twice in one object) and limit (nested
/// deeper than `max_depth`; the parse stops there, nothing deeper is built), both with the byte's offset.
[[nodiscard]] inline Expected<Json> parse_json(std::string_view text, std::size_t max_depth = json_max_depth) {
  if (text.empty()) text = "";  // never a null pointer
  // The parser takes a zero byte for the end of the text; JSON has none, and what follows would go unread.
  if (const auto zero = text.find('\0'); zero != text.npos) {
    return Error{ErrorCode::malformed, "not JSON: a zero byte", concat("byte ", zero)};
  }
  detail::JsonBuilder builder(text, max_depth);
  const char* const first = text.data();
  const detail::JsonCursor begin(first, builder.seen()), end(first + text.size(), builder.seen());
  const bool complete = Json::sax_parse(begin, end, &builder);
  return std::move(builder).result(complete);
}

/// The value at a path of keys and array indices joined by dots ("text_config.rope_scaling.factor", "architectures.0"), or
/// null where a step is not there. An empty path is the value itself.
[[nodiscard]] inline const Json* json_find(const Json& json, std::string_view path) noexcept {
  const Json* at = &json;
  while (!path.empty()) {
    const std::string_view step = path.substr(0, path.find('.'));
    path.remove_prefix(std::min(path.size(), step.size() + 1));
    const Json* next = nullptr;
    if (const auto* members = at->get_ptr<const Json::object_t*>()) {
      const auto found = std::find_if(members->begin(), members->end(), [&](const auto& member) { return member.first == step; });
      if (found != members->end()) next = &found->second;
    } else if (const auto* items = at->get_ptr<const Json::array_t*>()) {
      std::size_t index = 0;
      const auto [end, status] = std::from_chars(step.data(), step.data() + step.size(), index);
      if (status == std::errc{} && end == step.data() + step.size() && index < items->size()) next = &(*items)[index];
    }
    if (next == nullptr) return nullptr;
    at = next;
  }
  return at;
}

/// A value as bool, an integer or float type (numbers convert where they fit), std::string, or std::string_view (a view of
/// the Json). `path` is for the error. Errors: mismatch.
template <class T>
[[nodiscard]] Expected<T> json_as(const Json& value, std::string_view path) {
  T out{};
  if (detail::JsonRead<T>::read(value, out)) return out;
  return Error{ErrorCode::mismatch, concat("wanted ", detail::JsonRead<T>::wanted, ", found ", detail::json_kind(value)),
               std::string(path)};
}

/// The value at `path` as T, as by json_as. Errors: missing, mismatch; both name the path.
template <class T>
[[nodiscard]] Expected<T> json_get(const Json& json, std::string_view path) {
  const Json* value = json_find(json, path);
  if (value == nullptr) return Error{ErrorCode::missing, "not there", std::string(path)};
  return json_as<T>(*value, path);
}

/// The same, or `fallback` where the path is not there or leads to a null (which is how Hugging Face files say "none").
template <class T>
[[nodiscard]] Expected<T> json_get_or(const Json& json, std::string_view path, T fallback) {
  const Json* value = json_find(json, path);
  if (value == nullptr || value->is_null()) return fallback;
  return json_as<T>(*value, path);
}

/// The items of the array at `path`, each as by json_as. Errors: missing, mismatch (naming the item: "shape.2").
template <class T>
[[nodiscard]] Expected<std::vector<T>> json_array(const Json& json, std::string_view path) {
  const Json* value = json_find(json, path);
  if (value == nullptr) return Error{ErrorCode::missing, "not there", std::string(path)};
  const auto* items = value->get_ptr<const Json::array_t*>();
  if (items == nullptr)
    return Error{ErrorCode::mismatch, concat("wanted an array, found ", detail::json_kind(*value)), std::string(path)};
  std::vector<T> out;
  out.reserve(items->size());
  for (std::size_t i = 0; i < items->size(); ++i) {
    T item{};
    if (!detail::JsonRead<T>::read((*items)[i], item)) return json_as<T>((*items)[i], concat(path, ".", i)).error();
    out.push_back(std::move(item));
  }
  return out;
}

}  // namespace nihao
