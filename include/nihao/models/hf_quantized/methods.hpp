// Methods of quantization, each with the names, the shapes and the keys of its checkpoints.
#pragma once

#include "assembler.hpp"

namespace nihao::detail {

// --- AWQ: Lin et al. 2023, arXiv:2306.00978; the files of AutoAWQ ------------------------------------------------------------

// Columns of a group; -1 stands for all.
[[nodiscard]] inline Expected<std::size_t> group_size(const Assembler& a, std::size_t cols, std::string_view key = "group_size") {
  NIHAO_TRY(const auto size, a.get<std::int64_t>(key));
  if (size != -1 && size <= 0) return Error{ErrorCode::malformed, concat("it is ", size), concat("quantization_config.", key)};
  return size == -1 ? cols : static_cast<std::size_t>(size);
}

[[nodiscard]] inline Expected<void> assemble_awq(Assembler& a) {
  NIHAO_TRY(const auto bits, a.get<int>("bits"));
  if (bits != 4) return a.unsupported(concat("AWQ has 4 bits, not ", bits), "bits");
  NIHAO_TRY(const auto version, a.get_or<std::string_view>("version", "gemm"));
  if (version != "gemm" && version != "GEMM")
    return a.unsupported(concat("codes packed as \"", printable(version), "\", and gemm is what is known"), "version");
  NIHAO_TRY(const auto zero_point, a.get_or<bool>("zero_point", true));
  if (!zero_point) return a.unsupported("AWQ without zero points", "zero_point");
  return a.each(".qweight", [&](const std::string& base, const SafetensorsEntry& entry) -> Expected<void> {
    NIHAO_TRY(const auto shape, a.matrix_shape(entry));
    const std::size_t cols = shape.first, rows = 8 * shape.second;
    NIHAO_TRY(const Part codes, a.parts().take(entry.name, {SafetensorsType::I32}, entry.shape));
    NIHAO_TRY(const std::size_t group, group_size(a, cols));
    NIHAO_TRY(
        auto matrix,
        PackedMatrix::make(a.parts(), {Packing::awq, 4, rows, cols, group, 0, base + ".scales", base + ".qzeros", ""}, codes));
    return a.add(base, entry, std::move(matrix), {rows, cols});
  });
}

// --- GPTQ: Frantar et al. 2022, arXiv:2210.17323; the files of AutoGPTQ and GPTQModel
// ---------------------------------------------

[[nodiscard]] inline Expected<void> assemble_gptq(Assembler& a) {
  NIHAO_TRY(const auto bits, a.get<int>("bits"));
  if (bits != 4 && bits != 8) return a.unsupported(concat("GPTQ of ", bits, " bits, and 4 and 8 are what is known"), "bits");
  NIHAO_TRY(const auto layout, a.get_or<std::string_view>("checkpoint_format", "gptq"));
  if (layout != "gptq" && layout != "gptq_v2")
    return a.unsupported(concat("codes packed as \"", printable(layout), "\", and gptq and gptq_v2 are what is known"),
                         "checkpoint_format");
  NIHAO_TRY(const auto marlin, a.get_or<bool>("is_marlin_format", false));
  if (marlin) return a.unsupported("codes packed for Marlin", "is_marlin_format");
  if (const Json* dynamic = json_find(a.config(), "dynamic"); dynamic != nullptr && !dynamic->empty())
    return a.unsupported("settings that differ from module to module", "dynamic");
  const float added = layout == "gptq" ? 1.0f : 0.0f;  // the first files have zero points less one
  const auto n = static_cast<std::size_t>(32 / bits);
  return a.each(".qweight", [&](const std::string& base, const SafetensorsEntry& entry) -> Expected<void> {
    NIHAO_TRY(const auto shape, a.matrix_shape(entry));
    const std::size_t cols = n * shape.first, rows = shape.second;
    NIHAO_TRY(const Part codes, a.parts().take(entry.name, {SafetensorsType::I32}, entry.shape));
    NIHAO_TRY(const std::size_t group, group_size(a, cols));
    const std::string index = a.parts().has(base + ".g_idx") ? base + ".g_idx" : "";
    NIHAO_TRY(auto matrix, PackedMatrix::make(a.parts(),
                                              {Packing::gptq, static_cast<unsigned>(bits), rows, cols, group, added,
                                               base + ".scales", base + ".qzeros", index},
                                              codes));
    return a.add(base, entry, std::move(matrix), {rows, cols});
  });
}

// --- FP8: with a scale for all, for each row, or for blocks (DeepSeek-V3: arXiv:2412.19437, section 3.3)
// ---------------------------

// A matrix of bytes under its own name.
[[nodiscard]] inline Expected<void> add_bytes(Assembler& a, const std::string& base, const SafetensorsEntry& entry,
                                              const std::string& scales, const std::string& zeros, const ScaleGrid& grid,
                                              float divisor = 1) {
  NIHAO_TRY(const auto shape, a.matrix_shape(entry));
  NIHAO_TRY(const Part codes, a.parts().take(entry.name, {entry.type}, entry.shape));
  NIHAO_TRY(auto matrix, ByteMatrix::make(a.parts(), codes, shape.first, shape.second, scales, zeros, grid, divisor));
  return a.add(base, entry, std::move(matrix), {shape.first, shape.second});
}
[[nodiscard]] inline bool is_fp8(const SafetensorsEntry& entry) noexcept {
  return entry.type == SafetensorsType::F8_E4M3 || entry.type == SafetensorsType::F8_E5M2;
}

[[nodiscard]] inline Expected<void> assemble_fp8(Assembler& a) {
  NIHAO_TRY(const auto fmt, a.get_or<std::string_view>("fmt", "e4m3"));
  if (fmt != "e4m3" && fmt != "e5m2") return a.unsupported(concat("\"", printable(fmt), "\" is neither e4m3 nor e5m2"), "fmt");
  ScaleGrid grid;
  if (const Json* size = json_find(a.config(), "weight_block_size"); size != nullptr && !size->is_null()) {
    NIHAO_TRY(const auto sizes, a.at(json_array<std::uint32_t>(a.config(), "weight_block_size")));
    if (sizes.size() != 2 || sizes[0] == 0 || sizes[1] == 0)
      return Error{ErrorCode::malformed, "wanted two numbers, rows and columns", "quantization_config.weight_block_size"};
    grid = {sizes[0], sizes[1]};
  }
  return a.each(".weight", [&](const std::string& base, const SafetensorsEntry& entry) -> Expected<void> {
    if (!is_fp8(entry)) return {};
    for (const std::string_view input : {".input_scale", ".activation_scale", ".input_scale_ub"})
      a.parts().drop(base + std::string(input));
    const std::string inverse = base + ".weight_scale_inv";  // by its name; it multiplies all the same
    return add_bytes(a, base, entry, a.parts().has(inverse) ? inverse : base + ".weight_scale", "", grid);
  });
}

// --- NVFP4 -------------------------------------------------------------------------------------------------------------------

// Codes [rows, cols / 2], a scale for sixteen columns, and `scale` for all of them.
[[nodiscard]] inline Expected<void> add_nvfp4(Assembler& a, const std::string& base, const SafetensorsEntry& entry,
                                              double scale) {
  NIHAO_TRY(const auto shape, a.matrix_shape(entry));
  const std::size_t rows = shape.first, cols = 2 * shape.second;
  NIHAO_TRY(const Part codes, a.parts().take(entry.name, {SafetensorsType::U8}, entry.shape));
  NIHAO_TRY(const Part scales,
            a.parts().take(base + ".weight_scale", {SafetensorsType::F8_E4M3}, {rows, ceil_div<std::size_t>(cols, 16)}));
  if (cols % 16 != 0)
    return Error{ErrorCode::mismatch, concat(cols, " columns, not a multiple of 16"), concat("tensor ", printable(entry.name))};
  NIHAO_TRY(auto matrix, Float4Matrix::make(CodeKind::nv_e2m1, rows, cols, codes, scales, base + ".weight_scale", scale));
  return a.add(base, entry, std::move(matrix), {rows, cols});
}
// A part that is one float. Errors: missing, mismatch, malformed (0, or no number).
[[nodiscard]] inline Expected<double> one_scale(Assembler& a, const std::string& name) {
  NIHAO_TRY(const auto shape, a.parts().shape(name));
  for (const std::uint64_t axis : shape)
    if (axis != 1)
      return Error{ErrorCode::mismatch, concat("its shape is ", shape_text(shape), ", and one value is wanted"),
                   concat("tensor ", printable(name))};
  NIHAO_TRY(const Part part, a.parts().take(name, {SafetensorsType::F32}, shape));
  const float value = part.value(0);
  if (!(std::fabs(value) > 0) || !std::isfinite(value))
    return Error{ErrorCode::malformed, concat("it is ", value == 0 ? "0" : "not a number"), concat("tensor ", printable(name))};
  return static_cast<double>(value);
}

[[nodiscard]] inline Expected<void> assemble_modelopt(Assembler& a) {
  NIHAO_TRY(const auto algorithm, a.get<std::string_view>("quant_algo"));
  if (algorithm == "FP8") return assemble_fp8(a);
  if (algorithm != "NVFP4") return a.unsupported(concat("\"", printable(algorithm), "\" is neither FP8 nor NVFP4"), "quant_algo");
  NIHAO_TRY(const auto group, a.get_or<int>("group_size", 16));
  if (group != 16) return a.unsupported(concat("NVFP4 has a scale for 16 columns, not for ", group), "group_size");
  return a.each(".weight", [&](const std::string& base, const SafetensorsEntry& entry) -> Expected<void> {
    if (entry.type != SafetensorsType::U8) return {};
    a.parts().drop(base + ".input_scale");
    NIHAO_TRY(const double scale, one_scale(a, base + ".weight_scale_2"));
    return add_nvfp4(a, base, entry, scale);
  });
}

// --- MXFP4: the experts of gpt-oss -------------------------------------------------------------------------------------------

[[nodiscard]] inline Expected<void> assemble_mxfp4(Assembler& a) {
  return a.each("_blocks", [&](const std::string& base, const SafetensorsEntry& entry) -> Expected<void> {
    const bool both = base.ends_with(".gate_up_proj");
    if (!both && !base.ends_with(".down_proj"))
      return Error{ErrorCode::unsupported, "blocks of neither gate_up_proj nor down_proj",
                   concat("tensor ", printable(entry.name))};
    if (entry.shape.size() != 4 || entry.shape[3] != 16 || entry.elements() == 0 || (both && entry.shape[1] % 2 != 0))
      return Error{ErrorCode::mismatch,
                   concat("its shape is ", shape_text(entry.shape), ", and [experts, rows, columns / 32, 16] is wanted"),
                   concat("tensor ", printable(entry.name))};
    const auto experts = static_cast<std::size_t>(entry.shape[0]), rows = static_cast<std::size_t>(entry.shape[1]),
               cols = 32 * static_cast<std::size_t>(entry.shape[2]);
    NIHAO_TRY(const Part codes, a.parts().take(entry.name, {SafetensorsType::U8}, entry.shape));
    NIHAO_TRY(const Part scales, a.parts().take(base + "_scales", {SafetensorsType::U8}, {experts, rows, cols / 32}));
    // Rows of gate and up alternate in the file; here an expert's gate comes first.
    NIHAO_TRY(auto matrix,
              Float4Matrix::make(CodeKind::mx_e2m1, experts * rows, cols, codes, scales, base + "_scales", 1, both ? rows : 0));
    return a.add(base, entry, std::move(matrix), {experts, rows, cols});
  });
}

}  // namespace nihao::detail
