#include "inspect_roles.hpp"

#include <nihao/quantize/quantize_model.hpp>

#include <fmt/core.h>

#include <map>

namespace nihao::program {

namespace {

// Tensors of one role that are stored alike.
struct Group {
  std::string role;
  FormatId format;
  std::vector<std::uint32_t> layers;
  std::uint64_t weights = 0;
  std::string_view why;
};

double bits(FormatId format) {
  const FormatInfo info = format_info(format);
  return 8.0 * static_cast<double>(info.block_bytes) / static_cast<double>(info.block_size);
}

// "0-3, 7, 9-11"
std::string ranges(const std::vector<std::uint32_t>& layers) {
  std::string out;
  for (std::size_t i = 0; i < layers.size();) {
    std::size_t end = i + 1;
    while (end < layers.size() && layers[end] == layers[end - 1] + 1) ++end;
    out += fmt::format("{}{}", out.empty() ? "" : ", ", layers[i]);
    if (end - i > 1) out += fmt::format("-{}", layers[end - 1]);
    i = end;
  }
  return out;
}

// A tensor's name without its layer and suffix: "attn_v".
std::string role_name_of(std::string_view name) {
  if (name.starts_with("blk.")) name = name.substr(std::min(name.size(), name.find('.', 4) + 1));
  return one_line(name.ends_with(".weight") ? name.substr(0, name.size() - 7) : name);
}

}  // namespace

std::string mix_names() {
  std::string list;
  for (const Recipe& mix : recipes) list += concat(list.empty() ? "" : ", ", mix.name);
  return list;
}

Expected<int> inspect_roles(const Gguf& file, const std::string& mix_name, bool json) {
  NIHAO_TRY(const ModelToWrite model, tensors_of_gguf(file));
  const Recipe* mix = recipe_from_name(mix_name);
  if (mix_name.empty()) {
    NIHAO_TRY(const auto type, file.get_or<std::uint32_t>("general.file_type", UINT32_MAX));
    for (const Recipe& one : recipes)
      if (one.file_type == type && mix == nullptr) mix = &one;
  } else if (mix == nullptr) {
    throw UsageError(concat("--type ", mix_name, " is none of: ", mix_names()));
  }
  RecipeModel shape = model.shape;
  shape.importance = mix_name.empty() && file.has("quantize.imatrix.entries_count");
  std::vector<Group> groups;
  std::map<FormatId, std::uint64_t> weights;
  for (const ModelTensor& t : model.tensors) {
    if (!may_be_quantized(t.name, t.shape.size())) continue;
    const TensorRole role = role_of_gguf_name(t.name, model.architecture);
    FormatId format = t.stored();
    std::string_view why;
    if (mix != nullptr) {
      const FormatId wanted = fitting_format(mix->format(role, shape), t.cols());
      if (!mix_name.empty()) format = wanted;
      const RecipeRule* const rule = mix->rule(role, shape);
      if (rule != nullptr && format == wanted) why = rule->why;  // files may be made by other rules
    }
    const std::string name = role_name_of(t.name);
    auto at = std::find_if(groups.begin(), groups.end(),
                           [&](const Group& g) { return g.role == name && g.format == format && g.why == why; });
    if (at == groups.end()) at = groups.insert(at, {name, format, {}, 0, why});
    if (role.layer) at->layers.push_back(*role.layer);
    at->weights += t.rows() * t.cols();
    weights[format] += t.rows() * t.cols();
  }
  FormatId usual = FormatId::F32;
  for (const auto& [format, count] : weights)
    if (count > weights[usual]) usual = format;
  std::sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
    return std::tuple(a.layers.empty() ? 0 : 1, std::string_view(a.role), bits(a.format), a.why) <
           std::tuple(b.layers.empty() ? 0 : 1, std::string_view(b.role), bits(b.format), b.why);
  });
  for (Group& g : groups) std::sort(g.layers.begin(), g.layers.end());
  const auto higher = [&](const Group& g) { return bits(g.format) > bits(usual); };
  if (json) {
    Json list(Json::value_t::array);
    for (const Group& g : groups)
      list.push_back({{"role", g.role},
                      {"format", format_info(g.format).name},
                      {"layers", g.layers},
                      {"weights", g.weights},
                      {"higher", higher(g)},
                      {"why", g.why}});
    print_json(
        {{"mix", mix != nullptr ? Json(mix->name) : Json()}, {"usual", format_info(usual).name}, {"roles", std::move(list)}});
    return 0;
  }
  if (mix != nullptr) fmt::print("{}: {}\n", mix->name, mix->what);
  fmt::print("most weights are {}; + marks what is kept higher\n\n", format_info(usual).name);
  fmt::print("  {:<18} {:>7} {:>10}  layers\n", "role", "format", "weights");
  for (const Group& g : groups)
    fmt::print("{} {:<18} {:>7} {:>8.2f} M  {}{}{}\n", higher(g) ? '+' : ' ', g.role, format_info(g.format).name,
               static_cast<double>(g.weights) / 1e6, ranges(g.layers), g.why.empty() || g.layers.empty() ? "" : ": ", g.why);
  return 0;
}

}  // namespace nihao::program
