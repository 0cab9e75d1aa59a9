// What everything that runs in a template shares: limits, errors, and how a function gets its arguments.
#pragma once

#include "../../base/error.hpp"
#include "options.hpp"
#include "value.hpp"

#include <array>
#include <memory>
#include <optional>

namespace nihao::jinja {

/// The arguments of one call.
struct Arguments {
  std::vector<Value> positional = {};
  std::vector<std::pair<std::string, Value>> named = {};
};

class Runtime;

/// A function of the engine: a global, or a method, whose `self` is what it was taken from.
struct Callable {
  std::string_view name;
  Expected<Value> (*call)(Runtime&, const Value& self, const Arguments&);
};

/// A thing with members that change, or that calls back into the template: namespace, loop, macro, cycler, joiner. The
/// interpreter owns them all until the render ends, so that they may refer to each other.
class Object {
 public:
  virtual ~Object() = default;
  [[nodiscard]] virtual std::string_view type_name() const = 0;
  /// A member, or nothing.
  [[nodiscard]] virtual std::optional<Value> get(Runtime&, std::string_view) { return std::nullopt; }
  /// Assigns a member; false if this kind has none to assign.
  [[nodiscard]] virtual bool set(std::string_view, const Value&) { return false; }
  [[nodiscard]] virtual bool can_call() const { return false; }
  [[nodiscard]] virtual Expected<Value> call(Runtime&, const Arguments&);
  [[nodiscard]] virtual Expected<void> print(Runtime&, std::string& out) {
    out += concat("<", type_name(), ">");
    return {};
  }
};

// Errors by Python's names for them. `where` is filled in by the interpreter.
[[nodiscard]] inline Error type_error(std::string_view what) { return Error{ErrorCode::mismatch, what}; }
[[nodiscard]] inline Error value_error(std::string_view what) { return Error{ErrorCode::mismatch, what}; }
[[nodiscard]] inline Error undefined_error(const Value& undefined) {
  return Error{ErrorCode::mismatch, undefined.text().empty() ? "an undefined value is used" : std::string(undefined.text())};
}

/// One render's accounts.
class Runtime {
 public:
  Runtime(const Limits& limits, const std::optional<DateTime>& now) : limits_(limits), now_(now), steps_(limits.steps) {
    budget_.limit = limits.memory_bytes;
  }
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  virtual ~Runtime() = default;

  [[nodiscard]] virtual Expected<Value> call(const Value& callee, const Arguments& arguments) = 0;
  /// Keeps an object until the render ends.
  [[nodiscard]] Value own(std::unique_ptr<Object> object) {
    objects_.push_back(std::move(object));
    budget_.alive += 256;
    return Value::object(objects_.back().get());
  }
  [[nodiscard]] const std::optional<DateTime>& now() const noexcept { return now_; }
  [[nodiscard]] const Limits& limits() const noexcept { return limits_; }

  /// Spends steps. False once any limit is passed: loops inside filters then stop, and the interpreter reports failure().
  bool tick(std::uint64_t work = 1) noexcept {
    if (steps_ < work) steps_ = 0, over_ = over_ ? over_ : "steps";
    else steps_ -= work;
    if (budget_.alive > budget_.limit) over_ = over_ ? over_ : "bytes of memory";
    return over_ == nullptr;
  }
  /// Whether `bytes` more may be made; asked before, where an operation multiplies sizes.
  [[nodiscard]] bool room(std::size_t bytes) noexcept {
    if (bytes > budget_.limit || budget_.alive > budget_.limit - bytes) over_ = over_ ? over_ : "bytes of memory";
    return over_ == nullptr && tick(bytes / 64);
  }
  [[nodiscard]] bool alive() const noexcept { return over_ == nullptr; }
  /// Which limit was passed.
  [[nodiscard]] Error failure() const {
    const std::string_view what = over_ ? over_ : "";
    const std::uint64_t limit = what == "steps"               ? limits_.steps
                                : what == "levels of nesting" ? limits_.depth
                                : what == "bytes of output"   ? limits_.output_bytes
                                                              : limits_.memory_bytes;
    return Error{ErrorCode::limit, concat("the template needs more than ", limit, " ", what)};
  }
  void fail(const char* over) noexcept { over_ = over_ ? over_ : over; }

  /// Holds one level of nesting while it lives; false if that was one too many.
  class Level {
   public:
    explicit Level(Runtime& rt) noexcept : rt_(rt) {
      if (++rt_.depth_ > rt_.limits_.depth) rt_.fail("levels of nesting");
    }
    ~Level() { --rt_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Runtime& rt_;
  };

  // Values made by the template, charged to its budget.
  [[nodiscard]] Value text(std::string s) { return charged(Value(std::move(s))); }
  [[nodiscard]] Value list(std::vector<Value> items, Flavor flavor = Flavor::list) {
    return charged(Value::list(std::move(items), flavor));
  }
  [[nodiscard]] Value dict(std::vector<Value::Pair> entries) { return charged(Value::dict(std::move(entries))); }
  [[nodiscard]] Value missing(std::string message) { return charged(Value::missing(std::move(message))); }
  [[nodiscard]] Value bound(const Callable* callable, const Value& self) { return charged(Value::function(callable, self)); }
  [[nodiscard]] Budget& budget() noexcept { return budget_; }

 private:
  Value charged(Value v) noexcept {
    v.charge(budget_);
    if (v.depth() > limits_.depth) fail("levels of nesting");
    tick();
    return v;
  }

  Limits limits_;
  std::optional<DateTime> now_;
  Budget budget_;  // outlives the objects, whose values are charged to it
  std::vector<std::unique_ptr<Object>> objects_;
  std::uint64_t steps_;
  std::uint32_t depth_ = 0;
  const char* over_ = nullptr;
};

inline Expected<Value> Object::call(Runtime&, const Arguments&) {
  return type_error(concat("'", type_name(), "' object is not callable"));
}

/// Python's name of a value's type.
[[nodiscard]] inline std::string_view type_name(const Value& v) {
  switch (v.kind()) {
    case Kind::undefined: return "Undefined";
    case Kind::none: return "NoneType";
    case Kind::boolean: return "bool";
    case Kind::integer: return "int";
    case Kind::real: return "float";
    case Kind::string: return "str";
    case Kind::dict: return "dict";
    case Kind::function: return "builtin_function_or_method";
    case Kind::object: return v.object()->type_name();
    case Kind::list: break;
  }
  switch (v.flavor()) {
    case Flavor::list: return "list";
    case Flavor::tuple: return "tuple";
    case Flavor::range: return "range";
    case Flavor::dict_keys: return "dict_keys";
    case Flavor::dict_values: return "dict_values";
    case Flavor::dict_items: return "dict_items";
    case Flavor::iterator: return "generator";
  }
  return "object";
}

/// Arguments by parameter name; null for one that was not given. Errors: mismatch, as Python's TypeError.
template <std::size_t N>
[[nodiscard]] Expected<std::array<const Value*, N>> bind(std::string_view function, const Arguments& given,
                                                         const std::array<std::string_view, N>& names, std::size_t required = 0) {
  std::array<const Value*, N> out{};
  if (given.positional.size() > N) {
    return type_error(concat(function, "() takes at most ", N, " arguments (", given.positional.size(), " given)"));
  }
  for (std::size_t i = 0; i < given.positional.size(); ++i) out[i] = &given.positional[i];
  for (const auto& [name, value] : given.named) {
    std::size_t i = 0;
    while (i < N && names[i] != name) ++i;
    if (i == N) return type_error(concat(function, "() got an unexpected keyword argument '", printable(name), "'"));
    if (out[i]) return type_error(concat(function, "() got multiple values for argument '", printable(name), "'"));
    out[i] = &value;
  }
  for (std::size_t i = 0; i < required; ++i) {
    if (!out[i]) return type_error(concat(function, "() missing required argument '", names[i], "'"));
  }
  return out;
}
/// For functions without parameters.
[[nodiscard]] inline Expected<void> bind_none(std::string_view function, const Arguments& given) {
  if (given.positional.empty() && given.named.empty()) return {};
  return type_error(concat(function, "() takes no arguments"));
}

/// An argument as an integer, or `otherwise` if it was not given (or none, where that means the same).
[[nodiscard]] inline Expected<std::int64_t> integer_argument(const Value* v, std::int64_t otherwise) {
  if (!v) return otherwise;
  if (v->is_undefined()) return undefined_error(*v);
  if (!v->is_integral()) return type_error(concat("'", type_name(*v), "' object cannot be interpreted as an integer"));
  const Int limit = Int{1} << 62;
  return static_cast<std::int64_t>(std::clamp(v->integer(), -limit, limit));
}
/// An argument that has to be a string.
[[nodiscard]] inline Expected<std::string_view> text_argument(const Value* v, std::string_view otherwise) {
  if (!v) return otherwise;
  if (v->is_undefined()) return undefined_error(*v);
  if (!v->is_string()) return type_error(concat("expected a string, got '", type_name(*v), "'"));
  return v->text();
}

}  // namespace nihao::jinja
