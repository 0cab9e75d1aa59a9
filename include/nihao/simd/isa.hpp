// Which instruction sets there are, which of them this machine has, and the regions of code compiled for each.
#pragma once

#include "../base/config.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

#if defined(__x86_64__)
#define NIHAO_X86 1
#else
#define NIHAO_X86 0
#endif
#if defined(__aarch64__)
#define NIHAO_ARM 1
#include "../base/platform.hpp"  // what an Arm processor has, only the system says
#else
#define NIHAO_ARM 0
#endif

namespace nihao {

/// The instruction sets that kernels are compiled for, in rising order on each architecture; what another architecture has is a
/// name here, and never supported. All give the same bits (docs/dispatch.md).
enum class Isa : std::uint8_t {
  portable,      ///< xsimd at the flags of the unit that includes the library
  avx2,          ///< AVX2, FMA, F16C
  avx_vnni,      ///< the same with 256-bit vpdpbusd
  avx512,        ///< AVX-512 F, BW, DQ, VL and VNNI
  neon_dotprod,  ///< AArch64's NEON with sdot
};

inline constexpr Isa all_isas[] = {Isa::portable, Isa::avx2, Isa::avx_vnni, Isa::avx512, Isa::neon_dotprod};

constexpr std::string_view to_string(Isa isa) noexcept {
  switch (isa) {
    case Isa::portable: return "portable";
    case Isa::avx2: return "avx2";
    case Isa::avx_vnni: return "avx_vnni";
    case Isa::avx512: return "avx512";
    case Isa::neon_dotprod: return "neon_dotprod";
  }
  return "unknown";
}

constexpr std::optional<Isa> isa_from_name(std::string_view name) noexcept {
  for (const Isa isa : all_isas)
    if (to_string(isa) == name) return isa;
  return std::nullopt;
}

namespace detail {
#if NIHAO_X86
// CPUID leaf 7, sub-leaf 1, EAX bit 4: AVX-VNNI. The compilers' __builtin_cpu_supports of 2022 do not know its name.
inline bool cpu_has_avx_vnni() noexcept {
  unsigned a = 7, b = 0, c = 1, d = 0;
  __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  return (a >> 4) & 1u;
}
#endif
}  // namespace detail

/// True if this machine can run `isa`.
[[nodiscard]] inline bool cpu_supports(Isa isa) noexcept {
  if (isa == Isa::portable) return true;
#if NIHAO_X86
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return false;  // every CPU with both has F16C
  if (isa == Isa::avx_vnni) return detail::cpu_has_avx_vnni();
  if (isa == Isa::avx512)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
  return isa == Isa::avx2;
#elif NIHAO_ARM
  return isa == Isa::neon_dotprod && cpu_has_arm_dotprod();
#else
  return false;
#endif
}

/// The best instruction set of this machine.
[[nodiscard]] inline Isa best_isa() noexcept {
  Isa best = Isa::portable;
  for (const Isa isa : all_isas)
    if (cpu_supports(isa)) best = isa;
  return best;
}

}  // namespace nihao

// Code between NIHAO_TARGET_BEGIN(flags) and NIHAO_TARGET_END is compiled for those flags whatever the unit's own are. Rules
// inside: no #include of other headers, no std templates, no lambdas, no xsimd, no vector passed to code outside.
#define NIHAO_PRAGMA_(x) _Pragma(#x)
#if defined(__clang__)
#define NIHAO_TARGET_BEGIN(flags) NIHAO_PRAGMA_(clang attribute push(__attribute__((target(flags))), apply_to = function))
#define NIHAO_TARGET_END _Pragma("clang attribute pop")
#define NIHAO_UNROLL _Pragma("clang loop unroll(full)")
#else
#define NIHAO_TARGET_BEGIN(flags) _Pragma("GCC push_options") NIHAO_PRAGMA_(GCC target(flags))
#define NIHAO_TARGET_END _Pragma("GCC pop_options")
#define NIHAO_UNROLL _Pragma("GCC unroll 16")
#endif
#define NIHAO_FLAGS_AVX2 "avx2,fma,f16c"
#define NIHAO_FLAGS_AVX_VNNI "avx2,fma,f16c,avxvnni"
#define NIHAO_FLAGS_AVX512 "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni"
#if defined(__clang__)
#define NIHAO_FLAGS_NEON_DOTPROD "dotprod"
#elif defined(__ARM_FEATURE_DOTPROD)
#define NIHAO_FLAGS_NEON_DOTPROD "+dotprod"
#else  // g++'s own intrinsic, and the assembler of 2022, want the architecture that first had it
#define NIHAO_FLAGS_NEON_DOTPROD "arch=armv8.2-a+dotprod"
#endif

// NIHAO_EACH_ISA(M, ...) is M(set, ...) for every set of this architecture beside `portable`, the best one first. A set is a
// value of Isa and a namespace in nihao::simd, of one name.
#if NIHAO_X86
#define NIHAO_EACH_ISA(M, ...) M(avx512, __VA_ARGS__) M(avx_vnni, __VA_ARGS__) M(avx2, __VA_ARGS__)
#elif NIHAO_ARM
#define NIHAO_EACH_ISA(M, ...) M(neon_dotprod, __VA_ARGS__)
#else
#define NIHAO_EACH_ISA(M, ...)
#endif

// NIHAO_ON_ISA(isa, kernel(arguments)) calls the copy of a kernel that was compiled for `isa`.
#define NIHAO_ON_ISA(isa, ...) \
  (static_cast<void>(isa), NIHAO_EACH_ISA(NIHAO_CHOOSE_ISA_, isa, __VA_ARGS__)::nihao::simd::portable::__VA_ARGS__)
#define NIHAO_CHOOSE_ISA_(set, isa, ...) (isa) == ::nihao::Isa::set ? ::nihao::simd::set::__VA_ARGS__:
// The same as a statement, for a constant: of a kernel that is a template, no other copy is instantiated.
#define NIHAO_RETURN_ON_ISA(isa, ...) \
  NIHAO_EACH_ISA(NIHAO_CONSTANT_ISA_, isa, __VA_ARGS__) return ::nihao::simd::portable::__VA_ARGS__
#define NIHAO_CONSTANT_ISA_(set, isa, ...)                                          \
  if constexpr ((isa) == ::nihao::Isa::set) return ::nihao::simd::set::__VA_ARGS__; \
  else
