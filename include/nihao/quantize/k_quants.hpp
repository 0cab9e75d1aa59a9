// Encoders of Q4_K, Q5_K, Q6_K and IQ4_XS: fitted groups, packed.
#pragma once

#include "../format/iq4_xs.hpp"
#include "../format/q4_k.hpp"
#include "../format/q5_k.hpp"
#include "../format/q6_k.hpp"
#include "grouped.hpp"
#include "one_scale.hpp"

namespace nihao {

namespace detail {
/// The low four bits of 256 codes: 32 bytes a pair of groups, the first group's in the low halves.
inline void put_pairs(std::uint8_t (&qs)[128], const std::array<std::uint8_t, superblock>& code) noexcept {
  for (std::size_t p = 0; p < 4; ++p)
    for (std::size_t i = 0; i < 32; ++i)
      qs[32 * p + i] = static_cast<std::uint8_t>((code[64 * p + i] & 15) | (code[64 * p + 32 + i] & 15) << 4);
}
}  // namespace detail

template <>
struct Quantizer<Q4_K> {
  static void encode(std::span<const float, superblock> x, std::span<const float, superblock> w, Q4_K::Block& block) noexcept {
    const AffineGroups fit = fit_affine_groups<15>(x, w);
    block.d = fit.d, block.dmin = fit.dmin;
    put_k_scales(fit.group, block.scales);
    detail::put_pairs(block.qs, fit.code);
  }
};

template <>
struct Quantizer<Q5_K> {
  static void encode(std::span<const float, superblock> x, std::span<const float, superblock> w, Q5_K::Block& block) noexcept {
    const AffineGroups fit = fit_affine_groups<31>(x, w);
    block.d = fit.d, block.dmin = fit.dmin;
    put_k_scales(fit.group, block.scales);
    detail::put_pairs(block.qs, fit.code);
    for (std::size_t i = 0; i < 32; ++i) {
      int bits = 0;
      for (std::size_t g = 0; g < 8; ++g) bits |= (fit.code[32 * g + i] >> 4 & 1) << g;
      block.qh[i] = static_cast<std::uint8_t>(bits);
    }
  }
};

template <>
struct Quantizer<Q6_K> {
  static void encode(std::span<const float, superblock> x, std::span<const float, superblock> w, Q6_K::Block& block) noexcept {
    const ScaledGroups<16> fit = fit_scaled_groups<EvenLevels<-32, 31>, 16, 128>(x, w);
    block = {};
    block.d = fit.d;
    for (std::size_t g = 0; g < 16; ++g) {
      block.scales[g] = fit.scale[g];
      const std::size_t half = g / 8, quarter = g % 8 / 2, first = g % 2 * 16;
      std::uint8_t* const ql = block.ql + 64 * half + 32 * (quarter % 2) + first;
      std::uint8_t* const qh = block.qh + 32 * half + first;
      for (std::size_t i = 0; i < 16; ++i) {
        const int code = static_cast<int>(fit.level[16 * g + i]) + 32;
        ql[i] = static_cast<std::uint8_t>(ql[i] | (code & 15) << (quarter < 2 ? 0 : 4));
        qh[i] = static_cast<std::uint8_t>(qh[i] | code >> 4 << (2 * quarter));
      }
    }
  }
};

template <>
struct Quantizer<IQ4_XS> {
  static void encode(std::span<const float, superblock> x, std::span<const float, superblock> w, IQ4_XS::Block& block) noexcept {
    const ScaledGroups<8> fit = fit_scaled_groups<Iq4Levels, 8, 32>(x, w);
    block = {};
    block.d = fit.d;
    for (std::size_t g = 0; g < 8; ++g) {
      const int scale = fit.scale[g] + 32;
      block.scales_l[g / 2] = static_cast<std::uint8_t>(block.scales_l[g / 2] | (scale & 15) << 4 * (g % 2));
      block.scales_h[g / 4] = static_cast<std::uint8_t>(block.scales_h[g / 4] | scale >> 4 << 2 * (g % 4));
      for (std::size_t j = 0; j < 16; ++j) {
        const int low = Iq4Levels::code(fit.level[32 * g + j]), high = Iq4Levels::code(fit.level[32 * g + j + 16]);
        block.qs[16 * g + j] = static_cast<std::uint8_t>(low | high << 4);
      }
    }
  }
};

}  // namespace nihao
