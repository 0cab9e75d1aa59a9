#include "nihao/simd/isa.hpp"

#if NIHAO_ARM
#include "nihao/kernels/cpu/matmul_tile.hpp"

template void nihao::detail::matmul_one_tile<nihao::Isa::neon_dotprod, nihao::Quant<nihao::Any>>(const nihao::TileTask&) noexcept;
#endif
