// The tensor types of GGUF files: the numbers, names and block sizes that ggml gives them (ggml.h, ggml-common.h), of those that
// the library computes with and of those that it can only list.
#pragma once

#include "../format/registry.hpp"

#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

namespace nihao {

/// A tensor type's number in GGUF files; UINT32_MAX: they have no such tensors.
[[nodiscard]] constexpr std::uint32_t ggml_type_of(FormatId format) noexcept {
  switch (format) {
    case FormatId::F32: return 0;
    case FormatId::F16: return 1;
    case FormatId::Q4_0: return 2;
    case FormatId::Q4_1: return 3;
    case FormatId::Q5_0: return 6;
    case FormatId::Q5_1: return 7;
    case FormatId::Q8_0: return 8;
    case FormatId::Q2_K: return 10;
    case FormatId::Q3_K: return 11;
    case FormatId::Q4_K: return 12;
    case FormatId::Q5_K: return 13;
    case FormatId::Q6_K: return 14;
    case FormatId::Q8_K: return 15;
    case FormatId::IQ2_XXS: return 16;
    case FormatId::IQ2_XS: return 17;
    case FormatId::IQ3_XXS: return 18;
    case FormatId::IQ1_S: return 19;
    case FormatId::IQ4_NL: return 20;
    case FormatId::IQ3_S: return 21;
    case FormatId::IQ2_S: return 22;
    case FormatId::IQ4_XS: return 23;
    case FormatId::IQ1_M: return 29;
    case FormatId::BF16: return 30;
    case FormatId::TQ1_0: return 34;
    case FormatId::TQ2_0: return 35;
    case FormatId::MXFP4: return 39;
    case FormatId::NVFP4: return 40;
    case FormatId::Q1_0: return 41;
    case FormatId::Q2_0: return 42;
    default: return UINT32_MAX;  // formats of other files
  }
  return UINT32_MAX;
}

/// The format of a tensor type, or nothing where the library does not compute with it.
[[nodiscard]] constexpr std::optional<FormatId> format_of_ggml_type(std::uint32_t type) noexcept {
  if (type == UINT32_MAX) return std::nullopt;
  for (const FormatId format : all_formats)
    if (ggml_type_of(format) == type) return format;
  return std::nullopt;
}

/// What ggml says of a tensor type: its name and its blocks, of which a row is a whole number. A type that ggml no longer has
/// keeps its name, and has blocks of 0 bytes.
[[nodiscard]] constexpr std::optional<FormatInfo> ggml_type_info(std::uint32_t type) noexcept {
  constexpr FormatInfo types[] = {{"F32", 1, 4},
                                  {"F16", 1, 2},
                                  {"Q4_0", 32, 18},
                                  {"Q4_1", 32, 20},
                                  {"Q4_2 (removed from ggml)", 1, 0},
                                  {"Q4_3 (removed from ggml)", 1, 0},
                                  {"Q5_0", 32, 22},
                                  {"Q5_1", 32, 24},
                                  {"Q8_0", 32, 34},
                                  {"Q8_1", 32, 36},
                                  {"Q2_K", 256, 84},
                                  {"Q3_K", 256, 110},
                                  {"Q4_K", 256, 144},
                                  {"Q5_K", 256, 176},
                                  {"Q6_K", 256, 210},
                                  {"Q8_K", 256, 292},
                                  {"IQ2_XXS", 256, 66},
                                  {"IQ2_XS", 256, 74},
                                  {"IQ3_XXS", 256, 98},
                                  {"IQ1_S", 256, 50},
                                  {"IQ4_NL", 32, 18},
                                  {"IQ3_S", 256, 110},
                                  {"IQ2_S", 256, 82},
                                  {"IQ4_XS", 256, 136},
                                  {"I8", 1, 1},
                                  {"I16", 1, 2},
                                  {"I32", 1, 4},
                                  {"I64", 1, 8},
                                  {"F64", 1, 8},
                                  {"IQ1_M", 256, 56},
                                  {"BF16", 1, 2},
                                  {"Q4_0_4_4 (removed from ggml)", 1, 0},
                                  {"Q4_0_4_8 (removed from ggml)", 1, 0},
                                  {"Q4_0_8_8 (removed from ggml)", 1, 0},
                                  {"TQ1_0", 256, 54},
                                  {"TQ2_0", 256, 66},
                                  {"IQ4_NL_4_4 (removed from ggml)", 1, 0},
                                  {"IQ4_NL_4_8 (removed from ggml)", 1, 0},
                                  {"IQ4_NL_8_8 (removed from ggml)", 1, 0},
                                  {"MXFP4", 32, 17},
                                  {"NVFP4", 64, 36},
                                  {"Q1_0", 128, 18},
                                  {"Q2_0", 64, 18}};
  if (type >= std::size(types)) return std::nullopt;
  return types[type];
}

}  // namespace nihao
