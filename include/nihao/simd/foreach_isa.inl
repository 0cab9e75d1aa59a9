// Includes NIHAO_KERNEL_FILE once per instruction set, each time inside the region compiled for it, with NIHAO_ISA_NAMESPACE
// naming the namespace it fills. No include guard: every kernel header includes this once for its own file.
// AVX-VNNI differs from AVX2 in its dot products alone: it shares AVX2's copy (simd/lanes.hpp), unless the file says with
// NIHAO_KERNEL_DOTS that it takes dot products, or otherwise needs a copy of its own.
#if NIHAO_X86
NIHAO_TARGET_BEGIN(NIHAO_FLAGS_AVX2)
#define NIHAO_ISA_NAMESPACE avx2
#include NIHAO_KERNEL_FILE
#undef NIHAO_ISA_NAMESPACE
NIHAO_TARGET_END

#if defined(NIHAO_KERNEL_DOTS)
NIHAO_TARGET_BEGIN(NIHAO_FLAGS_AVX_VNNI)
#define NIHAO_ISA_NAMESPACE avx_vnni
#include NIHAO_KERNEL_FILE
#undef NIHAO_ISA_NAMESPACE
NIHAO_TARGET_END
#endif

NIHAO_TARGET_BEGIN(NIHAO_FLAGS_AVX512)
#define NIHAO_ISA_NAMESPACE avx512
#include NIHAO_KERNEL_FILE
#undef NIHAO_ISA_NAMESPACE
NIHAO_TARGET_END

#elif NIHAO_ARM
NIHAO_TARGET_BEGIN(NIHAO_FLAGS_NEON_DOTPROD)
#define NIHAO_ISA_NAMESPACE neon_dotprod
#include NIHAO_KERNEL_FILE
#undef NIHAO_ISA_NAMESPACE
NIHAO_TARGET_END
#endif

#define NIHAO_ISA_NAMESPACE portable
#include NIHAO_KERNEL_FILE
#undef NIHAO_ISA_NAMESPACE
#undef NIHAO_KERNEL_FILE
#undef NIHAO_KERNEL_DOTS
