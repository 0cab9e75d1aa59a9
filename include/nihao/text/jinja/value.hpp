// The values that templates compute with: Python's, as far as a template can see them. Immutable and shared, so that a
// conversation is passed to a template without copying it.
#pragma once

#include "../../base/config.hpp"
#include "../../base/str.hpp"
#include "../utf8.hpp"

#include <algorithm>
#include <atomic>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nihao::jinja {

/// Python's int. Templates meet nothing that 128 bits do not hold; an operation that would leave them is an error.
__extension__ typedef __int128 Int;

enum class Kind : std::uint8_t { undefined, none, boolean, integer, real, string, list, dict, function, object };

/// Python's several sequences and iterables, which print and behave differently but hold the same: values in a row.
enum class Flavor : std::uint8_t { list, tuple, range, dict_keys, dict_values, dict_items, iterator };

class Value;
class Object;
struct Callable;

/// Bytes alive that a render has made; see Limits.
struct Budget {
  std::size_t alive = 0;
  std::size_t limit = SIZE_MAX;
};

/// What a Value shares. Destruction never recurses: the dead are threaded through `next` (a value may be nested as deeply as a
/// host or a template likes).
struct Node {
  virtual ~Node() = default;
  /// Lets go of the children; those that die with it are put in front of `dead`.
  virtual void release(Node*&) noexcept {}

  std::atomic<std::uint32_t> references{1};
  std::uint32_t depth = 1;  // of nesting
  Node* next = nullptr;
  Budget* budget = nullptr;  // whom `bytes` are charged to
  std::size_t bytes = 0;
};

/// One value. Copying copies a pointer. Strings are UTF-8.
class Value {
 public:
  using Pair = std::pair<Value, Value>;

  Value() noexcept = default;  ///< undefined, which is not none
  static Value none() noexcept { return Value(Kind::none); }
  template <std::same_as<bool> T>
  Value(T value) noexcept : kind_(Kind::boolean) {
    payload_.integer = value ? 1 : 0;
  }
  template <class T>
    requires((std::integral<T> || std::same_as<T, Int>) && !std::same_as<T, bool> && !std::same_as<T, char>)
  Value(T value) noexcept : kind_(Kind::integer) {
    payload_.integer = static_cast<Int>(value);
  }
  template <std::floating_point T>
  Value(T value) noexcept : kind_(Kind::real) {
    payload_.real = static_cast<double>(value);
  }
  Value(std::string text);
  NIHAO_NOINLINE Value(std::string_view text) : Value(std::string(text)) {}
  Value(const char* text) : Value(std::string_view(text)) {}
  static Value list(std::vector<Value> items = {}, Flavor flavor = Flavor::list);
  /// In the order given; of two equal keys the first gives the place and the last the value, as in Python. Keys are expected to
  /// be strings, numbers, booleans, none or tuples of such.
  static Value dict(std::vector<Pair> entries = {});
  /// An undefined value that says, when it is used, what was missing.
  static Value missing(std::string message);
  static Value object(Object* object) noexcept {
    Value v(Kind::object);
    v.payload_.object = object;
    return v;
  }
  static Value function(const Callable* callable, Value self);

  Value(const Value& other) noexcept : kind_(other.kind_), markup_(other.markup_), payload_(other.payload_) {
    if (shared()) node()->references.fetch_add(1, std::memory_order_relaxed);
  }
  Value(Value&& other) noexcept : kind_(other.kind_), markup_(other.markup_), payload_(other.payload_) {
    other.kind_ = Kind::none;
  }
  Value& operator=(Value other) noexcept {
    std::swap(kind_, other.kind_), std::swap(markup_, other.markup_), std::swap(payload_, other.payload_);
    return *this;
  }
  ~Value() {
    if (shared()) drop(*this);
  }

  [[nodiscard]] Kind kind() const noexcept { return kind_; }
  [[nodiscard]] bool is(Kind kind) const noexcept { return kind_ == kind; }
  [[nodiscard]] bool is_undefined() const noexcept { return kind_ == Kind::undefined; }
  [[nodiscard]] bool is_none() const noexcept { return kind_ == Kind::none; }
  [[nodiscard]] bool is_string() const noexcept { return kind_ == Kind::string; }
  /// int or bool: Python's bool is an int.
  [[nodiscard]] bool is_integral() const noexcept { return kind_ == Kind::integer || kind_ == Kind::boolean; }
  [[nodiscard]] bool is_number() const noexcept { return is_integral() || kind_ == Kind::real; }
  [[nodiscard]] bool is_list(Flavor flavor) const noexcept;

  [[nodiscard]] bool boolean() const noexcept { return payload_.integer != 0; }
  [[nodiscard]] Int integer() const noexcept { return payload_.integer; }
  /// Any number as a double.
  [[nodiscard]] double real() const noexcept {
    return kind_ == Kind::real ? payload_.real : static_cast<double>(payload_.integer);
  }
  /// The text of a string; what was missing, of an undefined value.
  [[nodiscard]] std::string_view text() const noexcept;
  /// True if the string is ASCII, so that bytes are characters.
  [[nodiscard]] bool ascii() const noexcept;
  [[nodiscard]] std::span<const Value> items() const noexcept;
  [[nodiscard]] Flavor flavor() const noexcept;
  [[nodiscard]] std::span<const Pair> entries() const noexcept;
  /// The value at a string key of a dict, or null.
  [[nodiscard]] const Value* find(std::string_view key) const noexcept;
  [[nodiscard]] Object* object() const noexcept { return payload_.object; }
  [[nodiscard]] const Callable* callable() const noexcept;
  [[nodiscard]] const Value& self() const noexcept;

  /// How deeply it is nested: 1 for a scalar or an empty list.
  [[nodiscard]] std::uint32_t depth() const noexcept { return shared() ? node()->depth : 1; }
  /// Whether the two are one and the same, not only equal.
  [[nodiscard]] bool same(const Value& other) const noexcept;

  /// An escaped string, which `escape` leaves alone (MarkupSafe's Markup).
  [[nodiscard]] bool markup() const noexcept { return markup_; }
  [[nodiscard]] Value as_markup() const noexcept {
    Value v = *this;
    v.markup_ = true;
    return v;
  }
  /// Charges what this value holds itself to a budget, which must outlive it. A value is charged once.
  void charge(Budget& budget) const noexcept;
  /// Takes the unread items of an iterator, which is then at its end: Python's iterators run once.
  [[nodiscard]] std::span<const Value> consume() const noexcept;
  /// Gives the last `count` of them back.
  void put_back(std::size_t count) const noexcept;

 private:
  explicit Value(Kind kind) noexcept : kind_(kind) {}
  Value(Kind kind, Node* node) noexcept : kind_(kind) { payload_.node = node; }
  [[nodiscard]] bool shared() const noexcept {
    return kind_ == Kind::string || kind_ == Kind::list || kind_ == Kind::dict || kind_ == Kind::function ||
           (kind_ == Kind::undefined && payload_.node != nullptr);
  }
  [[nodiscard]] Node* node() const noexcept { return payload_.node; }
  template <class T>
  [[nodiscard]] T& as() const noexcept {
    return *static_cast<T*>(payload_.node);
  }
  static void drop(Value& value) noexcept;
  friend struct ListNode;
  friend struct DictNode;
  friend struct FunctionNode;
  /// Gives up a reference inside a dying node; if it was the last, the node joins the dead.
  static void abandon(Value& value, Node*& dead) noexcept {
    if (value.shared() && value.node()->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      value.node()->next = dead;
      dead = value.node();
    }
    value.kind_ = Kind::none;
  }

  Kind kind_ = Kind::undefined;
  bool markup_ = false;
  union Payload {
    Node* node;
    Object* object;
    double real;
    Int integer;
  } payload_ = {nullptr};
};

struct TextNode final : Node {
  std::string text;
  bool ascii = false;
};

struct ListNode final : Node {
  std::vector<Value> items;
  Flavor flavor = Flavor::list;
  std::size_t at = 0;  // of an iterator
  void release(Node*& dead) noexcept override {
    for (Value& v : items) Value::abandon(v, dead);
  }
};

struct DictNode final : Node {
  std::vector<Value::Pair> entries;
  std::vector<std::uint32_t> by_key;  // the string keys in order, once there are many
  void release(Node*& dead) noexcept override {
    for (auto& [key, value] : entries) Value::abandon(key, dead), Value::abandon(value, dead);
  }
};

struct FunctionNode final : Node {
  const Callable* callable = nullptr;
  Value self;
  void release(Node*& dead) noexcept override { Value::abandon(self, dead); }
};

NIHAO_NOINLINE inline void Value::drop(Value& value) noexcept {
  Node* dead = nullptr;
  abandon(value, dead);
  while (dead) {
    Node* const node = dead;
    dead = node->next;
    node->release(dead);
    if (node->budget) node->budget->alive -= node->bytes;
    delete node;
  }
}

NIHAO_NOINLINE inline Value::Value(std::string text) : kind_(Kind::string) {
  auto* node = new TextNode;
  node->text = std::move(text);
  node->ascii = ascii_prefix(node->text) == node->text.size();
  payload_.node = node;
}

inline Value Value::missing(std::string message) {
  auto* node = new TextNode;
  node->text = std::move(message);
  return Value(Kind::undefined, node);
}

inline Value Value::list(std::vector<Value> items, Flavor flavor) {
  auto* node = new ListNode;
  for (const Value& v : items) node->depth = std::max(node->depth, v.depth() + 1);
  node->items = std::move(items);
  node->flavor = flavor;
  return Value(Kind::list, node);
}

namespace detail {
// Whether two dict keys are one: equal numbers of any type are, as in Python.
inline bool same_key(const Value& a, const Value& b) noexcept {
  if (a.is_string() || b.is_string()) return a.is_string() && b.is_string() && a.text() == b.text();
  if (a.is_integral() && b.is_integral()) return a.integer() == b.integer();
  if (a.is_number() && b.is_number()) return a.real() == b.real();
  if (a.kind() != b.kind()) return false;
  if (a.is(Kind::list) && a.items().size() == b.items().size() && a.depth() < 16) {
    return std::equal(a.items().begin(), a.items().end(), b.items().begin(), same_key);
  }
  return a.same(b);
}
inline constexpr std::size_t indexed_dict = 16;  // from this size a dict finds its string keys by halving
}  // namespace detail

inline Value Value::dict(std::vector<Pair> entries) {
  auto* node = new DictNode;
  auto& order = node->by_key;
  if (entries.size() >= detail::indexed_dict) {
    for (std::uint32_t i = 0; i < entries.size(); ++i) {
      if (entries[i].first.is_string()) order.push_back(i);
    }
    std::sort(order.begin(), order.end(), [&](auto a, auto b) {
      const int c = entries[a].first.text().compare(entries[b].first.text());
      return c != 0 ? c < 0 : a < b;
    });
  }
  // The doubles: each one's value goes to the first of its key.
  std::vector<char> drops(entries.size(), 0);
  bool any = false;
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (entries[order[i]].first.text() != entries[order[i - 1]].first.text()) continue;
    std::swap(entries[order[i - 1]].second, entries[order[i]].second);
    drops[order[i]] = 1, any = true;
    order[i] = order[i - 1];
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (!order.empty() && entries[i].first.is_string()) continue;
    for (std::size_t j = 0; j < i; ++j) {
      if (drops[j] || !detail::same_key(entries[i].first, entries[j].first)) continue;
      entries[j].second = std::move(entries[i].second);
      drops[i] = 1, any = true;
      break;
    }
  }
  if (any) {
    std::vector<Pair> kept;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (!drops[i]) kept.push_back(std::move(entries[i]));
    }
    delete node;
    return dict(std::move(kept));  // once more, without doubles: the index is for the new places
  }
  for (const auto& [key, value] : entries) node->depth = std::max({node->depth, key.depth() + 1, value.depth() + 1});
  node->entries = std::move(entries);
  return Value(Kind::dict, node);
}

inline Value Value::function(const Callable* callable, Value self) {
  auto* node = new FunctionNode;
  node->callable = callable;
  node->depth = self.depth() + 1;
  node->self = std::move(self);
  return Value(Kind::function, node);
}

inline std::string_view Value::text() const noexcept {
  if (kind_ == Kind::string || (kind_ == Kind::undefined && payload_.node)) return as<TextNode>().text;
  return {};
}
inline bool Value::ascii() const noexcept { return as<TextNode>().ascii; }
inline std::span<const Value> Value::items() const noexcept {
  if (kind_ != Kind::list) return {};
  const auto& list = as<ListNode>();
  return std::span(list.items).subspan(list.at);
}
inline Flavor Value::flavor() const noexcept { return as<ListNode>().flavor; }
inline bool Value::is_list(Flavor wanted) const noexcept { return kind_ == Kind::list && flavor() == wanted; }
inline std::span<const Value::Pair> Value::entries() const noexcept {
  if (kind_ != Kind::dict) return {};
  return as<DictNode>().entries;
}
inline const Callable* Value::callable() const noexcept { return as<FunctionNode>().callable; }
inline const Value& Value::self() const noexcept { return as<FunctionNode>().self; }

inline const Value* Value::find(std::string_view key) const noexcept {
  if (kind_ != Kind::dict) return nullptr;
  const auto& dict = as<DictNode>();
  if (dict.entries.size() < detail::indexed_dict) {
    for (const auto& [k, v] : dict.entries) {
      if (k.is_string() && k.text() == key) return &v;
    }
    return nullptr;
  }
  const auto at = std::lower_bound(dict.by_key.begin(), dict.by_key.end(), key,
                                   [&](auto i, std::string_view k) { return dict.entries[i].first.text() < k; });
  return at != dict.by_key.end() && dict.entries[*at].first.text() == key ? &dict.entries[*at].second : nullptr;
}

inline bool Value::same(const Value& other) const noexcept {
  if (kind_ != other.kind_) return false;
  switch (kind_) {
    case Kind::none: return true;
    case Kind::boolean:
    case Kind::integer: return payload_.integer == other.payload_.integer;
    case Kind::real: return payload_.real == other.payload_.real;
    case Kind::string: return text() == other.text();  // Python interns what it likes; equal text is the kinder answer
    case Kind::object: return payload_.object == other.payload_.object;
    case Kind::function: return callable() == other.callable() && self().same(other.self());
    default: return payload_.node == other.payload_.node;
  }
}

inline void Value::charge(Budget& budget) const noexcept {
  if (!shared() || node()->budget) return;
  std::size_t bytes = 64;
  if (kind_ == Kind::string || kind_ == Kind::undefined) bytes += as<TextNode>().text.size();
  else if (kind_ == Kind::list) bytes += as<ListNode>().items.size() * sizeof(Value);
  else if (kind_ == Kind::dict) bytes += as<DictNode>().entries.size() * (sizeof(Pair) + 4);
  node()->budget = &budget;
  node()->bytes = bytes;
  budget.alive += bytes;
}

inline std::span<const Value> Value::consume() const noexcept {
  auto& list = as<ListNode>();
  return std::span(list.items).subspan(std::exchange(list.at, list.items.size()));
}
inline void Value::put_back(std::size_t count) const noexcept { as<ListNode>().at -= count; }

}  // namespace nihao::jinja
