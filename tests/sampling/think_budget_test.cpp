#include "nihao/sampling/think_budget.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <map>
#include <string>

#include "nihao/files/json.hpp"
#include "support/data.hpp"

using namespace nihao;

namespace {

// Texts as tokens.
struct Ids {
  std::map<std::string, TokenId> known;
  TokenId operator()(const std::string& text) {
    return known.try_emplace(text, static_cast<TokenId>(known.size())).first->second;
  }
};

// The model that wants to say `model` says this under the budget; what comes after a forced end is `after`.
std::vector<TokenId> run_budget(ThinkBudget& budget, std::vector<TokenId> model, const std::vector<TokenId>& after,
                                std::size_t most = 100) {
  std::vector<TokenId> out;
  std::size_t at = 0;
  bool was_forced = false;
  while (out.size() < most) {
    const auto forced = budget.forced();
    was_forced = was_forced || (forced && budget.inside());
    if (!forced && was_forced && !after.empty() && !budget.inside()) model = after, at = 0, was_forced = false;
    if (!forced && at == model.size()) break;
    out.push_back(forced ? budget.push(*forced) : budget.push(model[at++]));
  }
  return out;
}

}  // namespace

TEST_CASE("the thinking's budget does what the reference cases say") {
  const auto path = test::data("text/reasoning.json");
  if (!path) NIHAO_SKIP("text/reasoning.json");
  const auto json = parse_json(test::read_text(*path));
  REQUIRE(json.has_value());
  std::size_t cases = 0;
  for (const Json& test : *json_find(*json, "budget_cases")) {
    CAPTURE(*json_get<std::string>(test, "name"));
    ++cases;
    Ids ids;
    const auto list = [&](const char* name) {
      std::vector<TokenId> out;
      if (!test.at(name).is_null())
        for (const Json& text : test.at(name)) out.push_back(ids(text.get<std::string>()));
      return out;
    };
    const ThinkLimits limits{.most = *json_get<std::size_t>(test, "max_tokens"),
                             .least = *json_get<std::size_t>(test, "min_tokens"),
                             .waits = *json_get<std::size_t>(test, "max_waits")};
    const std::vector<TokenId> close{ids("</think>")};
    ThinkBudget budget(limits, {close, close, {ids("Wait")}}, true);
    std::vector<TokenId> expected = list("reasoning_tokens");
    const std::size_t thinking = expected.size();
    expected.push_back(close[0]);
    for (const TokenId id : list("content_tokens")) expected.push_back(id);
    CHECK(run_budget(budget, list("model_tokens"), list("after_force_close")) == expected);
    CHECK(budget.thinking_tokens() == thinking);
    CHECK_FALSE(budget.inside());
  }
  CHECK(cases == 4);
}

TEST_CASE("thinking ends after exactly N tokens, with all the tokens of the end, and what follows is the model's") {
  const std::vector<TokenId> close{7, 8, 9}, force{7, 8, 9, 5};
  for (std::size_t n = 0; n < 12; ++n) {
    CAPTURE(n);
    ThinkBudget budget({.most = n}, {close, force, {6}}, true);
    const std::vector<TokenId> out = run_budget(budget, std::vector<TokenId>(20, 1), {}, n + 6);
    std::vector<TokenId> expected(n, 1);
    expected.insert(expected.end(), {7, 8, 9, 5, 1, 1});
    CHECK(out == expected);
    CHECK(budget.thinking_tokens() == n);
  }
}

TEST_CASE("an end that the model has begun when the budget is spent is completed, not written twice") {
  ThinkBudget budget({.most = 3}, {{7, 8, 9}, {7, 8, 9}, {6}}, true);
  CHECK(run_budget(budget, {1, 1, 7, 2, 2}, {}) == std::vector<TokenId>{1, 1, 7, 8, 9, 2, 2});
  CHECK(budget.thinking_tokens() == 2);
}

TEST_CASE("an end of the answer is put off like an end of the thinking, and before the thinking nothing is") {
  ThinkBudget budget({.least = 2}, {{7}, {7}, {6, 5}}, false);
  CHECK(budget.push(7) == 7);
  CHECK(budget.push(3, true) == 3);
  budget.set_inside(true);
  CHECK(budget.push(3, true) == 6);
  CHECK(budget.forced() == 5);
  CHECK(budget.push(5) == 5);
  CHECK(budget.thinking_tokens() == 2);
  CHECK(budget.push(7) == 7);
  CHECK_FALSE(budget.inside());
}

TEST_CASE("an end of several tokens is found where its beginning repeats") {
  ThinkBudget budget({}, {{1, 1, 2}, {1, 1, 2}, {6}}, true);
  for (const TokenId id : {1, 1, 1, 2}) CHECK(budget.push(id) == id);
  CHECK_FALSE(budget.inside());
  CHECK(budget.thinking_tokens() == 1);
}
