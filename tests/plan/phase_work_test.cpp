#include "nihao/plan/phase_work.hpp"
#include "nihao/models/any_model.hpp"
#include "nihao/models/load_hf.hpp"
#include "nihao/plan/roofline.hpp"
#include "support/data.hpp"

#include <doctest/doctest.h>

using namespace nihao;

namespace {

// What the steps of a phase say themselves.
Work counted(ModelContext& context, std::size_t before, std::size_t count, std::size_t chunk, bool every) {
  WorkCounter counter;
  const ObserverRef observer(counter);
  const std::vector<TokenId> ids(count, 5);
  context.cache().truncate(0, 0);
  REQUIRE(context.cache().extend(0, before).has_value());
  for (std::size_t done = 0; done < count; done += chunk) {
    const std::size_t rows = std::min(chunk, count - done);
    const SequenceTokens step{0, std::span(ids).subspan(done, rows), every || done + rows == count ? Wanted::last : Wanted::none};
    REQUIRE(context.step(std::span(&step, 1), &observer).has_value());
  }
  return counter.total;
}

void check_equal(const Work& a, const Work& b) {
  CHECK(a.bytes == b.bytes);
  CHECK(a.flops == b.flops);
}

}  // namespace

TEST_CASE("one observed step tells the work of whole phases, with and without windows") {
  for (const char* name : {"golden/models/llama_gqa", "golden/models/gemma3_text"}) {
    const auto path = test::data(name);
    if (!path) NIHAO_SKIP(name);
    CAPTURE(std::string(name));
    const auto model = load_hf(path->string());
    REQUIRE(model.has_value());
    const auto context = model->context({.positions = 100, .chunk = 32});
    REQUIRE(context.has_value());
    PhaseWork phases;
    const ObserverRef observer(phases);
    const TokenId id = 7;
    const SequenceTokens one{0, std::span(&id, 1)};
    REQUIRE((*context)->cache().extend(0, 41).has_value());
    REQUIRE((*context)->step(std::span(&one, 1), &observer).has_value());

    check_equal(phases.reading(0, 70, 32), counted(**context, 0, 70, 32, false));
    check_equal(phases.reading(25, 33, 8), counted(**context, 25, 33, 8, false));
    check_equal(phases.making(40, 30), counted(**context, 40, 30, 1, true));
    check_equal(phases.reading(3, 0, 8), {});
    check_equal(phases.making(3, 0), {});
  }
}
