// What can stand after a bar: Jinja's filters on values and sequences. Those on text are in text_filters.hpp.
#pragma once

#include "text_filters.hpp"

namespace nihao::jinja {

namespace detail {

// --------------------------------------------------------------------------------------------- attributes and sort keys

/// What an item is compared by: its attribute, and text without case unless told otherwise.
[[nodiscard]] inline Result sort_key(Runtime& rt, const Value& item, const Value* path, bool case_sensitive,
                                     const Value* otherwise = nullptr) {
  NIHAO_TRY(Value key, read_path(rt, item, path, otherwise));
  if (case_sensitive || !key.is_string()) return key;
  if (!rt.room(key.text().size())) return rt.failure();
  return rt.text(to_lower(key.text()));
}
[[nodiscard]] inline bool flag(const Value* v) noexcept { return v && truth(*v); }

/// Sorts `items` by `keys`, stably. Errors: mismatch (keys that have no order).
[[nodiscard]] inline Expected<std::vector<Value>> sorted(Runtime& rt, std::span<const Value> items,
                                                         const std::vector<Value>& keys, bool reverse) {
  std::vector<std::size_t> places(items.size());
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = i;
  std::optional<Error> problem;
  // A merge sort of our own: its calls to the comparison may fail, which std::sort's may not.
  std::vector<std::size_t> spare(places.size());
  const auto before = [&](std::size_t a, std::size_t b) {
    if (problem) return false;
    auto o = order(rt, keys[reverse ? b : a], keys[reverse ? a : b], "<");
    if (!o) return problem = std::move(o).error(), false;
    return *o < 0;
  };
  for (std::size_t width = 1; width < places.size() && !problem; width *= 2) {
    for (std::size_t start = 0; start < places.size(); start += 2 * width) {
      const std::size_t middle = std::min(start + width, places.size()), end = std::min(start + 2 * width, places.size());
      std::size_t left = start, right = middle;
      for (std::size_t k = start; k < end; ++k) {
        const bool take_right = left == middle || (right < end && before(places[right], places[left]));
        spare[k] = take_right ? places[right++] : places[left++];
      }
    }
    places.swap(spare);
  }
  if (problem) return *std::move(problem);
  std::vector<Value> out;
  out.reserve(places.size());
  for (const std::size_t i : places) out.push_back(items[i]);
  return out;
}

// --------------------------------------------------------------------------------------------------------------- sequences

inline Result filter_length(Runtime& rt, const Value& v, const Arguments& a) {
  NIHAO_CHECK(bind_none("length", a));
  NIHAO_TRY(const std::size_t size, size_of(rt, v));
  return Value(size);
}
inline Result filter_list(Runtime& rt, const Value& v, const Arguments& a) {
  NIHAO_CHECK(bind_none("list", a));
  NIHAO_TRY(const Iteration all, iterate(rt, v));
  if (!rt.room(all.items.size() * sizeof(Value))) return rt.failure();
  return rt.list({all.items.begin(), all.items.end()});
}
inline Result filter_first(Runtime& rt, const Value& v, const Arguments& a) {
  NIHAO_CHECK(bind_none("first", a));
  NIHAO_TRY(const Iteration all, iterate(rt, v));
  if (all.items.empty()) return rt.missing("No first item, sequence was empty.");
  Value first = all.items.front();
  // An iterator has given one item, not all.
  if (v.is(Kind::list) && v.flavor() == Flavor::iterator) v.put_back(all.items.size() - 1);
  return first;
}
inline Result filter_last(Runtime& rt, const Value& v, const Arguments& a) {
  NIHAO_CHECK(bind_none("last", a));
  if (v.is_list(Flavor::iterator)) return type_error("'generator' object is not reversible");
  NIHAO_TRY(const Iteration all, iterate(rt, v));
  if (all.items.empty()) return rt.missing("No last item, sequence was empty.");
  return all.items.back();
}
inline Result filter_reverse(Runtime& rt, const Value& v, const Arguments& a) {
  NIHAO_CHECK(bind_none("reverse", a));
  if (v.is_string()) return slice(rt, v, Value::none(), Value::none(), Value(-1));
  NIHAO_TRY(const Iteration all, iterate(rt, v));
  if (!rt.room(all.items.size() * sizeof(Value))) return rt.failure();
  return rt.list({all.items.rbegin(), all.items.rend()}, v.is_list(Flavor::iterator) ? Flavor::list : Flavor::iterator);
}
inline Result filter_sort(Runtime& rt, const Value& v, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<3>("sort", a, {"reverse", "case_sensitive", "attribute"}));
  NIHAO_TRY(const Iteration all, iterate(rt, v));
  if (!rt.room(all.items.size() * 2 * sizeof(Value))) return rt.failure();
  std::vector<Value> keys;
  for (const Value& item : all.items) {
    if (p[2] && p[2]->is_string() &&
        p[2]->text().find(',') != std::string_view::npos) {  // several attributes, most important first
      std::vector<Value> row;
      for (std::string_view rest = p[2]->text();;) {
        const std::size_t comma = std::min(rest.find(','), rest.size());
        const Value path = rt.text(std::string(rest.substr(0, comma)));
        NIHAO_TRY(Value key, sort_key(rt, item, &path, flag(p[1])));
        row.push_back(std::move(key));
        if (comma == rest.size()) break;
        rest.remove_prefix(comma + 1);
      }
      keys.push_back(rt.list(std::move(row)));
      continue;
    }
    NIHAO_TRY(Value key, sort_key(rt, item, p[2], flag(p[1])));
    keys.push_back(rt.list({std::move(key)}));  // in a list, equal keys need no order: None and None may be sorted
  }
  NIHAO_TRY(auto out, sorted(rt, all.items, keys, flag(p[0])));
  return rt.list(std::move(out));
}
inline Result filter_dictsort(Runtime& rt, const Value& v, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<3>("dictsort", a, {"case_sensitive", "by", "reverse"}));
  NIHAO_TRY(const std::string_view by, text_argument(p[1], "key"));
  if (by != "key" && by != "value") return value_error("You can only sort by either \"key\" or \"value\"");
  if (v.is_undefined()) return undefined_error(v);
  if (!v.is(Kind::dict)) return type_error(concat("'", type_name(v), " object' has no attribute 'items'"));
  const Value rows = dict_rows(rt, v, Flavor::dict_items);
  std::vector<Value> keys;
  for (const auto& [key, value] : v.entries()) {
    NIHAO_TRY(Value made, sort_key(rt, by == "key" ? key : value, nullptr, flag(p[0])));
    keys.push_back(std::move(made));
  }
  if (!rt.alive()) return rt.failure();
  NIHAO_TRY(auto out, sorted(rt, rows.items(), keys, flag(p[2])));
  return rt.list(std::move(out));
}
inline Result filter_items(Runtime& rt, const Value& v, const Arguments& a) {
  NIHAO_CHECK(bind_none("items", a));
  if (v.is_undefined()) return rt.list({}, Flavor::iterator);
  if (!v.is(Kind::dict)) return type_error("Can only get item pairs from a mapping.");
  const Value rows = dict_rows(rt, v, Flavor::dict_items);
  return rt.list({rows.items().begin(), rows.items().end()}, Flavor::iterator);
}
inline Result filter_unique(Runtime& rt, const Value& v, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<2>("unique", a, {"case_sensitive", "attribute"}));
  NIHAO_TRY(const Iteration all, iterate(rt, v));
  std::vector<Value> keys, out;
  for (const Value& item : all.items) {
    NIHAO_TRY(Value key, sort_key(rt, item, p[1], flag(p[0])));
    if (!hashable(key)) return unhashable(key);
    if (std::any_of(keys.begin(), keys.end(), [&](const Value& k) { return equals(rt, k, key); })) continue;
    if (!rt.alive()) return rt.failure();
    keys.push_back(std::move(key));
    out.push_back(item);
  }
  return rt.list(std::move(out), Flavor::iterator);
}
template <bool greatest>
Result filter_extreme(Runtime& rt, const Value& v, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<2>(greatest ? "max" : "min", a, {"case_sensitive", "attribute"}));
  NIHAO_TRY(const Iteration all, iterate(rt, v));
  if (all.items.empty()) return rt.missing("No aggregated item, sequence was empty.");
  Value best = all.items.front();
  NIHAO_TRY(Value best_key, sort_key(rt, best, p[1], flag(p[0])));
  for (const Value& item : all.items.subspan(1)) {
    NIHAO_TRY(Value key, sort_key(rt, item, p[1], flag(p[0])));
    NIHAO_TRY(const auto o, order(rt, key, best_key, greatest ? ">" : "<"));
    if (greatest ? o > 0 : o < 0) best = item, best_key = std::move(key);
  }
  return best;
}
inline Result filter_sum(Runtime& rt, const Value& v, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<2>("sum", a, {"attribute", "start"}));
  NIHAO_TRY(const Iteration all, iterate(rt, v));
  Value total = p[1] ? *p[1] : Value(0);
  if (total.is_string()) return type_error("sum() can't sum strings [use ''.join(seq) instead]");
  for (const Value& item : all.items) {
    NIHAO_TRY(const Value part, read_path(rt, item, p[0]));
    NIHAO_TRY(total, arithmetic(rt, Op::add, total, part));
  }
  return total;
}
inline Result filter_batch(Runtime& rt, const Value& v, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<2>("batch", a, {"linecount", "fill_with"}, 1));
  NIHAO_TRY(const std::int64_t size, integer_argument(p[0], 1));
  NIHAO_TRY(const Iteration all, iterate(rt, v));
  if (size < 1) return value_error("batch needs a line count of at least 1");
  std::vector<Value> out;
  for (std::size_t at = 0; at < all.items.size();) {
    const std::size_t n = std::min(static_cast<std::size_t>(size), all.items.size() - at);
    std::vector<Value> line(all.items.begin() + static_cast<std::ptrdiff_t>(at),
                            all.items.begin() + static_cast<std::ptrdiff_t>(at + n));
    at += n;
    if (p[1] && !p[1]->is_none() && line.size() < static_cast<std::size_t>(size)) {
      if (!rt.room(static_cast<std::size_t>(std::min<std::int64_t>(size, 1 << 30)) * sizeof(Value)) || size > (1 << 30)) {
        return rt.fail("bytes of memory"), rt.failure();
      }
      line.resize(static_cast<std::size_t>(size), *p[1]);
    }
    out.push_back(rt.list(std::move(line)));
  }
  return rt.list(std::move(out), Flavor::iterator);
}
inline Result filter_slice(Runtime& rt, const Value& v, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<2>("slice", a, {"slices", "fill_with"}, 1));
  NIHAO_TRY(const std::int64_t wanted, integer_argument(p[0], 1));
  NIHAO_TRY(const Iteration all, iterate(rt, v));
  if (wanted < 1) return value_error("integer division or modulo by zero");
  const auto slices = static_cast<std::size_t>(wanted);
  if (slices > 1'000'000 || !rt.room(slices * 160)) return rt.fail("bytes of memory"), rt.failure();
  const std::size_t each = all.items.size() / slices, extra = all.items.size() % slices;
  std::vector<Value> out;
  std::size_t at = 0;
  for (std::size_t i = 0; i < slices; ++i) {
    const std::size_t n = each + (i < extra);
    std::vector<Value> part(all.items.begin() + static_cast<std::ptrdiff_t>(at),
                            all.items.begin() + static_cast<std::ptrdiff_t>(at + n));
    at += n;
    if (p[1] && !p[1]->is_none() && i >= extra) part.push_back(*p[1]);
    out.push_back(rt.list(std::move(part)));
  }
  return rt.list(std::move(out), Flavor::iterator);
}
inline Result filter_groupby(Runtime& rt, const Value& v, const Arguments& a) {
  NIHAO_TRY(const auto p, bind<3>("groupby", a, {"attribute", "default", "case_sensitive"}, 1));
  NIHAO_TRY(const Iteration all, iterate(rt, v));
  std::vector<Value> keys;
  for (const Value& item : all.items) {
    NIHAO_TRY(Value key, sort_key(rt, item, p[0], flag(p[2]), p[1]));
    keys.push_back(std::move(key));
  }
  NIHAO_TRY(const auto items, sorted(rt, all.items, keys, false));
  std::vector<Value> out, group;
  Value of;
  const auto close = [&]() -> Expected<void> {
    NIHAO_TRY(Value name, read_path(rt, group.front(), p[0], p[1]));
    out.push_back(rt.list({std::move(name), rt.list(std::exchange(group, {}))}, Flavor::tuple));
    return {};
  };
  for (const Value& item : items) {
    NIHAO_TRY(Value key, sort_key(rt, item, p[0], flag(p[2]), p[1]));
    if (!group.empty() && !equals(rt, key, of)) NIHAO_CHECK(close());
    of = std::move(key);
    group.push_back(item);
  }
  if (!group.empty()) NIHAO_CHECK(close());
  return rt.list(std::move(out));
}

// ------------------------------------------------------------------------------------------- filters that use filters and tests

[[nodiscard]] inline Result filter_map(Runtime& rt, const Value& v, const Arguments& a);

/// select, reject, selectattr, rejectattr.
template <bool wanted, bool by_attribute>
Result filter_select(Runtime& rt, const Value& v, const Arguments& a) {
  if (by_attribute && a.positional.empty()) return type_error("Missing parameter for attribute name");
  const std::size_t first = by_attribute ? 1 : 0;
  const TestFunction* test = nullptr;
  Arguments rest;
  if (a.positional.size() > first) {
    NIHAO_TRY(const std::string_view name, text_argument(&a.positional[first], ""));
    test = find_test(name);
    if (!test) return Error{ErrorCode::unsupported, concat("No test named '", printable(name), "'.")};
    rest.positional.assign(a.positional.begin() + static_cast<std::ptrdiff_t>(first) + 1, a.positional.end());
    rest.named = a.named;
  }
  if (!truth(v)) return rt.list({}, Flavor::iterator);
  NIHAO_TRY(const Iteration all, iterate(rt, v));
  std::vector<Value> out;
  for (const Value& item : all.items) {
    if (!rt.tick()) return rt.failure();
    NIHAO_TRY(const Value asked, read_path(rt, item, by_attribute ? &a.positional[0] : nullptr));
    bool yes = truth(asked);
    if (test) { NIHAO_TRY(yes, test->call(rt, asked, rest)); }
    if (yes == wanted) out.push_back(item);
  }
  return rt.list(std::move(out), Flavor::iterator);
}

inline constexpr FilterFunction value_filters[] = {
    {"batch", filter_batch},
    {"count", filter_length},
    {"dictsort", filter_dictsort},
    {"first", filter_first},
    {"groupby", filter_groupby},
    {"items", filter_items},
    {"last", filter_last},
    {"length", filter_length},
    {"list", filter_list},
    {"map", filter_map},
    {"max", filter_extreme<true>},
    {"min", filter_extreme<false>},
    {"reject", filter_select<false, false>},
    {"rejectattr", filter_select<false, true>},
    {"reverse", filter_reverse},
    {"select", filter_select<true, false>},
    {"selectattr", filter_select<true, true>},
    {"slice", filter_slice},
    {"sort", filter_sort},
    {"sum", filter_sum},
    {"unique", filter_unique},
};

}  // namespace detail

/// The filter of that name, or null.
[[nodiscard]] inline const FilterFunction* find_filter(std::string_view name) noexcept {
  for (const FilterFunction& filter : detail::value_filters) {
    if (filter.name == name) return &filter;
  }
  for (const FilterFunction& filter : detail::text_filters) {
    if (filter.name == name) return &filter;
  }
  return nullptr;
}
inline bool has_filter(std::string_view name) noexcept { return find_filter(name) != nullptr; }

inline Expected<Value> detail::filter_map(Runtime& rt, const Value& v, const Arguments& a) {
  const FilterFunction* filter = nullptr;
  Arguments rest;
  const Value *path = nullptr, *otherwise = nullptr;
  if (a.positional.empty()) {
    for (const auto& [name, value] : a.named) {
      if (name == "attribute") path = &value;
      else if (name == "default") otherwise = &value;
      else return type_error(concat("Unexpected keyword argument '", printable(name), "'"));
    }
    if (!path) return type_error("map requires a filter argument");
  } else {
    NIHAO_TRY(const std::string_view name, text_argument(&a.positional[0], ""));
    filter = find_filter(name);
    if (!filter) return Error{ErrorCode::unsupported, concat("No filter named '", printable(name), "'.")};
    rest.positional.assign(a.positional.begin() + 1, a.positional.end());
    rest.named = a.named;
  }
  // `map('map', 'map', ...)` goes one deeper for each.
  const Runtime::Level level(rt);
  if (!rt.alive()) return rt.failure();
  if (!truth(v)) return rt.list({}, Flavor::iterator);  // not even None is refused
  NIHAO_TRY(const Iteration all, iterate(rt, v));
  std::vector<Value> out;
  for (const Value& item : all.items) {
    if (!rt.tick()) return rt.failure();
    NIHAO_TRY(Value made, filter ? filter->call(rt, item, rest) : read_path(rt, item, path, otherwise));
    out.push_back(std::move(made));
  }
  if (!rt.alive()) return rt.failure();
  return rt.list(std::move(out), Flavor::iterator);
}

}  // namespace nihao::jinja
