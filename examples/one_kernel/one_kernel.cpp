// One kernel without the rest: RMSNorm on the host's own memory. No model, no device object, nothing to link.
//
// The header brings the plain definition (nihao::reference::rms_norm) and the fast kernel, compiled for every instruction set
// whatever flags this file is compiled with. The host picks one; all of them give the same bits.
#include <nihao/kernels/cpu/rms_norm.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

int main() {
  constexpr std::size_t width = 576;  // not a power of two: the last lanes are filled as they should
  std::vector<float> x(width), weight(width), expected(width), first(width), y(width);
  for (std::size_t i = 0; i < width; ++i) {
    x[i] = 3.0f * std::sin(0.37f * static_cast<float>(i));
    weight[i] = 1.0f + 0.1f * std::cos(0.11f * static_cast<float>(i));
  }
  constexpr float eps = 1e-5f;

  // y = x / sqrt(mean(x^2) + eps) * weight, as the paper has it, in double.
  nihao::reference::rms_norm(x, weight, eps, expected);

  bool equal = true;
  double worst = 0;
  bool have_first = false;
  for (const nihao::Isa isa : nihao::all_isas) {
    const auto name = nihao::to_string(isa);
    if (!nihao::cpu_supports(isa)) {
      std::printf("%-9.*s this machine lacks it\n", static_cast<int>(name.size()), name.data());
      continue;
    }
    nihao::rms_norm(isa, x, weight, eps, y);
    if (!have_first) first = y, have_first = true;
    const bool same = std::memcmp(first.data(), y.data(), width * sizeof(float)) == 0;
    equal = equal && same;
    for (std::size_t i = 0; i < width; ++i)
      worst = std::max(worst, std::abs(static_cast<double>(y[i]) - static_cast<double>(expected[i])));
    std::printf("%-9.*s %s: y[0..3] = %.7f %.7f %.7f %.7f\n", static_cast<int>(name.size()), name.data(),
                same ? "the same bits" : "OTHER BITS", static_cast<double>(y[0]), static_cast<double>(y[1]),
                static_cast<double>(y[2]), static_cast<double>(y[3]));
  }
  std::printf("definition               y[0..3] = %.7f %.7f %.7f %.7f\n", static_cast<double>(expected[0]),
              static_cast<double>(expected[1]), static_cast<double>(expected[2]), static_cast<double>(expected[3]));

  double squares = 0;  // what the norm is for: whatever came in, the mean square that leaves is 1 (before the weight)
  for (std::size_t i = 0; i < width; ++i)
    squares += static_cast<double>(y[i] / weight[i]) * static_cast<double>(y[i] / weight[i]);
  std::printf("mean of (y / weight)^2 = %.6f; farthest from the definition: %.1e\n", squares / width, worst);
  if (!equal || !(worst < 1e-6)) return 1;
  std::printf("every set gives the same bits, and all are close to the definition\n");
  return 0;
}
