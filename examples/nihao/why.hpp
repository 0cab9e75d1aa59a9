// What `bench --why` adds to a test: where a step's time goes, and what would cut it.
#pragma once

#include "common.hpp"

#include <nihao/plan/why.hpp>

namespace nihao::program {

/// A test's steps, timed without an observer and with one.
struct WhyTest {
  Bound bound;
  std::size_t rows;              ///< of a step
  double step_seconds;           ///< without
  double observed_step_seconds;  ///< with: the sum of why's stations, and what lies around them
  Why why;
};

/// What why.hpp wants to know beside the stations' costs.
[[nodiscard]] StepFacts step_facts(const AnyModel& model, KvType kv, bool prompt, std::size_t sequences);

/// Lines for a terminal.
[[nodiscard]] std::string to_text(const WhyTest& test);
/// The field "why".
[[nodiscard]] Json to_json(const WhyTest& test);

}  // namespace nihao::program
