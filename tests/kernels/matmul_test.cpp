#include "nihao/kernels/cpu/ops.hpp"

#include "random_weights.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

using namespace nihao;

namespace {

std::vector<float> multiply(const Cpu& cpu, FormatId format, const std::vector<std::byte>& stored, std::size_t rows,
                            std::size_t cols, const std::vector<float>& x, std::size_t tokens, const float* bias = nullptr,
                            bool accumulate = false, InputPrecision precision = InputPrecision::usual) {
  Arena arena;
  const CpuWeight weight =
      pack_weight(cpu, format, static_cast<std::uint32_t>(rows), static_cast<std::uint32_t>(cols), stored, arena).value();
  const CpuScratch scratch = CpuScratch::create(cpu, {tokens, cols, 16, 1, 16}).value();
  std::vector<float> y(tokens * rows, accumulate ? 1.0f : NAN);
  const Ops<Cpu>::Job job{&weight, MatrixView<float>(y.data(), tokens, rows), bias, accumulate};
  Ops<Cpu>::linear<Quant<Any>>(cpu, scratch, MatrixView<const float>(x.data(), tokens, cols), std::span(&job, 1), precision);
  return y;
}

std::vector<float> by_definition(FormatId format, const std::vector<std::byte>& stored, std::size_t rows, std::size_t cols,
                                 const std::vector<float>& x, std::size_t tokens) {
  std::vector<float> y(tokens * rows);
  reference::matmul(format, stored, MatrixView<const float>(x.data(), tokens, cols), MatrixView<float>(y.data(), tokens, rows));
  return y;
}

double relative_error(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference +=
        (static_cast<double>(a[i]) - static_cast<double>(b[i])) * (static_cast<double>(a[i]) - static_cast<double>(b[i]));
    size += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  return std::sqrt(difference / size);
}

}  // namespace

TEST_CASE(
    "every format's matmul is its definition, exactly in f32 and within int8 activations' error when fast, with equal bits on "
    "every instruction set") {
  constexpr std::size_t rows = 37, cols = 512, tokens = 11;
  const std::vector<float> x = test::random_floats(tokens * cols, 7);
  for (const FormatId format : all_formats) {
    CAPTURE(format_info(format).name);
    const auto stored = test::random_weights(format, rows, cols, 3);
    const auto expected = by_definition(format, stored, rows, cols, x, tokens);
    const auto exact = multiply(Cpu::create({.threads = 2, .exact = true}).value(), format, stored, rows, cols, x, tokens);
    CHECK(relative_error(exact, expected) < 1e-6);
    std::vector<float> first;
    for (const Isa isa : all_isas) {
      if (!cpu_supports(isa)) continue;
      CAPTURE(to_string(isa));
      const auto fast = multiply(Cpu::create({.threads = 2, .isa = isa}).value(), format, stored, rows, cols, x, tokens);
      // A value rounded to 1/127 of its block's largest is off by at most 1/254 of that: 0.3 % rms for normal values.
      CHECK(relative_error(fast, expected) < (format_info(format).as_floats ? 1e-6 : 0.012));
      if (first.empty()) first = fast;
      CHECK(fast == first);
    }
  }
}

TEST_CASE("a packed matrix gives its rows, and of the formats that are packed as they are stored every bit") {
  constexpr std::uint32_t rows = 37;  // two whole tiles and a part of one
  for (const FormatId format : all_formats) {
    CAPTURE(format_info(format).name);
    const std::uint32_t cols = format_info(format).block_size == 1 ? 517 : 512;  // floats may end anywhere
    const auto stored = test::random_weights(format, rows, cols, 5);
    Arena arena;
    const CpuWeight weight = pack_weight(Cpu::create({.threads = 1}).value(), format, rows, cols, stored, arena).value();
    std::vector<float> expected(cols), row(cols);
    for (std::size_t r = 0; r < rows; ++r) {
      std::vector<std::byte> bytes(row_bytes(format, cols));
      visit_format(format, [&]<class F>(F) {
        if constexpr (unpacks<F>) {
          unpack_row<F>(weight.tiles, r, cols, [&](const typename F::Block& block, std::size_t b) {
            std::memcpy(bytes.data() + b * sizeof block, &block, sizeof block);
          });
          CHECK(std::equal(bytes.begin(), bytes.end(), weight.stored_row(r).begin()));
        }
      });
      dequantize_row(format, weight.stored_row(r), expected);
      weight.read_row(r, row);
      CHECK(row == expected);
    }
  }
}

TEST_CASE("a token's product has the same bits alone and among others, on one thread and on three") {
  constexpr std::size_t rows = 50, cols = 256, tokens = 13;
  const std::vector<float> x = test::random_floats(tokens * cols, 8);
  for (const FormatId format : all_formats) {
    CAPTURE(format_info(format).name);
    const auto stored = test::random_weights(format, rows, cols, 4);
    for (const Isa isa : all_isas) {
      if (!cpu_supports(isa)) continue;
      const auto together = multiply(Cpu::create({.threads = 3, .isa = isa}).value(), format, stored, rows, cols, x, tokens);
      for (std::size_t t = 0; t < tokens; ++t) {
        const std::vector<float> one(x.begin() + static_cast<std::ptrdiff_t>(t * cols),
                                     x.begin() + static_cast<std::ptrdiff_t>((t + 1) * cols));
        const auto alone = multiply(Cpu::create({.threads = 1, .isa = isa}).value(), format, stored, rows, cols, one, 1);
        CHECK(std::equal(alone.begin(), alone.end(), together.begin() + static_cast<std::ptrdiff_t>(t * rows)));
      }
    }
  }
}

TEST_CASE("many tokens have the bits that each has alone, over panels, a tile without a neighbour and rows past the last") {
  constexpr std::size_t rows = 37, cols = 2304, tokens = 67;  // 72 blocks of 32: more than a panel; 67 = 16 * 4 + 2 + 1
  static_assert(tokens > few_rows && cols / activation_block > expanded_panel && ceil_div(rows, tile_rows) % 2 == 1);
  const std::vector<float> x = test::random_floats(tokens * cols, 8), bias = test::random_floats(rows, 9);
  for (const FormatId format : all_formats) {
    CAPTURE(format_info(format).name);
    const auto stored = test::random_weights(format, rows, cols, 4);
    const auto expected = by_definition(format, stored, rows, cols, x, tokens);
    std::vector<float> first;
    for (const Isa isa : all_isas) {
      if (!cpu_supports(isa)) continue;
      CAPTURE(to_string(isa));
      const Cpu cpu = Cpu::create({.threads = 2, .isa = isa}).value();
      const auto together = multiply(cpu, format, stored, rows, cols, x, tokens);
      CHECK(relative_error(together, expected) < (format_info(format).as_floats ? 1e-6 : 0.012));
      if (first.empty()) first = together;
      CHECK(together == first);
      const auto fine = multiply(cpu, format, stored, rows, cols, x, tokens, bias.data(), true, InputPrecision::fine);
      constexpr std::size_t some[] = {0, 3, 63, 64, 65, 66};
      for (const std::size_t t : some) {
        const std::vector<float> one(x.begin() + static_cast<std::ptrdiff_t>(t * cols),
                                     x.begin() + static_cast<std::ptrdiff_t>((t + 1) * cols));
        const auto alone = multiply(cpu, format, stored, rows, cols, one, 1);
        CHECK(std::equal(alone.begin(), alone.end(), together.begin() + static_cast<std::ptrdiff_t>(t * rows)));
        const auto fine_alone = multiply(cpu, format, stored, rows, cols, one, 1, bias.data(), true, InputPrecision::fine);
        CHECK(std::equal(fine_alone.begin(), fine_alone.end(), fine.begin() + static_cast<std::ptrdiff_t>(t * rows)));
      }
    }
  }
}

TEST_CASE("a fine input has a scale for each sixteen, with equal bits on every set, alone and among others") {
  constexpr std::size_t rows = 37, cols = 512, tokens = 11;
  // Each sixteen are multiples of a 127th of their largest, so fine rounding loses nothing; neighbours are 2 to 64 times as
  // large.
  std::vector<float> x = test::random_floats(tokens * cols, 7);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t sixteen = i / 16;
    const float step = std::ldexp(1.0f, sixteen % 2 == 0 ? -7 : -1 - static_cast<int>(sixteen / 2 % 6));
    x[i] = step * (i % 16 == 5 ? 127.0f : std::nearbyint(std::clamp(40.0f * x[i], -127.0f, 127.0f)));
  }
  const std::vector<float> bias = test::random_floats(rows, 9);
  const auto fine = [&](const Cpu& cpu, FormatId format, const std::vector<std::byte>& stored, std::span<const float> input,
                        bool accumulate) {
    return multiply(cpu, format, stored, rows, cols, {input.begin(), input.end()}, input.size() / cols, bias.data(), accumulate,
                    InputPrecision::fine);
  };
  for (const FormatId format : all_formats) {
    CAPTURE(format_info(format).name);
    const auto stored = test::random_weights(format, rows, cols, 3);
    auto expected = by_definition(format, stored, rows, cols, x, tokens);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += bias[i % rows];
    std::vector<float> first;
    for (const Isa isa : all_isas) {
      if (!cpu_supports(isa)) continue;
      CAPTURE(to_string(isa));
      const Cpu cpu = Cpu::create({.threads = 2, .isa = isa}).value();
      const auto together = fine(cpu, format, stored, x, false);
      CHECK(relative_error(together, expected) < 1e-6);
      if (first.empty()) first = together;
      CHECK(together == first);
      for (std::size_t t = 0; t < tokens; ++t) {
        const auto alone = fine(cpu, format, stored, std::span(x).subspan(t * cols, cols), false);
        CHECK(std::equal(alone.begin(), alone.end(), together.begin() + static_cast<std::ptrdiff_t>(t * rows)));
      }
    }
    auto added = by_definition(format, stored, rows, cols, x, tokens);
    for (std::size_t i = 0; i < added.size(); ++i) added[i] += bias[i % rows] + 1.0f;
    CHECK(relative_error(fine(Cpu::create({.threads = 2}).value(), format, stored, x, true), added) < 1e-6);
    if (!format_info(format).as_floats)
      CHECK(relative_error(multiply(Cpu::create({.threads = 2}).value(), format, stored, rows, cols, x, tokens, bias.data()),
                           expected) > 1e-4);
  }
}

TEST_CASE("a weight's columns may stand in another order, and its values be scaled: rows and products are those of the matrix") {
  constexpr std::size_t rows = 37, cols = 96, tokens = 5;
  const auto x = test::random_floats(tokens * cols, 1), bias = test::random_floats(rows, 2);
  std::vector<std::uint32_t> order(cols);
  for (std::size_t i = 0; i < cols; ++i) order[i] = static_cast<std::uint32_t>((37 * i + 5) % cols);
  constexpr double scale = 1.0 / 3;
  for (const FormatId format : {FormatId::INT4, FormatId::INT8, FormatId::FP8_E4M3, FormatId::NF4, FormatId::F32}) {
    CAPTURE(format_info(format).name);
    const auto stored = test::random_weights(format, rows, cols, 3);
    const std::size_t row_size = row_bytes(format, cols);
    std::vector<float> expected(tokens * rows), values(cols), row(cols), matrix(rows * cols);
    for (std::size_t r = 0; r < rows; ++r) {
      dequantize_row(format, std::span(stored).subspan(r * row_size, row_size), values);
      for (std::size_t i = 0; i < cols; ++i) matrix[r * cols + order[i]] = static_cast<float>(values[i] * scale);
      for (std::size_t t = 0; t < tokens; ++t) {
        double sum = static_cast<double>(bias[r]);
        for (std::size_t i = 0; i < cols; ++i)
          sum += static_cast<double>(x[t * cols + i]) * static_cast<double>(matrix[r * cols + i]);
        expected[t * rows + r] = static_cast<float>(sum);
      }
    }
    for (const bool exact : {true, false}) {
      const Cpu cpu = Cpu::create({.threads = 2, .exact = exact}).value();
      Arena arena;
      const auto make = [&](std::size_t first, std::size_t count, std::byte* to, std::uint8_t*) {
        std::memcpy(to, stored.data() + first * row_size, count * row_size);
      };
      const CpuWeight reordered = pack_weight(cpu, format, rows, cols, make, {scale, order.data()}, arena).value();
      for (std::size_t r = 0; r < rows; ++r) {
        reordered.read_row(r, row);
        CHECK(std::equal(row.begin(), row.end(), matrix.begin() + static_cast<std::ptrdiff_t>(r * cols)));
      }
      const CpuScratch scratch = CpuScratch::create(cpu, {tokens, cols, 16, 1, 16, 0, true}).value();
      // Beside a job whose columns are where they are.
      const auto plain = pack_weight(cpu, format, rows, cols, stored, arena).value();
      std::vector<float> y(tokens * rows), z(tokens * rows);
      const Ops<Cpu>::Job jobs[] = {{&plain, MatrixView<float>(z.data(), tokens, rows)},
                                    {&reordered, MatrixView<float>(y.data(), tokens, rows), bias.data()}};
      Ops<Cpu>::linear<Quant<Any>>(cpu, scratch, MatrixView<const float>(x.data(), tokens, cols), jobs);
      CHECK(relative_error(y, expected) < (exact || format_info(format).as_floats ? 1e-6 : 0.012));
      CHECK(z == multiply(cpu, format, stored, rows, cols, x, tokens));
    }
  }
}

TEST_CASE("a matmul adds its bias once, and adds to what is there when asked") {
  const auto x = test::random_floats(3 * 32, 1), bias = test::random_floats(20, 2);
  const auto stored = test::random_weights(FormatId::Q8_0, 20, 32, 5);
  const Cpu cpu = Cpu::create({.threads = 1}).value();
  const auto plain = multiply(cpu, FormatId::Q8_0, stored, 20, 32, x, 3);
  const auto both = multiply(cpu, FormatId::Q8_0, stored, 20, 32, x, 3, bias.data(), true);
  for (std::size_t i = 0; i < plain.size(); ++i) CHECK(both[i] == 1.0f + (plain[i] + bias[i % 20]));
}

TEST_CASE("jobs of one call have the bits that each has in a call of its own, whatever formats stand side by side") {
  constexpr std::size_t cols = 512;
  struct Part {
    FormatId format;
    std::size_t rows;
    bool accumulate;
  };
  // Integers and floats, a part of a tile at each seam, and biases beside none.
  constexpr Part parts[] = {
      {FormatId::Q4_K, 37, false}, {FormatId::F16, 5, true}, {FormatId::Q6_K, 16, false}, {FormatId::Q8_0, 70, true}};
  for (const std::size_t tokens : {std::size_t{1}, std::size_t{6}, few_rows + 3}) {
    CAPTURE(tokens);
    const auto x = test::random_floats(tokens * cols, 11);
    for (const Cpu& cpu : {Cpu::create({.threads = 3}).value(), Cpu::create({.threads = 2, .exact = true}).value()}) {
      Arena arena;
      std::vector<CpuWeight> weights;
      std::vector<std::vector<std::byte>> kept;
      std::vector<std::vector<float>> out, biases, alone;
      std::vector<Ops<Cpu>::Job> jobs;
      weights.reserve(std::size(parts));  // jobs point at them
      for (const Part& part : parts) {
        const auto& stored =
            kept.emplace_back(test::random_weights(part.format, part.rows, cols, static_cast<unsigned>(part.rows)));
        biases.push_back(test::random_floats(part.rows, 12));
        const float* bias = part.accumulate ? biases.back().data() : nullptr;
        alone.push_back(multiply(cpu, part.format, stored, part.rows, cols, x, tokens, bias, part.accumulate));
        weights.push_back(pack_weight(cpu, part.format, static_cast<std::uint32_t>(part.rows), cols, stored, arena).value());
        out.emplace_back(tokens * part.rows, part.accumulate ? 1.0f : NAN);
        jobs.push_back({&weights.back(), MatrixView<float>(out.back().data(), tokens, part.rows), bias, part.accumulate});
      }
      const CpuScratch scratch = CpuScratch::create(cpu, {tokens, cols, 16, 1, 16}).value();
      Ops<Cpu>::linear<Quant<Any>>(cpu, scratch, MatrixView<const float>(x.data(), tokens, cols), jobs);
      CHECK(out == alone);
    }
  }
}

TEST_CASE("calls in one go have the bits that each has alone, whatever their formats and how many tokens each has") {
  constexpr std::size_t cols = 512, rows = 37;
  struct Part {
    FormatId format;
    std::size_t tokens;
  };
  // Groups of 1, 2, 4 and 8 quantized rows one behind the other, floats between them, and enough rows for expanded tiles.
  constexpr Part parts[] = {{FormatId::Q4_K, 1}, {FormatId::Q8_0, 3}, {FormatId::F16, 5}, {FormatId::Q6_K, few_rows + 3},
                            {FormatId::Q5_0, 6}, {FormatId::Q4_K, 9}, {FormatId::F32, 1}};
  const auto x = test::random_floats((few_rows + 3) * cols, 21);
  for (const Cpu& cpu : {Cpu::create({.threads = 1}).value(), Cpu::create({.threads = 3}).value(),
                         Cpu::create({.threads = 2, .exact = true}).value()})
    for (const InputPrecision precision : {InputPrecision::usual, InputPrecision::fine}) {
      Arena arena;
      std::vector<CpuWeight> weights;
      std::vector<Ops<Cpu>::Job> jobs;
      std::vector<Ops<Cpu>::Call> calls;
      std::vector<std::vector<std::byte>> kept;
      std::vector<std::vector<float>> out, alone;
      weights.reserve(std::size(parts)), jobs.reserve(std::size(parts));  // others point at them
      std::size_t grouped = 0;
      for (const Part& part : parts) {
        const auto& stored = kept.emplace_back(test::random_weights(part.format, rows, cols, static_cast<unsigned>(part.tokens)));
        alone.push_back(multiply(cpu, part.format, stored, rows, cols, x, part.tokens, nullptr, false, precision));
        weights.push_back(pack_weight(cpu, part.format, rows, cols, stored, arena).value());
        out.emplace_back(part.tokens * rows, NAN);
        jobs.push_back({&weights.back(), MatrixView<float>(out.back().data(), part.tokens, rows)});
        calls.push_back({MatrixView<const float>(x.data(), part.tokens, cols), std::span(&jobs.back(), 1)});
        grouped += CpuScratch::grouped_rows(part.tokens);
      }
      const CpuScratch scratch = CpuScratch::create(cpu, {grouped, cols, 16, 1, 16}).value();
      Ops<Cpu>::linear<Quant<Any>>(cpu, scratch, calls, precision);
      CHECK(out == alone);
    }
}

TEST_CASE("activations that are NaN or infinite give no number in any format: they are never rounded to one") {
  struct Bad {
    float value;
    std::size_t first, count;  // a whole block of them too: sums of what is made of them must not overflow
  };
  for (const Bad& bad : {Bad{NAN, 100, 1}, Bad{NAN, 96, 32}, Bad{-NAN, 103, 5}, Bad{INFINITY, 100, 1}, Bad{-INFINITY, 64, 32}}) {
    auto x = test::random_floats(256, 1);
    std::fill_n(x.begin() + static_cast<std::ptrdiff_t>(bad.first), bad.count, bad.value);
    CAPTURE(bad.value);
    CAPTURE(bad.count);
    for (const FormatId format : all_formats) {
      const auto stored = test::random_weights(format, 16, 256, 5);
      for (const Isa isa : all_isas) {
        if (!cpu_supports(isa)) continue;
        const Cpu cpu = Cpu::create({.threads = 1, .isa = isa}).value();
        for (const InputPrecision precision : {InputPrecision::usual, InputPrecision::fine})
          for (const float y : multiply(cpu, format, stored, 16, 256, x, 1, nullptr, false, precision))
            CHECK_FALSE(std::isfinite(y));
      }
    }
  }
}
