#include <nihao/text/merge.hpp>

#include <doctest/doctest.h>

#include "text/random.hpp"

#include <map>
#include <vector>

using namespace nihao;

namespace {

struct Part {
  int id;
};
using Rules = std::map<std::pair<int, int>, std::pair<std::uint32_t, int>>;  // pair -> priority, joined

PairRule<Part> lookup(const Rules& rules, Part left, Part right) {
  const auto at = rules.find({left.id, right.id});
  return at == rules.end() ? PairRule<Part>{} : PairRule<Part>{at->second.first, {at->second.second}};
}

// The definition, word for word.
std::vector<int> slow(std::vector<int> parts, const Rules& rules) {
  for (;;) {
    std::size_t best = 0;
    std::uint32_t priority = PairRule<Part>::never;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto rule = lookup(rules, {parts[i]}, {parts[i + 1]});
      if (rule.priority < priority) priority = rule.priority, best = i;
    }
    if (priority == PairRule<Part>::never) return parts;
    parts[best] = lookup(rules, {parts[best]}, {parts[best + 1]}).joined.id;
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

std::vector<int> fast(const std::vector<int>& ids, const Rules& rules, PairMerger<Part>& merger) {
  std::vector<Part> parts;
  for (const int id : ids) parts.push_back({id});
  const std::size_t count = merger.merge(std::span(parts), [&](Part a, Part b) { return lookup(rules, a, b); });
  std::vector<int> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(parts[i].id);
  return out;
}

}  // namespace

TEST_CASE("merging gives what the definition gives, for short and long texts and rules in any order") {
  test::Random random(3);
  PairMerger<Part> merger;
  for (int round = 0; round < 3000; ++round) {
    Rules rules;  // also rules whose result has a better rule than its parts, and equal priorities
    for (unsigned n = random.below(30); n > 0; --n) {
      rules[{static_cast<int>(random.below(6)), static_cast<int>(random.below(6))}] = {random.below(8),
                                                                                       static_cast<int>(random.below(6))};
    }
    std::vector<int> ids(round % 3 == 0 ? random.below(200) : random.below(20));
    for (int& id : ids) id = static_cast<int>(random.below(4));
    REQUIRE(fast(ids, rules, merger) == slow(ids, rules));
  }
}

TEST_CASE("merging n parts asks for at most three pairs a part") {
  // Doubling: 0 0 -> 1, 1 1 -> 2, ...: every part takes part in merges of every size.
  Rules rules;
  for (int i = 0; i < 30; ++i) rules[{i, i}] = {static_cast<std::uint32_t>(i), i + 1};
  PairMerger<Part> merger;
  for (const std::size_t size : {std::size_t{10}, std::size_t{48}, std::size_t{49}, std::size_t{1} << 18, std::size_t{1} << 20}) {
    std::vector<Part> parts(size, Part{0});
    std::size_t asked = 0;
    merger.merge(std::span(parts), [&](Part a, Part b) {
      ++asked;
      return lookup(rules, a, b);
    });
    CHECK(asked <= 3 * size);
  }
}

TEST_CASE("nothing and one part stay as they are") {
  PairMerger<Part> merger;
  CHECK(fast({}, {}, merger).empty());
  CHECK(fast({5}, {}, merger) == std::vector<int>{5});
}
