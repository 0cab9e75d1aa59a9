// One fast kernel, called.
#include <nihao/kernels/cpu/rms_norm.hpp>
void unit(std::span<const float> x, std::span<const float> weight, std::span<float> y) {
  nihao::rms_norm(nihao::best_isa(), x, weight, 1e-5f, y);
}
