#include "nihao/kernels/cpu/elementwise.hpp"

#include "random_weights.hpp"

#include <array>
#include <doctest/doctest.h>
#include <Eigen/Core>

using namespace nihao;

namespace {

struct Angles {
  std::vector<float> cos, sin;
  Angles(const RopeFrequencies& rope, std::int64_t position) : cos(rope.frequency.size()), sin(cos.size()) {
    rope_angles(rope, position, cos, sin);
  }
};

std::vector<float> turned(const RopeFrequencies& rope, std::vector<float> head, std::int64_t position, RopeStyle style) {
  const Angles a(rope, position);
  reference::rope(head, a.cos, a.sin, style);
  return head;
}

double dot(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

constexpr RopeStyle styles[] = {RopeStyle::halves, RopeStyle::neighbours};

// What the reference implementation of Llama 3.1 does, by wavelengths and in long double.
long double llama3_frequency(long double plain, long double factor, long double low, long double high, long double context) {
  const long double wavelength = 2 * 3.14159265358979323846264338327950288L / plain;
  if (wavelength < context / high) return plain;
  if (wavelength > context / low) return plain / factor;
  const long double smooth = (context / wavelength - low) / (high - low);
  return (1 - smooth) * plain / factor + smooth * plain;
}

}  // namespace

TEST_CASE("plain frequencies fall from 1 by equal ratios") {
  for (const double base : {10000.0, 500000.0, 1e6}) {
    const auto rope = rope_frequencies({.base = base}, 128);
    REQUIRE(rope.frequency.size() == 64);
    CHECK(rope.magnitude == 1.0);
    CHECK(rope.frequency[0] == 1.0);
    for (std::size_t i = 0; i < 64; ++i)
      CHECK(rope.frequency[i] == doctest::Approx(static_cast<double>(std::exp(-2.0L * static_cast<long double>(i) / 128 *
                                                                              std::log(static_cast<long double>(base)))))
                                     .epsilon(1e-14));
    CHECK(rope.frequency[32] == doctest::Approx(1 / std::sqrt(base)).epsilon(1e-14));
  }
}

// Case C69.
TEST_CASE("llama3 scaling leaves fast pairs, slows slow ones by the factor, and blends between: at positions up to 60,000") {
  for (const double factor : {8.0, 32.0}) {
    const auto rope =
        rope_frequencies({.base = 500000.0, .scaling = RopeScaling::llama3, .factor = factor, .original_context = 8192}, 128);
    const auto plain = rope_frequencies({.base = 500000.0}, 128);
    int kept = 0, slowed = 0, between = 0;
    for (std::size_t i = 0; i < 64; ++i) {
      const long double f =
          llama3_frequency(static_cast<long double>(plain.frequency[i]), static_cast<long double>(factor), 1, 4, 8192);
      CHECK(rope.frequency[i] == doctest::Approx(static_cast<double>(f)).epsilon(1e-14));
      if (rope.frequency[i] == plain.frequency[i]) ++kept;
      else if (rope.frequency[i] == plain.frequency[i] / factor) ++slowed;
      else ++between;
      for (const std::int64_t position : {0, 1000, 8000, 60000}) {
        const Angles a(rope, position);
        CHECK(static_cast<double>(a.cos[i]) ==
              doctest::Approx(static_cast<double>(std::cos(static_cast<long double>(position) * f))).epsilon(1e-7));
        CHECK(static_cast<double>(a.sin[i]) ==
              doctest::Approx(static_cast<double>(std::sin(static_cast<long double>(position) * f))).epsilon(1e-7));
      }
    }
    // Of 64 pairs with this base and context: 29 turn more than four times in 8192 positions, 29 less than once.
    CHECK(kept == 29);
    CHECK(between == 6);
    CHECK(slowed == 29);
  }
}

TEST_CASE("linear scaling by 4 at position 4 p turns as position p does without") {
  const auto plain = rope_frequencies({.base = 10000.0}, 64);
  const auto scaled = rope_frequencies({.base = 10000.0, .scaling = RopeScaling::linear, .factor = 4}, 64);
  for (const std::int64_t p : {0, 1, 77, 20000}) {
    CHECK(Angles(scaled, 4 * p).cos == Angles(plain, p).cos);
    CHECK(Angles(scaled, 4 * p).sin == Angles(plain, p).sin);
  }
}

TEST_CASE(
    "dynamic scaling does nothing within the original context, and beyond slows the slowest pair the most, the first not at "
    "all") {
  const RopeParams params{.base = 10000.0, .scaling = RopeScaling::dynamic, .factor = 2, .original_context = 512};
  const auto plain = rope_frequencies({.base = 10000.0}, 64);
  for (const std::size_t positions : {0u, 1u, 512u}) CHECK(rope_frequencies(params, 64, positions).frequency == plain.frequency);
  const auto scaled = rope_frequencies(params, 64, 2048);
  CHECK(scaled.magnitude == 1.0);
  CHECK(scaled.frequency[0] == 1.0);
  CHECK(plain.frequency[31] / scaled.frequency[31] == doctest::Approx(2.0 * 2048 / 512 - 1).epsilon(1e-12));
  for (std::size_t i = 1; i < 32; ++i)
    CHECK(plain.frequency[i] / scaled.frequency[i] > plain.frequency[i - 1] / scaled.frequency[i - 1]);
}

TEST_CASE("yarn keeps pairs that turn often in the original context, slows those that turn less than once, ramps between") {
  constexpr std::size_t width = 128;
  constexpr double context = 4096, factor = 16;
  const auto rope =
      rope_frequencies({.base = 10000.0, .scaling = RopeScaling::yarn, .factor = factor, .original_context = context}, width);
  const auto plain = rope_frequencies({.base = 10000.0}, width);
  CHECK(rope.magnitude == doctest::Approx(0.1 * std::log(16.0) + 1.0));
  // The paper's ramp by counted turns: the last pair with at least 32 turns, the first with at most one.
  std::size_t last_fast = 0, first_slow = width / 2 - 1;
  for (std::size_t i = 0; i < width / 2; ++i) {
    const double turns = context * plain.frequency[i] / (2 * std::numbers::pi);
    if (turns >= 32) last_fast = i;
    if (turns <= 1) first_slow = std::min(first_slow, i);
  }
  CHECK(last_fast == 20);
  CHECK(first_slow == 46);
  for (std::size_t i = 0; i < width / 2; ++i) {
    const double along = std::clamp(
        (static_cast<double>(i) - static_cast<double>(last_fast)) / static_cast<double>(first_slow - last_fast), 0.0, 1.0);
    const double expected = plain.frequency[i] * (1 - along) + plain.frequency[i] / factor * along;
    CHECK(rope.frequency[i] == doctest::Approx(expected).epsilon(1e-12));
  }
  CHECK(rope_frequencies({.scaling = RopeScaling::yarn, .factor = 4, .original_context = 64, .attention_factor = 1.25}, 16)
            .magnitude == 1.25);
  CHECK(rope_frequencies({.scaling = RopeScaling::yarn, .factor = 1, .original_context = 64}, 16).magnitude == 1.0);
  // The magnitude is in cos and sin.
  const Angles a(rope, 0);
  CHECK(static_cast<double>(a.cos[5]) == doctest::Approx(rope.magnitude));
}

TEST_CASE("angles are right to a float at position a million") {
  const auto rope = rope_frequencies({.base = 500000.0}, 128);
  for (const std::int64_t p : {100000, 1000000}) {
    const Angles a(rope, p);
    for (std::size_t i = 0; i < a.cos.size(); ++i) {
      const long double angle = static_cast<long double>(p) * static_cast<long double>(rope.frequency[i]);
      CHECK(std::abs(static_cast<long double>(a.cos[i]) - std::cos(angle)) < 1e-7L);
      CHECK(std::abs(static_cast<long double>(a.sin[i]) - std::sin(angle)) < 1e-7L);
    }
  }
}

TEST_CASE("turning real pairs is multiplying complex numbers") {
  const auto rope = rope_frequencies({.base = 10000.0}, 64);
  for (const RopeStyle style : styles)
    for (const std::int64_t position : {0, 1, 5, 1000, 131071}) {
      const Angles a(rope, position);
      const auto head = test::random_floats(64, static_cast<unsigned>(position));
      auto real = head, complex = head;
      reference::rope(real, a.cos, a.sin, style);
      reference::rope_complex(complex, a.cos, a.sin, style);
      for (std::size_t i = 0; i < head.size(); ++i)
        CHECK(real[i] == doctest::Approx(static_cast<double>(complex[i])).epsilon(1e-6));
      if (position == 0) CHECK(real == head);
      CHECK(dot(real, real) == doctest::Approx(dot(head, head)).epsilon(1e-6));  // a turn keeps lengths
    }
}

TEST_CASE("a turn is Eigen's rotation of each pair") {
  const auto rope = rope_frequencies({.base = 10000.0}, 8);
  const auto head = test::random_floats(8, 3);
  const auto result = turned(rope, head, 7, RopeStyle::neighbours);
  for (std::size_t i = 0; i < 4; ++i) {
    const double angle = 7 * std::pow(10000.0, -2.0 * static_cast<double>(i) / 8);
    Eigen::Matrix2d matrix;
    matrix << std::cos(angle), -std::sin(angle), std::sin(angle), std::cos(angle);
    const Eigen::Vector2d expected =
        matrix * Eigen::Vector2d(static_cast<double>(head[2 * i]), static_cast<double>(head[2 * i + 1]));
    CHECK(static_cast<double>(result[2 * i]) == doctest::Approx(expected(0)).epsilon(1e-6));
    CHECK(static_cast<double>(result[2 * i + 1]) == doctest::Approx(expected(1)).epsilon(1e-6));
  }
}

TEST_CASE("a score depends on the distance of query and key alone") {
  for (const RopeParams& params :
       {RopeParams{.base = 10000.0},
        RopeParams{.base = 500000.0, .scaling = RopeScaling::llama3, .factor = 8, .original_context = 8192}}) {
    const auto rope = rope_frequencies(params, 64);
    const auto q = test::random_floats(64, 1), k = test::random_floats(64, 2);
    for (const RopeStyle style : styles)
      for (const std::int64_t distance : {0, 1, 17, 900}) {
        const double expected = dot(turned(rope, q, distance, style), k);
        for (const std::int64_t start : {1, 100, 5000, 60000})
          CHECK(dot(turned(rope, q, start + distance, style), turned(rope, k, start, style)) ==
                doctest::Approx(expected).epsilon(1e-4));
        // And on nothing less: another distance gives another score.
        CHECK(std::abs(dot(turned(rope, q, 100 + distance, style), turned(rope, k, 99, style)) - expected) > 1e-3);
      }
  }
}

TEST_CASE("the two styles differ by the order of a head's values alone") {
  const auto rope = rope_frequencies({.base = 10000.0}, 32);
  const auto head = test::random_floats(32, 5);
  std::vector<float> apart(32);  // firsts of all pairs, then seconds
  for (std::size_t i = 0; i < 16; ++i) apart[i] = head[2 * i], apart[16 + i] = head[2 * i + 1];
  const auto neighbours = turned(rope, head, 42, RopeStyle::neighbours), halves = turned(rope, apart, 42, RopeStyle::halves);
  for (std::size_t i = 0; i < 16; ++i) {
    CHECK(neighbours[2 * i] == halves[i]);
    CHECK(neighbours[2 * i + 1] == halves[16 + i]);
  }
}

TEST_CASE("every set turns heads to the bits of the reference, at every width, leaving what is not rotated") {
  for (const std::size_t pairs : {1u, 7u, 8u, 16u, 20u, 32u, 40u, 64u, 128u}) {
    const auto rope = rope_frequencies({.base = 10000.0}, 2 * pairs);
    const Angles a(rope, 12345);
    for (const std::size_t more : {0u, 6u})
      for (const RopeStyle style : styles) {
        const auto head = test::random_floats(2 * pairs + more, 6);
        auto expected = head;
        reference::rope(expected, a.cos, a.sin, style);
        for (std::size_t i = 2 * pairs; i < head.size(); ++i) CHECK(expected[i] == head[i]);
        for (const Isa isa : all_isas) {
          if (!cpu_supports(isa)) continue;
          auto result = head;
          nihao::rope(isa, result, a.cos, a.sin, style);
          CHECK_MESSAGE(result == expected, to_string(isa), " ", pairs);
        }
      }
  }
}
