#include "nihao/kernels/cpu/matmul_tile.hpp"

template void nihao::detail::matmul_one_tile<nihao::Isa::portable, nihao::Quant<nihao::Any>>(const nihao::TileTask&) noexcept;
