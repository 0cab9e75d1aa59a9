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

namespace nihao {

/// The instruction sets that kernels are compiled for, in rising order. All give the same bits (docs/dispatch.md).
enum class Isa : std::uint8_t {
  portable,  ///< xsimd at the flags of the unit that includes the library
  avx2,      ///< AVX2, FMA, F16C
  avx_vnni,  ///< the same with 256-bit vpdpbusd
  avx512,    ///< AVX-512 F, BW, DQ, VL and VNNI
};

inline constexpr Isa all_isas[] = {Isa::portable, Isa::avx2, Isa::avx_vnni, Isa::avx512};

constexpr std::string_view to_string(Isa isa) noexcept {
  switch (isa) {
    case Isa::portable: return "portable";
    case Isa::avx2: return "avx2";
    case Isa::avx_vnni: return "avx_vnni";
    case Isa::avx512: return "avx512";
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
#if NIHAO_X86
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");  // every CPU with both has F16C
  switch (isa) {
    case Isa::portable: return true;
    case Isa::avx2: return avx2;
    case Isa::avx_vnni: return avx2 && detail::cpu_has_avx_vnni();
    case Isa::avx512:
      return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
  }
  return false;
#else
  return isa == Isa::portable;
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

// NIHAO_ON_ISA(isa, kernel(arguments)) calls the copy of a kernel that was compiled for `isa`.
#if NIHAO_X86
#define NIHAO_ON_ISA(isa, ...)                                              \
  ((isa) == ::nihao::Isa::avx512     ? ::nihao::simd::avx512::__VA_ARGS__   \
   : (isa) == ::nihao::Isa::avx_vnni ? ::nihao::simd::avx_vnni::__VA_ARGS__ \
   : (isa) == ::nihao::Isa::avx2     ? ::nihao::simd::avx2::__VA_ARGS__     \
                                     : ::nihao::simd::portable::__VA_ARGS__)
#else
#define NIHAO_ON_ISA(isa, ...) (static_cast<void>(isa), ::nihao::simd::portable::__VA_ARGS__)
#endif
