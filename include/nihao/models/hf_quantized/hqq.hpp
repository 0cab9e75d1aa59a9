// HQQ: Badri and Shaji 2023, "Half-Quadratic Quantization of Large Machine Learning Models"; the files of hqq, with a module's
// settings in tensors of its own.
#pragma once

#include "assembler.hpp"

namespace nihao::detail {

[[nodiscard]] inline Expected<void> assemble_hqq(Assembler& a) {
  return a.each(".W_q", [&](const std::string& base, const SafetensorsEntry& entry) -> Expected<void> {
    const auto number = [&](std::string_view part, std::string_view key) -> Expected<std::int64_t> {
      const std::string name = concat(base, ".", part);
      if (!a.parts().has(name)) return a.get<std::int64_t>(concat("quant_config.weight_quant_params.", key));
      a.parts().drop(name);
      NIHAO_TRY(const auto values, a.parts().file().values<std::int64_t>(name));
      if (values.size() != 1)
        return Error{ErrorCode::mismatch, concat("it has ", values.size(), " values, and one is wanted"),
                     concat("tensor ", printable(name))};
      return values[0];
    };
    const auto refuse = [&](std::string_view what, std::string_view part) {
      return Error{ErrorCode::unsupported, what, concat("tensor ", printable(base), ".", part)};
    };
    NIHAO_TRY(const auto bits, number("nbits", "nbits"));
    NIHAO_TRY(const auto axis, number("axis", "axis"));
    NIHAO_TRY(const auto group, number("group_size", "group_size"));
    if (bits != 4 && bits != 8) return refuse(concat("HQQ of ", bits, " bits, and 4 and 8 are what is known"), "nbits");
    if (axis != 1) return refuse("HQQ of groups across rows, and axis 1 is what is known", "axis");
    for (const std::string_view part : {"quant_scale", "quant_zero", "view_as_float"}) {
      const std::string name = concat(base, ".", part);
      if (!a.parts().has(name)) continue;
      NIHAO_TRY(const auto flag, a.parts().file().values<std::int64_t>(name));
      if (flag != std::vector<std::int64_t>{0})
        return refuse("scales or zero points that are quantized too, or packed otherwise", part);
    }
    for (const std::string_view part :
         {"shape", "channel_wise", "compute_dtype", "encoded_state_dict", "offload_meta", "optimize", "packing", "quant_scale",
          "quant_zero", "round_zero", "stores_quant_config", "unpack_view_dtype", "view_as_float"})
      a.parts().drop(concat(base, ".", part));
    NIHAO_TRY(const auto shape, a.parts().file().values<std::uint64_t>(base + ".shape"));
    const std::string place = concat("tensor ", printable(entry.name));
    const auto size = shape.size() == 2 ? checked_mul<std::uint64_t>(shape[0], shape[1]) : std::nullopt;
    if (!size || *size == 0 || *size > entry.elements() * 2 || group <= 0 || *size % static_cast<std::uint64_t>(group) != 0)
      return Error{ErrorCode::mismatch, concat("groups of ", group, " do not make up the matrix"),
                   concat("tensor ", printable(base), ".shape")};
    const std::uint64_t groups = *size / static_cast<std::uint64_t>(group), per_byte = bits == 4 ? 2 : 1;
    if (groups % per_byte != 0) return Error{ErrorCode::unsupported, concat(groups, " groups, an odd number"), place};
    NIHAO_TRY(const Part codes,
              a.parts().take(entry.name, {SafetensorsType::U8}, {groups / per_byte, static_cast<std::uint64_t>(group)}));
    NIHAO_TRY(const Part scales, a.parts().take(base + ".scale", float_types, {groups, 1}));
    NIHAO_TRY(const Part zeros, a.parts().take(base + ".zero", float_types, {groups, 1}));
    const FlatShape flat{bits == 4 ? CodeKind::four_bits : CodeKind::eight_bits,
                         bits == 4 ? FlatPacking::halves : FlatPacking::bytes, static_cast<std::size_t>(shape[0]),
                         static_cast<std::size_t>(shape[1]), static_cast<std::size_t>(group)};
    return a.add(base, entry, FlatMatrix::make(flat, codes, scales, zeros), {shape[0], shape[1]});
  });
}

}  // namespace nihao::detail
