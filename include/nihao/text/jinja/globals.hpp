// What every template can name without being given it: range, namespace, raise_exception and the like.
#pragma once

#include "filters.hpp"
#include "strftime.hpp"

#include <memory>

namespace nihao::jinja {

namespace detail {

/// namespace(): the one thing whose members a template can assign, from inside a loop too.
class Namespace final : public Object {
 public:
  [[nodiscard]] std::string_view type_name() const override { return "Namespace"; }
  [[nodiscard]] std::optional<Value> get(Runtime& rt, std::string_view name) override {
    for (const auto& [key, value] : members_) {
      if (rt.tick() && key == name) return value;
    }
    return std::nullopt;
  }
  [[nodiscard]] bool set(std::string_view name, const Value& value) override {
    for (auto& [key, old] : members_) {
      if (key == name) return old = value, true;
    }
    members_.emplace_back(name, value);
    return true;
  }
  [[nodiscard]] Expected<void> print(Runtime& rt, std::string& out) override {
    out += "<Namespace {";
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (i > 0) out += ", ";
      append_quoted(out, members_[i].first);
      out += ": ";
      NIHAO_CHECK(append_repr(rt, out, members_[i].second));
    }
    out += "}>";
    return {};
  }

 private:
  std::vector<std::pair<std::string, Value>> members_;
};

/// cycler('a', 'b'): next() gives a, b, a, ...
class Cycler final : public Object {
 public:
  explicit Cycler(std::vector<Value> items) : items_(std::move(items)) {}
  [[nodiscard]] std::string_view type_name() const override { return "Cycler"; }
  [[nodiscard]] std::optional<Value> get(Runtime& rt, std::string_view name) override {
    static constexpr Callable next{"next", [](Runtime&, const Value& self, const Arguments&) -> Result {
                                     auto& c = static_cast<Cycler&>(*self.object());
                                     return c.items_[std::exchange(c.at_, (c.at_ + 1) % c.items_.size())];
                                   }};
    static constexpr Callable reset{"reset", [](Runtime&, const Value& self, const Arguments&) -> Result {
                                      static_cast<Cycler&>(*self.object()).at_ = 0;
                                      return Value::none();
                                    }};
    if (name == "current") return items_[at_];
    if (name == "next") return rt.bound(&next, Value::object(this));
    if (name == "reset") return rt.bound(&reset, Value::object(this));
    return std::nullopt;
  }

 private:
  std::vector<Value> items_;
  std::size_t at_ = 0;
};

/// joiner(', '): empty the first time it is called, the separator from then on.
class Joiner final : public Object {
 public:
  explicit Joiner(Value separator) : separator_(std::move(separator)) {}
  [[nodiscard]] std::string_view type_name() const override { return "Joiner"; }
  [[nodiscard]] bool can_call() const override { return true; }
  [[nodiscard]] Expected<Value> call(Runtime&, const Arguments&) override {
    return std::exchange(used_, true) ? separator_ : Value("");
  }

 private:
  Value separator_;
  bool used_ = false;
};

inline constexpr std::int64_t max_range = 100'000;  // as in Jinja's sandbox

inline Result global_range(Runtime& rt, const Value&, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<3>("range", a, {"start", "stop", "step"}, 1));
  NIHAO_TRY(std::int64_t start, integer_argument(p[0], 0));
  NIHAO_TRY(std::int64_t stop, integer_argument(p[1], 0));
  NIHAO_TRY(const std::int64_t step, integer_argument(p[2], 1));
  if (!p[1]) stop = std::exchange(start, 0);
  if (step == 0) return value_error("range() arg 3 must not be zero");
  const Int distance = step > 0 ? Int{stop} - start : Int{start} - stop, stride = step > 0 ? Int{step} : -Int{step};
  const Int count = distance <= 0 ? 0 : (distance + stride - 1) / stride;
  if (count > max_range)
    return Error{ErrorCode::limit, concat("Range too big. The sandbox blocks ranges larger than MAX_RANGE (", max_range, ").")};
  if (!rt.room(static_cast<std::size_t>(count) * sizeof(Value))) return rt.failure();
  std::vector<Value> out;
  out.reserve(static_cast<std::size_t>(count));
  for (Int i = 0; i < count; ++i) out.push_back(Value(Int{start} + i * step));
  return rt.list(std::move(out), Flavor::range);
}

/// The pairs of a dict, or of a sequence of pairs, and of the named arguments.
[[nodiscard]] inline Expected<std::vector<Value::Pair>> pairs_of(Runtime& rt, std::string_view function, const Arguments& a) {
  std::vector<Value::Pair> out;
  if (a.positional.size() > 1) return type_error(concat(function, " expected at most 1 argument, got ", a.positional.size()));
  if (!a.positional.empty()) {
    const Value& from = a.positional[0];
    NIHAO_TRY(const Iteration all, iterate(rt, from.is(Kind::dict) ? dict_rows(rt, from, Flavor::dict_items) : from));
    for (const Value& pair : all.items) {
      if (!pair.is(Kind::list) || pair.items().size() != 2) return value_error("dictionary update sequence needs pairs");
      const Value& key = pair.items()[0];
      if (!hashable(key)) return unhashable(key);
      if (!rt.tick(key.is_string() ? 1 : out.size() + 1)) return rt.failure();
      out.emplace_back(key, pair.items()[1]);
    }
  }
  for (const auto& [name, value] : a.named) out.emplace_back(rt.text(name), value);
  if (!rt.alive()) return rt.failure();
  return out;
}
inline Result global_dict(Runtime& rt, const Value&, const Arguments& a) {
  NIHAO_TRY(auto pairs, pairs_of(rt, "dict", a));
  return rt.dict(std::move(pairs));
}
inline Result global_namespace(Runtime& rt, const Value&, const Arguments& a) {
  NIHAO_TRY(const auto pairs, pairs_of(rt, "namespace", a));
  auto made = std::make_unique<Namespace>();
  for (const auto& [key, value] : pairs) {
    if (!key.is_string()) return type_error("namespace() takes names");
    if (!rt.tick(pairs.size()) || !made->set(key.text(), value)) return rt.failure();
  }
  return rt.own(std::move(made));
}
inline Result global_cycler(Runtime& rt, const Value&, const Arguments& a) {
  if (a.positional.empty()) return type_error("at least one item has to be provided");
  return rt.own(std::make_unique<Cycler>(a.positional));
}
inline Result global_joiner(Runtime& rt, const Value&, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<1>("joiner", a, {"sep"}));
  return rt.own(std::make_unique<Joiner>(p[0] ? *p[0] : Value(", ")));
}
inline Result global_raise(Runtime& rt, const Value&, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<1>("raise_exception", a, {"message"}, 1));
  NIHAO_TRY(std::string message, to_text(rt, *p[0]));
  return Error{ErrorCode::template_error, std::move(message)};
}
inline Result global_strftime(Runtime& rt, const Value&, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<1>("strftime_now", a, {"format"}, 1));
  NIHAO_TRY(const std::string_view format, text_argument(p[0], ""));
  if (!rt.room(format.size() * 32)) return rt.failure();
  return rt.text(strftime(*rt.now(), format));
}

inline constexpr Callable globals[] = {
    {"cycler", global_cycler},         {"dict", global_dict},
    {"joiner", global_joiner},         {"namespace", global_namespace},
    {"raise_exception", global_raise}, {"range", global_range},
    {"strftime_now", global_strftime},
};

}  // namespace detail

/// The global of that name, or null. Without a clock there is no strftime_now, and templates that ask `is defined` do without.
[[nodiscard]] inline const Callable* find_global(const Runtime& rt, std::string_view name) noexcept {
  for (const Callable& global : detail::globals) {
    if (global.name == name && (name != "strftime_now" || rt.now())) return &global;
  }
  return nullptr;
}

}  // namespace nihao::jinja
