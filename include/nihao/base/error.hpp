// Errors are values: whatever can fail returns Expected<T>, which holds a T or an Error that names what and where.
#pragma once

#include "config.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#if NIHAO_HAS_EXCEPTIONS
#include <stdexcept>
#endif
#if defined(__has_include) && __cplusplus > 202002L
#if __has_include(<expected>)
#include <expected>
#endif
#endif

namespace nihao {

/// What kind of thing went wrong. A caller switches on this; a person reads Error::message().
enum class ErrorCode : std::uint8_t {
  io,                ///< the operating system refused: no such file, no permission, a read failed
  truncated,         ///< the data ends before what it announces
  malformed,         ///< the data breaks its own format
  unsupported,       ///< well-formed, but this library (or this build) does not do it
  missing,           ///< a tensor, a metadata key or an option that is needed is not there
  mismatch,          ///< two things that must agree do not: a shape, a size, a type
  invalid_argument,  ///< the caller asked for something that has no meaning
  out_of_memory,     ///< an allocation failed or would pass a stated limit
  context_full,      ///< the cache has no room for the tokens
  numeric,           ///< NaN, or nothing finite to choose from
  limit,             ///< a step, depth or output limit was reached
  cancelled,         ///< the host's stop token asked to stop
  template_error,    ///< a chat template raised an exception of its own
};

/// The name of a code, as it is printed: "truncated".
constexpr std::string_view to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::io: return "io";
    case ErrorCode::truncated: return "truncated";
    case ErrorCode::malformed: return "malformed";
    case ErrorCode::unsupported: return "unsupported";
    case ErrorCode::missing: return "missing";
    case ErrorCode::mismatch: return "mismatch";
    case ErrorCode::invalid_argument: return "invalid argument";
    case ErrorCode::out_of_memory: return "out of memory";
    case ErrorCode::context_full: return "context full";
    case ErrorCode::numeric: return "numeric";
    case ErrorCode::limit: return "limit";
    case ErrorCode::cancelled: return "cancelled";
    case ErrorCode::template_error: return "template error";
  }
  return "unknown";
}

/// One error: its kind, what was wrong, and where (file and offset, tensor, JSON path, line of a template).
struct Error {
  ErrorCode code;
  std::string what;
  std::string where;

  NIHAO_COLD Error(ErrorCode kind, std::string_view what_text, std::string_view where_text = {})
      : code(kind), what(what_text), where(where_text) {}
  NIHAO_COLD Error(const Error& other) : code(other.code), what(other.what), where(other.where) {}
  NIHAO_COLD Error(Error&& other) noexcept : code(other.code), what(std::move(other.what)), where(std::move(other.where)) {}
  NIHAO_COLD Error& operator=(Error other) noexcept {
    code = other.code, what.swap(other.what), where.swap(other.where);
    return *this;
  }
  NIHAO_COLD ~Error() {}

  /// One line for a person: "where: what".
  [[nodiscard]] NIHAO_COLD std::string message() const { return where.empty() ? what : where + ": " + what; }

  /// The same error seen from further out: `error.in("model.gguf")` prefixes the place.
  [[nodiscard]] NIHAO_COLD Error in(std::string_view place) && {
    where = where.empty() ? std::string(place) : std::string(place) + ": " + where;
    return std::move(*this);
  }
};

namespace detail {
NIHAO_COLD inline Error* keep(Error&& error) { return new Error(std::move(error)); }
NIHAO_COLD inline Error* keep(const Error& error) { return new Error(error); }
NIHAO_COLD inline void drop(Error* error) { delete error; }
}  // namespace detail

#if NIHAO_HAS_EXCEPTIONS
/// Thrown by Expected<T>::value() alone, and only where the host compiles with exceptions.
class BadExpectedAccess : public std::runtime_error {
 public:
  explicit BadExpectedAccess(Error error) : std::runtime_error(error.message()), error_(std::move(error)) {}
  [[nodiscard]] const Error& error() const noexcept { return error_; }

 private:
  Error error_;
};
#endif

/// A T, or the Error that says why there is none. The interface of C++23's std::expected<T, Error>, which it converts to
/// where that exists. Reading `*e` without a value is a bug of the caller (checked in debug builds); `e.value()` throws
/// BadExpectedAccess, and does not exist in a build without exceptions. An error is kept on the heap: a value costs a flag.
template <class T>
class [[nodiscard]] Expected {
  using Stored = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

 public:
  using value_type = T;
  using error_type = Error;

  Expected()
    requires std::is_void_v<T>
      : value_() {}
  template <class U = Stored>
    requires(!std::is_void_v<T> && std::is_constructible_v<Stored, U &&> && !std::is_same_v<std::remove_cvref_t<U>, Expected> &&
             !std::is_same_v<std::remove_cvref_t<U>, Error>)
  Expected(U&& value) : value_(std::forward<U>(value)) {}
  Expected(Error&& error) : has_value_(false), error_(detail::keep(std::move(error))) {}
  Expected(const Error& error) : has_value_(false), error_(detail::keep(error)) {}

  Expected(Expected&& other) noexcept(std::is_nothrow_move_constructible_v<Stored>) : has_value_(other.has_value_) {
    if (has_value_) std::construct_at(&value_, std::move(other.value_));
    else error_ = std::exchange(other.error_, nullptr);
  }
  Expected(const Expected& other)
    requires std::is_copy_constructible_v<Stored>
      : has_value_(other.has_value_) {
    if (has_value_) std::construct_at(&value_, other.value_);
    else error_ = other.error_ == nullptr ? nullptr : detail::keep(*other.error_);
  }
  Expected& operator=(Expected other) noexcept(std::is_nothrow_move_constructible_v<Stored>) {
    std::destroy_at(this);
    return *std::construct_at(this, std::move(other));
  }
  ~Expected() {
    if (has_value_) std::destroy_at(&value_);
    else detail::drop(error_);
  }

  [[nodiscard]] bool has_value() const noexcept { return has_value_; }
  explicit operator bool() const noexcept { return has_value(); }

  [[nodiscard]] Stored& operator*() & noexcept { return get(); }
  [[nodiscard]] const Stored& operator*() const& noexcept { return get(); }
  [[nodiscard]] Stored&& operator*() && noexcept { return std::move(get()); }
  [[nodiscard]] Stored* operator->() noexcept { return &get(); }
  [[nodiscard]] const Stored* operator->() const noexcept { return &get(); }

  [[nodiscard]] Error& error() & noexcept { return failure(); }
  [[nodiscard]] const Error& error() const& noexcept { return failure(); }
  [[nodiscard]] Error&& error() && noexcept { return std::move(failure()); }

#if NIHAO_HAS_EXCEPTIONS
  Stored& value() & { return require(), get(); }
  const Stored& value() const& { return require(), get(); }
  Stored&& value() && { return require(), std::move(get()); }
#endif

  template <class U>
  [[nodiscard]] Stored value_or(U&& otherwise) const& {
    return has_value() ? get() : static_cast<Stored>(std::forward<U>(otherwise));
  }
  template <class U>
  [[nodiscard]] Stored value_or(U&& otherwise) && {
    return has_value() ? std::move(get()) : static_cast<Stored>(std::forward<U>(otherwise));
  }

  /// `f(value) -> Expected<U>`, run only if there is a value.
  template <class F>
  auto and_then(F&& f) && {
    using Result = decltype(call(std::forward<F>(f), std::declval<Stored&&>()));
    if (!has_value()) return Result(std::move(failure()));
    return call(std::forward<F>(f), std::move(get()));
  }
  /// `f(value) -> U`, run only if there is a value.
  template <class F>
  auto transform(F&& f) && {
    using Result = Expected<std::remove_cvref_t<decltype(call(std::forward<F>(f), std::declval<Stored&&>()))>>;
    if (!has_value()) return Result(std::move(failure()));
    return Result(call(std::forward<F>(f), std::move(get())));
  }
  /// `f(error) -> Error`, run only if there is an error.
  template <class F>
  Expected transform_error(F&& f) && {
    if (has_value()) return std::move(*this);
    return std::forward<F>(f)(std::move(failure()));
  }

#if defined(__cpp_lib_expected)
  operator std::expected<T, Error>() const& {
    if (!has_value()) return std::unexpected(failure());
    if constexpr (std::is_void_v<T>) return {};
    else return get();
  }
#endif

 private:
  template <class F, class V>
  static auto call(F&& f, [[maybe_unused]] V&& v) {
    if constexpr (std::is_void_v<T>) return std::forward<F>(f)();
    else return std::forward<F>(f)(std::forward<V>(v));
  }
  Stored& get() noexcept {
    NIHAO_ASSERT(has_value());
    return value_;
  }
  const Stored& get() const noexcept {
    NIHAO_ASSERT(has_value());
    return value_;
  }
  Error& failure() noexcept {
    NIHAO_ASSERT(!has_value());
    return *error_;
  }
  const Error& failure() const noexcept {
    NIHAO_ASSERT(!has_value());
    return *error_;
  }
#if NIHAO_HAS_EXCEPTIONS
  void require() const {
    if (!has_value()) throw BadExpectedAccess(failure());
  }
#endif

  union {
    Stored value_;
  };
  bool has_value_ = true;
  Error* error_ = nullptr;  // of an Expected without a value, until it is moved away
};

}  // namespace nihao

/// `NIHAO_TRY(auto x, f());` gives x the value of f(), or returns f()'s error from the enclosing function.
#define NIHAO_TRY(declaration, ...) NIHAO_TRY_(declaration, NIHAO_CONCAT_(nihao_try_, __LINE__), __VA_ARGS__)
#define NIHAO_TRY_(declaration, name, ...)   \
  auto name = (__VA_ARGS__);                 \
  if (!name) return std::move(name).error(); \
  declaration = *std::move(name)
/// The same for a call whose value is void or not wanted.
#define NIHAO_CHECK(...)                                                                             \
  do {                                                                                               \
    if (auto nihao_checked = (__VA_ARGS__); !nihao_checked) return std::move(nihao_checked).error(); \
  } while (false)
#define NIHAO_CONCAT_(a, b) NIHAO_CONCAT2_(a, b)
#define NIHAO_CONCAT2_(a, b) a##b
