#include "nihao/simd/isa.hpp"

#if NIHAO_X86
#include "nihao/kernels/cpu/matmul_tile.hpp"

template void nihao::detail::matmul_one_tile<nihao::Isa::avx512, nihao::Quant<nihao::Any>>(const nihao::TileTask&) noexcept;
#endif
