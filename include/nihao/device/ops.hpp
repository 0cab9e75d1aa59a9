// Where layers find their operations: Ops<D>, specialised once per device. Layers never ask which device it is.
#pragma once

#include "observer.hpp"

namespace nihao {

/// The operations of device D. Specialisations: kernels/cpu/ops.hpp for Cpu.
template <class D>
struct Ops {
  static_assert(
      sizeof(D) == 0,
      "No operations for this device: include its header (kernels/cpu/ops.hpp for nihao::Cpu), or specialise nihao::Ops<D>.");
};

}  // namespace nihao
