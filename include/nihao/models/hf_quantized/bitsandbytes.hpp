// bitsandbytes: NF4, whose scales may be quantized in their turn (QLoRA: Dettmers et al. 2023, arXiv:2305.14314), and LLM.int8()
// (Dettmers et al. 2022, arXiv:2208.07339).
#pragma once

#include "methods.hpp"

namespace nihao::detail {

/// The settings of one four-bit matrix, which its file has as JSON in a tensor.
struct BnbState {
  std::size_t rows, cols, block, nested_block;
  float nested_offset;
};
[[nodiscard]] inline Expected<BnbState> read_bnb_state(const SafetensorsEntry& entry) {
  const auto read = [&]() -> Expected<BnbState> {
    NIHAO_TRY(const Json json, parse_json({reinterpret_cast<const char*>(entry.bytes.data()), entry.bytes.size()}, 8));
    NIHAO_TRY(const auto shape, json_array<std::uint32_t>(json, "shape"));
    NIHAO_TRY(const auto block, json_get<std::uint32_t>(json, "blocksize"));
    NIHAO_TRY(const auto nested, json_get_or<std::uint32_t>(json, "nested_blocksize", 0));
    NIHAO_TRY(const auto offset, json_get_or<float>(json, "nested_offset", 0));
    if (shape.size() != 2 || shape[0] == 0 || shape[1] == 0 || block == 0)
      return Error{ErrorCode::unsupported, "wanted the shape of a matrix, and a size of its blocks"};
    return BnbState{shape[0], shape[1], block, nested, offset};
  };
  auto state = read();
  if (!state) return std::move(state).error().in(concat("tensor ", printable(entry.name)));
  return state;
}

/// The largest magnitude of each block. With double quantization: code * the magnitude of some blocks' + an offset.
[[nodiscard]] inline Expected<std::vector<float>> read_bnb_scales(Assembler& a, const std::string& weight,
                                                                  const BnbState& state) {
  const std::uint64_t blocks = ceil_div(std::uint64_t{state.rows} * state.cols, std::uint64_t{state.block});
  std::vector<float> scales;
  if (state.nested_block == 0) {
    NIHAO_TRY(const Part absmax, a.parts().take(weight + ".absmax", {SafetensorsType::F32}, {blocks}));
    for (std::size_t i = 0; i < blocks; ++i) scales.push_back(absmax.value(i));
    return scales;
  }
  NIHAO_TRY(const Part absmax, a.parts().take(weight + ".absmax", {SafetensorsType::U8}, {blocks}));
  NIHAO_TRY(const Part map, a.parts().take(weight + ".nested_quant_map", {SafetensorsType::F32}, {256}));
  NIHAO_TRY(const Part nested, a.parts().take(weight + ".nested_absmax", {SafetensorsType::F32},
                                              {ceil_div(blocks, std::uint64_t{state.nested_block})}));
  for (std::size_t i = 0; i < blocks; ++i) {  // in double, and rounded once
    const double scale =
        static_cast<double>(map.value(absmax.byte(i))) * static_cast<double>(nested.value(i / state.nested_block));
    scales.push_back(static_cast<float>(scale + static_cast<double>(state.nested_offset)));
  }
  return scales;
}

[[nodiscard]] inline Expected<void> assemble_bitsandbytes(Assembler& a) {
  constexpr std::string_view state_suffix = ".weight.quant_state.bitsandbytes__";
  for (const SafetensorsEntry& entry : a.parts().file().entries()) {
    const auto at = entry.name.find(state_suffix);
    if (at == std::string::npos) continue;
    const std::string base = entry.name.substr(0, at), weight = base + ".weight",
                      kind = entry.name.substr(at + state_suffix.size());
    if (kind != "nf4")
      return Error{ErrorCode::unsupported, concat("codes of ", printable(kind), ", and nf4 is what is known"),
                   concat("tensor ", printable(entry.name))};
    a.parts().drop(entry.name);
    NIHAO_TRY(const BnbState state, read_bnb_state(entry));
    NIHAO_TRY(const Part map, a.parts().take(weight + ".quant_map", {SafetensorsType::F32}, {16}));
    for (std::size_t i = 0; i < 16; ++i)
      if (map.value(i) != NF4::levels[i])
        return Error{ErrorCode::unsupported, "levels that are not NF4's", concat("tensor ", printable(weight), ".quant_map")};
    const SafetensorsEntry* const codes = a.parts().file().find(weight);
    const std::uint64_t size = ceil_div(std::uint64_t{state.rows} * state.cols, std::uint64_t{2});
    if (codes == nullptr) return Error{ErrorCode::missing, "the file has no such tensor", concat("tensor ", printable(weight))};
    if (codes->bytes.size() != size)  // of any type: bnb_4bit_quant_storage
      return Error{ErrorCode::mismatch, concat("it has ", codes->bytes.size(), " bytes, and the matrix needs ", size),
                   concat("tensor ", printable(weight))};
    a.parts().drop(weight);
    NIHAO_TRY(auto scales, read_bnb_scales(a, weight, state));
    const FlatShape shape{CodeKind::nf4, FlatPacking::pairs, state.rows, state.cols, state.block};
    NIHAO_CHECK(a.add(base, *codes, FlatMatrix::make(shape, Part{SafetensorsType::U8, codes->bytes}, std::move(scales)),
                      {state.rows, state.cols}));
  }
  // LLM.int8(): signed bytes, and SCB, the largest magnitude of each row, which 127 stands for.
  return a.each(".weight", [&](const std::string& base, const SafetensorsEntry& entry) -> Expected<void> {
    if (entry.type != SafetensorsType::I8) return {};
    const std::string layout = base + ".weight_format";
    if (a.parts().has(layout)) {
      NIHAO_TRY(const auto values, a.parts().file().values<int>(layout));
      if (values != std::vector<int>{0})
        return Error{ErrorCode::unsupported, "bytes that are not row by row", concat("tensor ", printable(layout))};
      a.parts().drop(layout);
    }
    return add_bytes(a, base, entry, base + ".SCB", "", {}, 127.0f);
  });
}

}  // namespace nihao::detail
