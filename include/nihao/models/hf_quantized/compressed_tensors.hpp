// compressed-tensors, the files of llm-compressor: packed integers, signed bytes, FP8 and four-bit floats, told apart by their
// tensors. https://github.com/vllm-project/compressed-tensors
#pragma once

#include "methods.hpp"

namespace nihao::detail {

/// What a group of the configuration says of its modules' weights.
struct CompressedScheme {
  int bits;
  std::string_view type;   ///< "int" or "float"
  std::size_t group_size;  ///< columns; 0: all
  ScaleGrid blocks;
};

[[nodiscard]] inline Expected<std::vector<CompressedScheme>> read_compressed_schemes(const Assembler& a) {
  std::vector<CompressedScheme> schemes;
  const Json* const groups = json_find(a.config(), "config_groups");
  const auto* const members = groups == nullptr ? nullptr : groups->get_ptr<const Json::object_t*>();
  if (members == nullptr) return Error{ErrorCode::missing, "an object is wanted", "quantization_config.config_groups"};
  for (const auto& [name, group] : *members) {
    const std::string weights = concat("config_groups.", name, ".weights.");
    if (const Json* w = json_find(group, "weights"); w == nullptr || w->is_null()) continue;
    CompressedScheme s{};
    NIHAO_TRY(s.bits, a.at(json_get<int>(group, "weights.num_bits")));
    NIHAO_TRY(s.type, a.at(json_get_or<std::string_view>(group, "weights.type", "int")));
    NIHAO_TRY(const auto strategy, a.at(json_get_or<std::string_view>(group, "weights.strategy", "")));
    NIHAO_TRY(const auto size, a.at(json_get_or<std::int64_t>(group, "weights.group_size", 0)));
    if (size > 0) s.group_size = static_cast<std::size_t>(size);
    if (strategy == "group") s.blocks = {1, s.group_size};
    if (strategy == "block") {
      NIHAO_TRY(const auto sizes, a.at(json_array<std::uint32_t>(group, "weights.block_structure")));
      if (sizes.size() != 2 || sizes[0] == 0 || sizes[1] == 0)
        return a.unsupported("wanted two numbers, rows and columns", weights + "block_structure");
      s.blocks = {sizes[0], sizes[1]};
    }
    schemes.push_back(s);
  }
  return schemes;
}

// weight_packed [rows, cols / n] and weight_shape.
[[nodiscard]] inline Expected<void> add_packed_rows(Assembler& a, const std::string& base, const SafetensorsEntry& entry,
                                                    const std::vector<CompressedScheme>& schemes) {
  const std::string place = concat("tensor ", printable(entry.name));
  NIHAO_TRY(const auto packed, a.matrix_shape(entry));
  NIHAO_TRY(const auto shape, a.parts().file().values<std::uint64_t>(base + ".weight_shape"));
  a.parts().drop(base + ".weight_shape");
  if (shape.size() != 2 || shape[0] != packed.first || shape[1] == 0 || ceil_div(shape[1], std::uint64_t{8}) > packed.second)
    return Error{ErrorCode::mismatch,
                 concat("its shape is ", shape_text(entry.shape), ", and weight_shape says ", shape_text(shape)), place};
  const auto rows = static_cast<std::size_t>(shape[0]), cols = static_cast<std::size_t>(shape[1]);
  const auto fits = [&](const CompressedScheme& s) {
    return s.type == "int" && (s.bits == 4 || s.bits == 8) &&
           ceil_div(cols, static_cast<std::size_t>(32 / s.bits)) == packed.second;
  };
  const auto scheme = std::find_if(schemes.begin(), schemes.end(), fits);
  if (scheme == schemes.end())
    return Error{ErrorCode::unsupported, "no group of the configuration packs integers of 4 or 8 bits so", place};
  NIHAO_TRY(const Part codes, a.parts().take(entry.name, {SafetensorsType::I32}, entry.shape));
  const std::string zeros = base + ".weight_zero_point", index = base + ".weight_g_idx";
  const bool has_zeros = a.parts().has(zeros);
  // Stored codes are signed ones plus half their range, and so are zero points.
  const PackedShape matrix_shape{Packing::rows,
                                 static_cast<unsigned>(scheme->bits),
                                 rows,
                                 cols,
                                 scheme->group_size == 0 ? cols : scheme->group_size,
                                 has_zeros ? 0.0f : static_cast<float>(1 << (scheme->bits - 1)),
                                 base + ".weight_scale",
                                 has_zeros ? zeros : "",
                                 a.parts().has(index) ? index : ""};
  NIHAO_TRY(auto matrix, PackedMatrix::make(a.parts(), matrix_shape, codes));
  return a.add(base, entry, std::move(matrix), {rows, cols});
}

[[nodiscard]] inline Expected<void> assemble_compressed(Assembler& a) {
  NIHAO_TRY(const auto sparsity, a.get_or<std::string_view>("sparsity_config.format", "dense"));
  if (sparsity != "dense") return a.unsupported(concat("sparse weights (", printable(sparsity), ")"), "sparsity_config.format");
  if (const Json* t = json_find(a.config(), "transform_config"); t != nullptr && !t->empty())
    return a.unsupported("weights to be multiplied with a rotation", "transform_config");
  NIHAO_TRY(const auto schemes, read_compressed_schemes(a));
  const auto scheme_of = [&](std::string_view type) {
    for (const CompressedScheme& s : schemes)
      if (s.bits == 8 && s.type == type) return s.blocks;
    return ScaleGrid{};
  };
  NIHAO_CHECK(a.each(".weight_packed", [&](const std::string& base, const SafetensorsEntry& entry) -> Expected<void> {
    if (entry.type != SafetensorsType::U8) return add_packed_rows(a, base, entry, schemes);
    for (const std::string_view part : {".input_global_scale", ".input_scale"}) a.parts().drop(concat(base, part));
    NIHAO_TRY(const double scale,
              one_scale(a, base + ".weight_global_scale"));  // of the scales, before they were rounded to e4m3
    return add_nvfp4(a, base, entry, 1 / scale);
  }));
  return a.each(".weight", [&](const std::string& base, const SafetensorsEntry& entry) -> Expected<void> {
    if (!is_fp8(entry) && entry.type != SafetensorsType::I8) return {};
    for (const std::string_view part : {".input_scale", ".input_zero_point"}) a.parts().drop(concat(base, part));
    const std::string zeros = base + ".weight_zero_point";
    const bool has_zeros = !is_fp8(entry) && a.parts().has(zeros);
    return add_bytes(a, base, entry, base + ".weight_scale", has_zeros ? zeros : "", scheme_of(is_fp8(entry) ? "float" : "int"));
  });
}

}  // namespace nihao::detail
