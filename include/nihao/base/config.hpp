// The few macros of the library: what the compiler offers, and the debug-only assert.
#pragma once

// Numeric headers stop here under -ffast-math: it lets the compiler reorder sums and drop NaN checks, and the
// library promises equal bits in any batch and an error (never a token) for NaN logits.
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "nihao needs IEEE arithmetic: compile without -ffast-math and -ffinite-math-only."
#endif

#if defined(__cpp_exceptions) && __cpp_exceptions
#define NIHAO_HAS_EXCEPTIONS 1
#else
#define NIHAO_HAS_EXCEPTIONS 0
#endif

// Set by the CMake target nihao::compiled: what it has compiled is not instantiated again. A header x.hpp whose definitions are
// long keeps them in x_impl.hpp, which it includes at its end unless they come compiled.
#if !defined(NIHAO_COMPILED)
#define NIHAO_COMPILED 0
#endif
// The same of what reads JSON, which nihao::compiled has where nlohmann-json was there when it was built.
#if !defined(NIHAO_COMPILED_JSON)
#define NIHAO_COMPILED_JSON 0
#endif
// Before each of those definitions: nothing in the units of nihao::compiled (cmake/compiled/), which have to hold them.
#if defined(NIHAO_COMPILING)
#define NIHAO_INLINE
#else
#define NIHAO_INLINE inline
#endif

#define NIHAO_ALWAYS_INLINE inline __attribute__((always_inline))
#define NIHAO_NOINLINE __attribute__((noinline))
// For what happens rarely: never inlined, made small instead of fast, and the branch to it is taken to be unlikely. It keeps
// error paths out of the way of the code and of the compiler.
#define NIHAO_COLD __attribute__((noinline, cold))

// Internal invariants, checked in debug builds alone. Input is never checked with this: input gives an Error.
#if defined(NDEBUG)
#define NIHAO_ASSERT(condition) static_cast<void>(0)
#else
#include <cassert>
#define NIHAO_ASSERT(condition) assert(condition)
#endif

// Code compiled with different -m flags must not share symbols, or the linker could give an older CPU the copy
// with newer instructions. All SIMD code sits in an inline namespace that names the flags (docs/dispatch.md).
#if defined(__AVX512VNNI__)
#define NIHAO_ABI abi_x86_v4_vnni
#elif defined(__AVX512F__)
#define NIHAO_ABI abi_x86_v4
#elif defined(__AVX2__)
#define NIHAO_ABI abi_x86_v3
#elif defined(__x86_64__)
#define NIHAO_ABI abi_x86_v1
#elif defined(__ARM_FEATURE_SVE) && defined(__aarch64__)
#define NIHAO_ABI abi_aarch64_sve
#elif defined(__ARM_FEATURE_DOTPROD) && defined(__aarch64__)
#define NIHAO_ABI abi_aarch64_dotprod
#elif defined(__aarch64__)
#define NIHAO_ABI abi_aarch64
#else
#define NIHAO_ABI abi_generic
#endif
