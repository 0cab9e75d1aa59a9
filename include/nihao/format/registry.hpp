// All formats of files together: from a FormatId met at run time to the format's type, and what is known of each.
#pragma once

#include "../base/config.hpp"
#include "float.hpp"
#include "format.hpp"
#include "fp8.hpp"
#include "int4.hpp"
#include "int8.hpp"
#include "iq1_m.hpp"
#include "iq1_s.hpp"
#include "iq2_s.hpp"
#include "iq2_xs.hpp"
#include "iq2_xxs.hpp"
#include "iq3_s.hpp"
#include "iq3_xxs.hpp"
#include "iq4_nl.hpp"
#include "iq4_xs.hpp"
#include "mxfp4.hpp"
#include "nf4.hpp"
#include "nvfp4.hpp"
#include "q1_0.hpp"
#include "q2_0.hpp"
#include "q2_k.hpp"
#include "q3_k.hpp"
#include "q4_0.hpp"
#include "q4_1.hpp"
#include "q4_k.hpp"
#include "q5_0.hpp"
#include "q5_1.hpp"
#include "q5_k.hpp"
#include "q6_k.hpp"
#include "q8_0.hpp"
#include "q8_k.hpp"
#include "tq1_0.hpp"
#include "tq2_0.hpp"

#include <optional>
#include <utility>

namespace nihao {

/// Every FormatId, in the enum's order.
inline constexpr FormatId all_formats[] = {
    FormatId::F32,     FormatId::F16,      FormatId::BF16,     FormatId::Q8_0,   FormatId::Q4_0,    FormatId::Q4_1,
    FormatId::Q5_0,    FormatId::Q5_1,     FormatId::Q2_K,     FormatId::Q3_K,   FormatId::Q4_K,    FormatId::Q5_K,
    FormatId::Q6_K,    FormatId::Q8_K,     FormatId::IQ4_NL,   FormatId::IQ4_XS, FormatId::IQ3_XXS, FormatId::IQ3_S,
    FormatId::IQ2_XXS, FormatId::IQ2_XS,   FormatId::IQ2_S,    FormatId::IQ1_S,  FormatId::IQ1_M,   FormatId::TQ1_0,
    FormatId::TQ2_0,   FormatId::Q1_0,     FormatId::Q2_0,     FormatId::MXFP4,  FormatId::NVFP4,   FormatId::INT4,
    FormatId::INT8,    FormatId::FP8_E4M3, FormatId::FP8_E5M2, FormatId::NF4};

/// `f(Q4_K{})` for FormatId::Q4_K and so on: the one switch from a format's id to its type. f is a generic callable that
/// returns the same type for every format. `id` must be one of the enum's values: readers make no others.
template <class F>
constexpr decltype(auto) visit_format(FormatId id, F&& f) {
  switch (id) {
    case FormatId::F32: break;
    case FormatId::F16: return std::forward<F>(f)(F16{});
    case FormatId::BF16: return std::forward<F>(f)(BF16{});
    case FormatId::Q8_0: return std::forward<F>(f)(Q8_0{});
    case FormatId::Q4_0: return std::forward<F>(f)(Q4_0{});
    case FormatId::Q4_1: return std::forward<F>(f)(Q4_1{});
    case FormatId::Q5_0: return std::forward<F>(f)(Q5_0{});
    case FormatId::Q5_1: return std::forward<F>(f)(Q5_1{});
    case FormatId::Q2_K: return std::forward<F>(f)(Q2_K{});
    case FormatId::Q3_K: return std::forward<F>(f)(Q3_K{});
    case FormatId::Q4_K: return std::forward<F>(f)(Q4_K{});
    case FormatId::Q5_K: return std::forward<F>(f)(Q5_K{});
    case FormatId::Q6_K: return std::forward<F>(f)(Q6_K{});
    case FormatId::Q8_K: return std::forward<F>(f)(Q8_K{});
    case FormatId::IQ4_NL: return std::forward<F>(f)(IQ4_NL{});
    case FormatId::IQ4_XS: return std::forward<F>(f)(IQ4_XS{});
    case FormatId::IQ3_XXS: return std::forward<F>(f)(IQ3_XXS{});
    case FormatId::IQ3_S: return std::forward<F>(f)(IQ3_S{});
    case FormatId::IQ2_XXS: return std::forward<F>(f)(IQ2_XXS{});
    case FormatId::IQ2_XS: return std::forward<F>(f)(IQ2_XS{});
    case FormatId::IQ2_S: return std::forward<F>(f)(IQ2_S{});
    case FormatId::IQ1_S: return std::forward<F>(f)(IQ1_S{});
    case FormatId::IQ1_M: return std::forward<F>(f)(IQ1_M{});
    case FormatId::TQ1_0: return std::forward<F>(f)(TQ1_0{});
    case FormatId::TQ2_0: return std::forward<F>(f)(TQ2_0{});
    case FormatId::Q1_0: return std::forward<F>(f)(Q1_0{});
    case FormatId::Q2_0: return std::forward<F>(f)(Q2_0{});
    case FormatId::MXFP4: return std::forward<F>(f)(MXFP4{});
    case FormatId::NVFP4: return std::forward<F>(f)(NVFP4{});
    case FormatId::INT4: return std::forward<F>(f)(INT4{});
    case FormatId::INT8: return std::forward<F>(f)(INT8{});
    case FormatId::FP8_E4M3: return std::forward<F>(f)(FP8_E4M3{});
    case FormatId::FP8_E5M2: return std::forward<F>(f)(FP8_E5M2{});
    case FormatId::NF4: return std::forward<F>(f)(NF4{});
  }
  return std::forward<F>(f)(F32{});
}

/// What a reader needs to know of a format.
struct FormatInfo {
  std::string_view name;
  std::size_t block_size;   ///< values in a block; a row is whole blocks
  std::size_t block_bytes;  ///< bytes of a block
  bool as_floats = false;   ///< see multiplied_as_floats
};

[[nodiscard]] constexpr FormatInfo format_info(FormatId id) noexcept {
  return visit_format(id, []<class F>(F) { return FormatInfo{F::name, F::block_size, block_bytes<F>, multiplied_as_floats<F>}; });
}

/// "Q4_K" gives FormatId::Q4_K; nothing for other text.
[[nodiscard]] constexpr std::optional<FormatId> format_from_name(std::string_view name) noexcept {
  for (const FormatId id : all_formats) {
    if (format_info(id).name == name) return id;
  }
  return std::nullopt;
}

/// Bytes of a row of `cols` values, a multiple of the format's block_size.
[[nodiscard]] constexpr std::size_t row_bytes(FormatId id, std::size_t cols) noexcept {
  const FormatInfo info = format_info(id);
  NIHAO_ASSERT(cols % info.block_size == 0);
  return cols / info.block_size * info.block_bytes;
}

/// The values of stored blocks. `out.size()` is a multiple of F::block_size, and `row` holds exactly the blocks of that many.
template <class F>
void dequantize_row(std::span<const std::byte> row, std::span<float> out) noexcept {
  static_cast<void>(CheckFormat<F>{});
  NIHAO_ASSERT(out.size() % F::block_size == 0 && row.size() == out.size() / F::block_size * block_bytes<F>);
  float* to = out.data();
  for (const auto& block : as_blocks<F>(row)) {
    F::dequantize(block, std::span<float, F::block_size>(to, F::block_size));
    to += F::block_size;
  }
}

/// The same for a format known at run time.
inline void dequantize_row(FormatId id, std::span<const std::byte> row, std::span<float> out) noexcept {
  visit_format(id, [&]<class F>(F) { dequantize_row<F>(row, out); });
}

}  // namespace nihao
