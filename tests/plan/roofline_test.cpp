#include "nihao/plan/roofline.hpp"

#include <doctest/doctest.h>

using namespace nihao;

TEST_CASE("work is bound by memory when reading its bytes takes longer than its operations, else by compute") {
  const Roofline decode{{.bytes = 100, .flops = 400}, 2.0, 100, 10000};
  CHECK(decode.bound() == Bound::memory);
  CHECK(decode.arithmetic_intensity() == 4);
  CHECK(decode.bandwidth_fraction() == 0.5);
  CHECK(decode.flops_fraction() == 0.02);
  const Roofline prefill{{.bytes = 100, .flops = 200000}, 40.0, 100, 10000};
  CHECK(prefill.bound() == Bound::compute);
  CHECK(prefill.flops_fraction() == 0.5);
  CHECK(to_string(prefill.bound()) == "compute");
}

TEST_CASE("a roofline of nothing has no fractions, and no division by zero") {
  const Roofline nothing{{}, 0, 0, 0};
  CHECK(nothing.arithmetic_intensity() == 0);
  CHECK(nothing.bandwidth_fraction() == 0);
  CHECK(nothing.flops_fraction() == 0);
}

TEST_CASE("every instruction set of this machine can be measured") {
  for (const Isa isa : all_isas) {
    const auto cpu = Cpu::create({.threads = 1, .isa = isa});
    if (!cpu) continue;
    CAPTURE(to_string(isa));
    const auto peaks = measure_peaks(*cpu, 1 << 20);
    REQUIRE(peaks.has_value());
    CHECK(peaks->bytes_per_second > 1e6);
    CHECK(peaks->int8_per_second > 1e6);
    CHECK(peaks->f32_per_second > 1e6);
  }
}
