// The vocabulary that every fast CPU kernel is written in: sixteen logical lanes, on every instruction set.
//
// f32x16 and i32x16 hold sixteen numbers, u8x64 holds sixty-four bytes: one ZMM register, two YMM registers, four of NEON's, or
// as many xsimd batches as it takes. Because the lane count is the same everywhere and every multiply-add is a true fused one, a
// kernel gives the same bits on every set. `tile_tokens` and `tile_rows` say how large a register tile of a matmul fits the set.
//
// Per set: lanes_avx512.inl, lanes_avx2.inl (twice: with and without vpdpbusd), lanes_neon.inl, lanes_portable.inl. math.inl
// builds on them.
#pragma once

#include "../base/config.hpp"
#include "../base/small_floats.hpp"
#include "isa.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#if NIHAO_X86
#include <immintrin.h>
#elif NIHAO_ARM
#include <arm_neon.h>
#endif
#include <xsimd/xsimd.hpp>

#if NIHAO_X86
NIHAO_TARGET_BEGIN(NIHAO_FLAGS_AVX2)
#define NIHAO_ISA_NAMESPACE avx2
#define NIHAO_DOT_VNNI 0
#include "lanes_avx2.inl"
#undef NIHAO_DOT_VNNI
#undef NIHAO_ISA_NAMESPACE
NIHAO_TARGET_END

NIHAO_TARGET_BEGIN(NIHAO_FLAGS_AVX_VNNI)
#define NIHAO_ISA_NAMESPACE avx_vnni
#define NIHAO_DOT_VNNI 1
#include "lanes_avx2.inl"
#undef NIHAO_DOT_VNNI
#undef NIHAO_ISA_NAMESPACE
NIHAO_TARGET_END
namespace nihao::simd {
inline namespace NIHAO_ABI {
namespace avx_vnni {
using namespace avx2;  // the kernels without dot products; what is declared in avx_vnni itself comes first
}
}  // namespace NIHAO_ABI
}  // namespace nihao::simd

NIHAO_TARGET_BEGIN(NIHAO_FLAGS_AVX512)
#include "lanes_avx512.inl"
NIHAO_TARGET_END

#elif NIHAO_ARM
NIHAO_TARGET_BEGIN(NIHAO_FLAGS_NEON_DOTPROD)
#include "lanes_neon.inl"
NIHAO_TARGET_END
#endif

#include "lanes_portable.inl"

#define NIHAO_KERNEL_FILE "math.inl"
#define NIHAO_KERNEL_DOTS
#include "foreach_isa.inl"
