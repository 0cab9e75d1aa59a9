// Where layers find their operations: Ops<D>, specialised once per device. Layers never ask which device it is.
#pragma once

#include "observer.hpp"

#include <cstdint>

namespace nihao {

/// How near to f32 the input of a matmul stays, on devices that multiply in fewer bits.
enum class InputPrecision : std::uint8_t {
  usual,  ///< the device's own: int8 with a scale for each 32 on a CPU
  fine,   ///< smaller blocks, for the head: its input's error goes straight into the logits
};

/// The operations of device D. Specialisations: kernels/cpu/ops.hpp for Cpu.
template <class D>
struct Ops {
  static_assert(
      sizeof(D) == 0,
      "No operations for this device: include its header (kernels/cpu/ops.hpp for nihao::Cpu), or specialise nihao::Ops<D>.");
};

}  // namespace nihao
