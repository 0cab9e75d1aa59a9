#include "inspect_block.hpp"

#include <nihao/format/registry.hpp>

#include <fmt/core.h>

#include <charconv>

namespace nihao::program {

namespace {

// The numbers of a block under one name.
struct Field {
  std::string name;
  std::vector<double> numbers;
  std::string means;  // in words, where the name does not say it
  std::size_t columns = 16;
};

class Fields {
 public:
  void one(const char* name, double number, const char* means = "") { all.push_back({name, {number}, means}); }
  template <class F>
  void many(const char* name, std::size_t count, const char* means, F&& number, std::size_t columns = 16) {
    Field field{name, {}, means, columns};
    for (std::size_t i = 0; i < count; ++i) field.numbers.push_back(static_cast<double>(number(i)));
    all.push_back(std::move(field));
  }
  std::vector<Field> all;
};

double number(f16 x) { return static_cast<double>(to_float(x)); }
double number(bf16 x) { return static_cast<double>(to_float(x)); }
double number(float x) { return static_cast<double>(x); }
template <std::size_t N>
auto byte_of(const std::uint8_t (&bytes)[N]) {
  return [&bytes](std::size_t i) { return bytes[i]; };
}
// Codes i and i + 16 of 32 share byte i.
template <std::size_t N>
auto half_of(const std::uint8_t (&qs)[N]) {
  return [&qs](std::size_t i) { return qs[16 * (i / 32) + i % 16] >> 4 * (i % 32 / 16) & 15; };
}
int fifth_of(const std::uint8_t (&qh)[4], std::size_t i) { return qh[i / 8] >> (i % 8) & 1; }

// One overload a format: what the fields of its block are.

template <class B>
  requires requires(const B& b) { b.value; }
void fields(const B& b, Fields& out) {
  const auto value = b.value;
  out.one("value", number(value));
}
void fields(const Q8_0::Block& b, Fields& out) {
  out.one("d", number(b.d), "scale");
  out.many("q", 32, "signed codes; value = d * q", [&](std::size_t i) { return b.q[i]; });
}
void fields(const Q8_K::Block& b, Fields& out) {
  const float d = b.d;
  out.one("d", number(d), "scale");
  out.many("q", 256, "signed codes; value = d * q", [&](std::size_t i) { return b.q[i]; });
  out.many("bsums", 16, "sums of sixteen codes", [&](std::size_t i) { return static_cast<std::int16_t>(b.bsums[i]); });
}
void fields(const Q4_0::Block& b, Fields& out) {
  out.one("d", number(b.d), "scale");
  out.many("q", 32, "four-bit codes; value = d * (q - 8)", half_of(b.qs));
}
void fields(const Q4_1::Block& b, Fields& out) {
  out.one("d", number(b.d), "scale");
  out.one("m", number(b.m), "minimum");
  out.many("q", 32, "four-bit codes; value = d * q + m", half_of(b.qs));
}
void fields(const Q5_0::Block& b, Fields& out) {
  out.one("d", number(b.d), "scale");
  out.many("q", 32, "five-bit codes; value = d * (q - 16)",
           [&](std::size_t i) { return half_of(b.qs)(i) + 16 * fifth_of(b.qh, i); });
}
void fields(const Q5_1::Block& b, Fields& out) {
  out.one("d", number(b.d), "scale");
  out.one("m", number(b.m), "minimum");
  out.many("q", 32, "five-bit codes; value = d * q + m",
           [&](std::size_t i) { return half_of(b.qs)(i) + 16 * fifth_of(b.qh, i); });
}
void fields(const Q2_K::Block& b, Fields& out) {
  out.one("d", number(b.d), "scale of the scales");
  out.one("dmin", number(b.dmin), "scale of the minima");
  out.many("scale", 16, "four bits, a group of 16", [&](std::size_t g) { return b.scales[g] & 15; });
  out.many("min", 16, "four bits, a group of 16", [&](std::size_t g) { return b.scales[g] >> 4; });
  out.many("q", 256, "two-bit codes, a line a group; value = d * scale * q - dmin * min",
           [&](std::size_t i) { return b.qs[32 * (i / 128) + i % 32] >> 2 * (i % 128 / 32) & 3; });
}
void fields(const Q3_K::Block& b, Fields& out) {
  out.one("d", number(b.d), "scale of the scales");
  out.many("scale", 16, "six bits, a group of 16", [&](std::size_t g) { return q3_k_scale(b.scales, g); });
  out.many("q", 256, "three-bit codes, a line a group; value = d * (scale - 32) * (q - 4)", [&](std::size_t i) {
    return (b.qs[32 * (i / 128) + i % 32] >> 2 * (i % 128 / 32) & 3) | (b.hmask[i % 32] >> (i / 32) & 1) << 2;
  });
}
template <class B>
void k_fields(const B& b, Fields& out) {
  out.one("d", number(b.d), "scale of the scales");
  out.one("dmin", number(b.dmin), "scale of the minima");
  out.many("scale", 8, "six bits, a group of 32", [&](std::size_t g) { return k_scale(b.scales, g).scale; });
  out.many("min", 8, "six bits, a group of 32", [&](std::size_t g) { return k_scale(b.scales, g).min; });
}
template <class B>
int k_nibble(const B& b, std::size_t i) {
  return b.qs[32 * (i / 64) + i % 32] >> 4 * (i % 64 / 32) & 15;
}
void fields(const Q4_K::Block& b, Fields& out) {
  k_fields(b, out);
  out.many(
      "q", 256, "four-bit codes, a line a group; value = d * scale * q - dmin * min",
      [&](std::size_t i) { return k_nibble(b, i); }, 32);
}
void fields(const Q5_K::Block& b, Fields& out) {
  k_fields(b, out);
  out.many(
      "q", 256, "five-bit codes, a line a group; value = d * scale * q - dmin * min",
      [&](std::size_t i) { return k_nibble(b, i) + 16 * (b.qh[i % 32] >> (i / 32) & 1); }, 32);
}
void fields(const Q6_K::Block& b, Fields& out) {
  out.one("d", number(b.d), "scale of the scales");
  out.many("scale", 16, "signed bytes, a group of 16", [&](std::size_t g) { return b.scales[g]; });
  out.many("q", 256, "six-bit codes, a line a group; value = d * scale * (q - 32)", [&](std::size_t i) {
    const std::size_t half = i / 128, quarter = i % 128 / 32;
    return (b.ql[64 * half + 32 * (quarter % 2) + i % 32] >> (quarter < 2 ? 0 : 4) & 15) |
           (b.qh[32 * half + i % 32] >> 2 * quarter & 3) << 4;
  });
}
void fields(const IQ4_NL::Block& b, Fields& out) {
  out.one("d", number(b.d), "scale");
  out.many("q", 32, "four-bit codes", half_of(b.qs));
  out.many("level", 32, "of the table; value = d * level", [&](std::size_t i) { return iq4_values[half_of(b.qs)(i)]; });
}
void fields(const IQ4_XS::Block& b, Fields& out) {
  out.one("d", number(b.d), "scale of the scales");
  out.many("scale", 8, "six bits, a group of 32",
           [&](std::size_t g) { return (b.scales_l[g / 2] >> 4 * (g % 2) & 15) | (b.scales_h[g / 4] >> 2 * (g % 4) & 3) << 4; });
  out.many(
      "level", 256, "of IQ4_NL's table, a line a group; value = d * (scale - 32) * level",
      [&](std::size_t i) { return iq4_values[half_of(b.qs)(i)]; }, 32);
}
void fields(const MXFP4::Block& b, Fields& out) {
  out.one("e", b.e, "exponent; scale = 2^(e - 127)");
  out.many("q", 32, "e2m1; value = scale * q", [&](std::size_t i) { return 0.5 * doubled_e2m1[half_of(b.qs)(i)]; });
}
void fields(const NVFP4::Block& b, Fields& out) {
  out.many("d", 4, "scales in e4m3, a group of 16", [&](std::size_t g) { return nvfp4_scale(b.d[g]); });
  out.many("q", 64, "e2m1, a line a group; value = d * q",
           [&](std::size_t i) { return 0.5 * doubled_e2m1[b.qs[8 * (i / 16) + i % 8] >> 4 * (i % 16 / 8) & 15]; });
}
void fields(const TQ1_0::Block& b, Fields& out) {
  out.one("d", number(b.d), "scale");
  out.many("q", 256, "digits to the base 3; value = d * (q - 1)", [&](std::size_t i) { return TQ1_0::code(b, i); }, 32);
}
void fields(const TQ2_0::Block& b, Fields& out) {
  out.one("d", number(b.d), "scale");
  out.many(
      "q", 256, "two-bit codes; value = d * (q - 1)",
      [&](std::size_t i) { return b.qs[32 * (i / 128) + i % 32] >> 2 * (i % 128 / 32) & 3; }, 32);
}
void fields(const Q1_0::Block& b, Fields& out) {
  out.one("d", number(b.d), "scale");
  out.many("q", 128, "bits; value = d or -d", [&](std::size_t i) { return b.qs[i / 8] >> i % 8 & 1; }, 32);
}
void fields(const Q2_0::Block& b, Fields& out) {
  out.one("d", number(b.d), "scale");
  out.many("q", 64, "two-bit codes; value = d * (q - 1)", [&](std::size_t i) { return b.qs[i / 4] >> 2 * (i % 4) & 3; }, 32);
}
// The formats of grid points: numbers of points, which of their weights are negative, and scales.
void fields(const IQ3_XXS::Block& b, Fields& out) {
  out.one("d", number(b.d), "scale of the scales");
  out.many("s", 8, "four bits, a group of 32; scale = d * (2 s + 1) / 4",
           [&](std::size_t g) { return b.signs_and_s[g][3] >> 4; });
  out.many("point", 64, "of the grid, for four weights", byte_of(b.qs));
  out.many("signs", 32, "seven bits, for eight weights",
           [&](std::size_t e) { return little_endian(b.signs_and_s[e / 4]) >> 7 * (e % 4) & 127; });
}
void fields(const IQ3_S::Block& b, Fields& out) {
  out.one("d", number(b.d), "scale of the scales");
  out.many("s", 8, "four bits, a group of 32; scale = d * (2 s + 1)",
           [&](std::size_t g) { return b.scales[g / 2] >> 4 * (g % 2) & 15; });
  out.many("point", 64, "of the grid, for four weights",
           [&](std::size_t e) { return b.qs[e] | (b.qh[e / 8] >> e % 8 & 1) << 8; });
  out.many("signs", 32, "a bit a weight", byte_of(b.signs));
}
void fields(const IQ2_XXS::Block& b, Fields& out) {
  out.one("d", number(b.d), "scale of the scales");
  out.many("s", 8, "four bits, a group of 32; scale = d * (2 s + 1) / 8", [&](std::size_t g) { return b.qs[g][7] >> 4; });
  out.many("point", 32, "of the grid, for eight weights", [&](std::size_t e) { return b.qs[e / 4][e % 4]; });
  out.many("signs", 32, "seven bits, for eight weights",
           [&](std::size_t e) { return little_endian(b.qs[e / 4] + 4) >> 7 * (e % 4) & 127; });
}
template <class B>
void iq2_scales(const B& b, Fields& out) {
  out.one("d", number(b.d), "scale of the scales");
  out.many("s", 16, "four bits, a group of 16; scale = d * (2 s + 1) / 8",
           [&](std::size_t g) { return b.scales[g / 2] >> 4 * (g % 2) & 15; });
}
void fields(const IQ2_XS::Block& b, Fields& out) {
  iq2_scales(b, out);
  const auto word = [&](std::size_t e) { return b.qs[e][0] | b.qs[e][1] << 8; };
  out.many("point", 32, "of the grid, for eight weights", [&](std::size_t e) { return word(e) & 511; });
  out.many("signs", 32, "seven bits, for eight weights", [&](std::size_t e) { return word(e) >> 9; });
}
void fields(const IQ2_S::Block& b, Fields& out) {
  iq2_scales(b, out);
  out.many("point", 32, "of the grid, for eight weights",
           [&](std::size_t e) { return b.qs[e] | (b.qh[e / 4] >> 2 * (e % 4) & 3) << 8; });
  out.many("signs", 32, "a bit a weight", byte_of(b.signs));
}
void fields(const IQ1_S::Block& b, Fields& out) {
  const auto word = [&](std::size_t g) { return b.qh[g][0] | b.qh[g][1] << 8; };
  out.one("d", number(b.d), "scale of the scales");
  out.many("s", 8, "three bits, a group of 32; scale = d * (2 s + 1)", [&](std::size_t g) { return word(g) >> 12 & 7; });
  out.many("shift", 8, "of a group's weights", [&](std::size_t g) { return word(g) & 0x8000 ? -0.125 : 0.125; });
  out.many("point", 32, "of the grid, for eight weights",
           [&](std::size_t e) { return b.qs[e] | (word(e / 4) >> 3 * (e % 4) & 7) << 8; });
}
void fields(const IQ1_M::Block& b, Fields& out) {
  const auto high = [&](std::size_t e) { return b.qh[e / 2] >> 4 * (e % 2) & 15; };
  out.one("d", number(IQ1_M::scale_of_scales(b)), "scale of the scales");
  out.many("s", 16, "three bits, a group of 16; scale = d * (2 s + 1)",
           [&](std::size_t g) { return (b.scales[g / 4][0] | b.scales[g / 4][1] << 8) >> 3 * (g % 4) & 7; });
  out.many("point", 32, "of the grid, for eight weights", [&](std::size_t e) { return b.qs[e] | (high(e) & 7) << 8; });
  out.many("shift", 32, "of eight weights", [&](std::size_t e) { return high(e) & 8 ? -0.125 : 0.125; });
}

// The formats of checkpoints, whose parts lie together in memory alone.
void fields(const INT4::Block& b, Fields& out) {
  out.one("d", number(b.d), "scale");
  out.one("z", number(b.z), "zero point");
  out.many("q", 32, "four-bit codes; value = d * (q - z)", half_of(b.qs));
}
void fields(const INT8::Block& b, Fields& out) {
  const float d = b.d;
  out.one("d", number(d), "scale");
  out.one("z", number(b.z), "zero point");
  out.many("q", 32, "signed codes; value = d * (q - z)", [&](std::size_t i) { return b.q[i]; });
}
template <class B>
  requires requires(const B& b) { to_float(b.q[0]); }
void fields(const B& b, Fields& out) {
  const float d = b.d;
  out.one("d", number(d), "scale");
  out.many("q", 32, "eight-bit floats; value = d * q", [&](std::size_t i) { return to_float(b.q[i]); }, 8);
}
void fields(const NF4::Block& b, Fields& out) {
  const float d = b.d;
  out.one("d", number(d), "scale");
  out.many("level", 32, "of the table; value = d * level", [&](std::size_t i) { return NF4::levels[half_of(b.qs)(i)]; }, 8);
}

std::string numbers_text(const std::vector<double>& numbers, std::size_t columns) {
  std::string out;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i % columns == 0) out += "\n   ";
    out += numbers[i] == static_cast<double>(static_cast<int>(numbers[i])) && columns > 8 ? fmt::format(" {:>4}", numbers[i])
                                                                                          : fmt::format(" {:>11.6g}", numbers[i]);
  }
  return out;
}

}  // namespace

std::optional<BlockPlace> parse_block_place(std::string_view text) {
  BlockPlace place;
  for (std::uint64_t* const to : {&place.block, &place.row}) {
    const std::size_t colon = text.rfind(':');
    if (colon == text.npos || colon + 1 == text.size()) return std::nullopt;
    const auto [end, problem] = std::from_chars(text.data() + colon + 1, text.data() + text.size(), *to);
    if (problem != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    text = text.substr(0, colon);
  }
  place.tensor = text;
  return text.empty() ? std::nullopt : std::optional(place);
}

Expected<int> inspect_block(const TensorFile& file, const BlockPlace& place, bool json) {
  const TensorInfo* const tensor = file.find(place.tensor);
  if (tensor == nullptr)
    return Error{ErrorCode::missing, "the file has no such tensor", concat("tensor ", one_line(place.tensor))};
  const FormatInfo info = format_info(tensor->format);
  const std::uint64_t blocks = tensor->cols() / info.block_size;
  if (place.row >= tensor->rows() || place.block >= blocks)
    return Error{ErrorCode::invalid_argument,
                 concat("there is no row ", place.row, " with a block ", place.block, ": it has ", tensor->rows(), " rows of ",
                        blocks, " blocks"),
                 concat("tensor ", one_line(place.tensor))};
  std::span<const std::byte> row;
  std::vector<std::byte> made;  // of a matrix that is put together from a method's parts
  if (tensor->parts != nullptr) {
    std::vector<std::uint8_t> working(static_cast<std::size_t>(tensor->cols()));
    made.resize(row_bytes(tensor->format, working.size()));
    tensor->parts->rows(static_cast<std::size_t>(place.row), 1, made.data(), working.data());
    row = made;
  } else {
    row = tensor->bytes.subspan(static_cast<std::size_t>(place.row * blocks * info.block_bytes),
                                static_cast<std::size_t>(blocks * info.block_bytes));
  }
  const auto bytes = row.subspan(static_cast<std::size_t>(place.block * info.block_bytes), info.block_bytes);
  Fields shown;
  std::vector<float> values(info.block_size);
  visit_format(tensor->format, [&]<class F>(F) { fields(as_blocks<F>(bytes)[0], shown); });
  dequantize_row(tensor->format, bytes, values);
  if (tensor->parts != nullptr)
    for (float& value : values) value = static_cast<float>(static_cast<double>(value) * tensor->parts->scale());
  if (json) {
    Json list(Json::value_t::object);
    for (const Field& f : shown.all) list[f.name] = f.numbers.size() == 1 ? Json(f.numbers[0]) : Json(f.numbers);
    print_json({{"tensor", json_text(place.tensor)},
                {"row", place.row},
                {"block", place.block},
                {"format", info.name},
                {"bytes", info.block_bytes},
                {"fields", std::move(list)},
                {"values", values}});
    return 0;
  }
  fmt::print("{}, row {}, block {}: {}, {} weights in {} bytes, {:.4g} bits a weight\n", one_line(place.tensor), place.row,
             place.block, info.name, info.block_size, info.block_bytes,
             8.0 * static_cast<double>(info.block_bytes) / static_cast<double>(info.block_size));
  for (const Field& f : shown.all) {
    fmt::print("{}{}{}", f.name, f.means.empty() ? "" : ": ", f.means);
    if (f.numbers.size() == 1) fmt::print("\n    {:.9g}\n", f.numbers[0]);
    else fmt::print("{}\n", numbers_text(f.numbers, f.columns));
  }
  fmt::print("values{}\n", numbers_text({values.begin(), values.end()}, 8));
  return 0;
}

}  // namespace nihao::program
