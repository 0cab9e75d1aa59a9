// From the tensors of a file to the weights of layers: each taken by its role, its shape checked, and none left over.
#pragma once

#include "../base/arena.hpp"
#include "../base/hooks.hpp"
#include "../files/tensor_file.hpp"
#include "../format/registry.hpp"
#include "../kernels/experts.hpp"
#include "../layers/config.hpp"
#include "../layers/linear.hpp"
#include "../layers/names.hpp"
#include "../layers/norm.hpp"

#include <memory>
#include <vector>

namespace nihao {

/// Where a LoRA adapter's tensors come from. What is added is scaled by alpha / rank, or by alpha / sqrt(rank).
struct AdapterSource {
  std::shared_ptr<const TensorFile> tensors;
  NameStyle style = NameStyle::gguf;
  double alpha = 0;
  bool rank_stabilised = false;
};

/// Where a model's tensors come from.
struct WeightSource {
  std::shared_ptr<const TensorFile> tensors;
  NameStyle style;
  float norm_offset = 0;                     ///< added to norm weights: Hugging Face's Gemma stores their distance from 1
  std::vector<AdapterSource> adapters = {};  ///< LoRA
};

/// A [rows, cols] weight from values that no file has so, in memory of the model's own. `format` is one of floats. Errors:
/// out_of_memory.
template <class D>
[[nodiscard]] Expected<typename Ops<D>::Weight> make_weight(const D& device, Arena& arena, FormatId format,
                                                            std::span<const float> values, std::size_t rows, std::size_t cols) {
  const std::size_t size = rows * row_bytes(format, cols);
  std::vector<std::byte> passing;
  std::byte* to = nullptr;
  if (device.exact()) {  // which multiplies with what is stored
    NIHAO_TRY(to, arena.allocate(size));
  } else {
    passing.resize(size);
    to = passing.data();
  }
  visit_format(format, [&]<class F>(F) {
    if constexpr (F::block_size == 1)
      for (std::size_t i = 0; i < values.size(); ++i) {
        const typename F::Block block{round_to<decltype(typename F::Block{}.value)>(values[i])};
        std::memcpy(to + i * sizeof block, &block, sizeof block);
      }
  });
  NIHAO_TRY(typename Ops<D>::Weight weight,
            Ops<D>::prepare(device, format, static_cast<std::uint32_t>(rows), static_cast<std::uint32_t>(cols),
                            std::span<const std::byte>(to, size), arena, false));
  if (!passing.empty()) weight.forget_stored();
  return weight;
}

/// All values of a tensor, in the order of its columns.
[[nodiscard]] inline std::vector<float> tensor_values(const TensorInfo& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
  if (tensor.parts == nullptr) {
    dequantize_row(tensor.format, tensor.bytes, values);
    return values;
  }
  const auto cols = static_cast<std::size_t>(tensor.cols());
  const std::uint32_t* const order = tensor.parts->order();
  std::vector<std::byte> blocks(row_bytes(tensor.format, cols));
  std::vector<std::uint8_t> working(cols);
  std::vector<float> stored(cols);
  for (std::size_t r = 0; r < values.size() / cols; ++r) {
    tensor.parts->rows(r, 1, blocks.data(), working.data());
    dequantize_row(tensor.format, blocks, stored);
    for (std::size_t i = 0; i < cols; ++i)
      values[r * cols + (order == nullptr ? i : order[i])] =
          static_cast<float>(static_cast<double>(stored[i]) * tensor.parts->scale());
  }
  return values;
}

/// Where a linear layer's weight came from: rows [first, first + count) of a tensor of [rows, cols].
struct LinearName {
  std::string tensor;
  std::size_t rows, first, count, cols;
};

/// Takes weights from a source for device D, packing each for the device and giving the file's pages back as it goes.
template <class D>
class Loader {
 public:
  using Weight = typename Ops<D>::Weight;

  /// `admits` says which formats the model's type takes; `by_role`, whether the role matters.
  Loader(const WeightSource& source, const D& device, Arena& arena, const Hooks& hooks, std::string_view architecture,
         bool (*admits)(Role, FormatId), bool by_role)
      : source_(source),
        device_(device),
        arena_(arena),
        hooks_(hooks),
        naming_{source.style, architecture},
        admits_(admits),
        by_role_(by_role),
        used_(source.tensors->tensors().size(), false) {
    for (const TensorInfo& t : source.tensors->tensors()) total_ += t.bytes.size();
  }

  /// Whether the file has that weight.
  [[nodiscard]] bool has(Role role, std::size_t layer = 0) const { return lookup(role, layer) != nullptr; }

  /// A [rows, cols] matrix, and its bias if there is to be one. Errors: missing, mismatch, unsupported, cancelled.
  [[nodiscard]] Expected<Linear<D>> linear(Role role, std::size_t layer, std::size_t rows, std::size_t cols, bool bias) {
    return rows_of(role, layer, rows, 0, rows, cols, bias);
  }

  /// Rows [first, first + count) of a [rows, cols] matrix.
  [[nodiscard]] Expected<Linear<D>> rows_of(Role role, std::size_t layer, std::size_t rows, std::size_t first, std::size_t count,
                                            std::size_t cols, bool bias) {
    NIHAO_TRY(const TensorInfo* const tensor, matrix(role, layer, rows, cols));
    Linear<D> result;
    NIHAO_TRY(result.weight, prepare(*tensor, first, count, cols));
    result.id = static_cast<std::uint32_t>(linears_.size());
    linears_.push_back({std::string(tensor->name), rows, first, count, cols});
    if (bias) {
      NIHAO_TRY(const std::vector<float> all, values_of(name(role, layer) + ".bias", rows, 0));
      result.bias.assign(all.begin() + static_cast<std::ptrdiff_t>(first),
                         all.begin() + static_cast<std::ptrdiff_t>(first + count));
    }
    return result;
  }

  /// A table whose rows are looked up, not multiplied: kept as stored.
  [[nodiscard]] Expected<Linear<D>> table(Role role, std::size_t rows, std::size_t cols) {
    NIHAO_TRY(const TensorInfo* const tensor, matrix(role, 0, rows, cols));
    if (tensor->parts != nullptr)
      return Error{ErrorCode::unsupported, "a table of parts, of which rows are looked up", concat("tensor ", tensor->name)};
    return Linear<D>{
        Ops<D>::table(tensor->format, static_cast<std::uint32_t>(rows), static_cast<std::uint32_t>(cols), tensor->bytes)};
  }

  /// A norm over d_model.
  [[nodiscard]] Expected<NormWeights> norm(Role role, std::size_t layer, const Config& config) {
    NormWeights w;
    NIHAO_TRY(w.weight, floats(role, layer, config.d_model));
    if (config.norm_bias) { NIHAO_TRY(w.bias, values_of(name(role, layer) + ".bias", config.d_model, 0)); }
    return w;
  }

  /// n floats: the weights of a norm within a layer, sinks, the bias of a choice.
  [[nodiscard]] Expected<std::vector<float>> floats(Role role, std::size_t layer, std::size_t n) {
    const bool is_norm =
        role != Role::sinks && role != Role::router_choice_bias && role != Role::q_a_norm && role != Role::kv_a_norm;
    if (const TensorInfo* tensor = lookup(role, layer))
      return values_of(std::string(tensor->name), n, is_norm ? source_.norm_offset : 0);
    return missing(name(role, layer) + ".weight");
  }

  /// A matrix, or a stack of them, as floats, for who makes another of it. Axes of 0 are not there.
  [[nodiscard]] Expected<std::vector<float>> tensor_floats(Role role, std::size_t layer, std::array<std::uint64_t, 3> shape) {
    NIHAO_TRY(const TensorInfo* const tensor, shaped(role, name(role, layer) + ".weight", shape));
    return tensor_values(*tensor);
  }

  /// A [rows, cols] weight of the values of `role`'s tensor in another order. Nothing is lost if those are floats; else they are
  /// rounded to f16, or to f32 on an exact device.
  [[nodiscard]] Expected<Weight> moved(Role role, std::size_t layer, std::span<const float> values, std::size_t rows,
                                       std::size_t cols) {
    return make_as(kept(lookup(role, layer)->format), values, rows, cols);
  }
  /// A [rows, cols] weight of what was computed from `role`'s values: in f16, or in f32 if they are, or on an exact device.
  [[nodiscard]] Expected<Weight> computed(Role role, std::size_t layer, std::span<const float> values, std::size_t rows,
                                          std::size_t cols) {
    return make_as(rounded(lookup(role, layer)->format == FormatId::F32), values, rows, cols);
  }

  /// All experts of a layer. Files have them one by one, or stacked in one tensor for all, or (some Hugging Face checkpoints)
  /// stacked and transposed, with gate and up in one. `biases` is what the experts' biases point into.
  [[nodiscard]] Expected<void> experts(std::size_t layer, const Config& c, std::vector<Expert<Weight>>& experts,
                                       std::vector<float>& biases) {
    const std::size_t n = c.router.experts, d = c.d_model, ff = c.expert_ff;
    experts.resize(n);
    if (name(Role::expert_gate_up, layer).empty() && name(Role::expert_gate, layer).find('#') != std::string::npos) {
      for (std::size_t e = 0; e < n; ++e) {
        NIHAO_TRY(experts[e].gate, one_expert(Role::expert_gate, layer, e, ff, d));
        NIHAO_TRY(experts[e].up, one_expert(Role::expert_up, layer, e, ff, d));
        NIHAO_TRY(experts[e].down, one_expert(Role::expert_down, layer, e, d, ff));
      }
      return {};
    }
    // Of a stack that is called a weight the rows are outputs, as GGUF has them.
    const bool stacked = source_.tensors->find(name(Role::expert_gate_up, layer) + ".weight") != nullptr;
    if (source_.style == NameStyle::hugging_face && !stacked) return stacked_columns(layer, c, experts, biases);
    const bool both = has(Role::expert_gate_up, layer);
    const TensorInfo *gate = nullptr, *up = nullptr;
    if (both) {
      NIHAO_TRY(gate, stack(Role::expert_gate_up, layer, n, 2 * ff, d));
    } else {
      NIHAO_TRY(gate, stack(Role::expert_gate, layer, n, ff, d));
      NIHAO_TRY(up, stack(Role::expert_up, layer, n, ff, d));
    }
    NIHAO_TRY(const TensorInfo* const down, stack(Role::expert_down, layer, n, d, ff));
    for (std::size_t e = 0; e < n; ++e) {
      NIHAO_TRY(experts[e].gate, prepare(*gate, e * (both ? 2 * ff : ff), ff, d));
      NIHAO_TRY(experts[e].up, both ? prepare(*gate, e * 2 * ff + ff, ff, d) : prepare(*up, e * ff, ff, d));
      NIHAO_TRY(experts[e].down, prepare(*down, e * d, d, ff));
    }
    if (!c.ffn_bias) return {};
    if (stacked && source_.style == NameStyle::hugging_face) return stacked_biases(layer, c, experts, biases);
    NIHAO_TRY(const auto gate_bias, values_of(name(Role::expert_gate, layer) + ".bias", n * ff, 0));
    NIHAO_TRY(const auto up_bias, values_of(name(Role::expert_up, layer) + ".bias", n * ff, 0));
    NIHAO_TRY(const auto down_bias, values_of(name(Role::expert_down, layer) + ".bias", n * d, 0));
    keep_biases(gate_bias, up_bias, down_bias, ff, d, experts, biases);
    return {};
  }

  /// The linear layers that were loaded, by their ids.
  [[nodiscard]] std::vector<LinearName> take_linears() { return std::move(linears_); }

  /// Whether a weight that was loaded has an order of its columns.
  [[nodiscard]] bool reorders() const noexcept { return reorders_; }

  /// Marks a tensor that has been read otherwise.
  void take(std::string_view tensor_name) {
    if (const TensorInfo* t = source_.tensors->find(tensor_name)) use(*t);
  }

  /// Checks that every tensor of the file was taken: a model with weights that nobody multiplies is not the file's model.
  /// Errors: unsupported, with the first such tensor's name.
  [[nodiscard]] Expected<void> finish(const Config& c) const {
    for (std::size_t i = 0; i < used_.size(); ++i) {
      const TensorInfo& t = source_.tensors->tensors()[i];
      if (!used_[i] && !is_left_alone(t.name, c.layers.size(), c.draft_layers))
        return Error{ErrorCode::unsupported, "this architecture has no place for it", concat("tensor ", printable(t.name))};
    }
    return {};
  }

 private:
  [[nodiscard]] std::string name(Role role, std::size_t layer) const { return tensor_name(naming_, role, layer); }
  // Files of one kind say ".weight" of all, those of another nothing or ".bias" of what is added.
  [[nodiscard]] const TensorInfo* lookup(Role role, std::size_t layer) const {
    const std::string n = name(role, layer);
    if (n.empty()) return nullptr;
    for (const std::string_view suffix : {".weight", "", ".bias"})
      if (const TensorInfo* tensor = source_.tensors->find(concat(n, suffix))) return tensor;
    return nullptr;
  }

  void use(const TensorInfo& tensor) {
    const auto index = static_cast<std::size_t>(&tensor - source_.tensors->tensors().data());
    if (used_[index]) return;
    used_[index] = true;
    done_ += tensor.bytes.size();
    hooks_.report("loading", done_, total_);
  }

  [[nodiscard]] Error missing(const std::string& tensor_name) const {
    if (tensor_name.starts_with('.'))
      return Error{ErrorCode::missing, concat("the model's type has a weight that files of ", printable(naming_.architecture),
                                              " have no name for (layers/names.hpp)")};
    return Error{ErrorCode::missing, "the file has no such tensor", concat("tensor ", tensor_name)};
  }
  [[nodiscard]] Expected<const TensorInfo*> find(const std::string& tensor_name) {
    if (hooks_.stop.stop_requested()) return Error{ErrorCode::cancelled, "stopped while loading"};
    const TensorInfo* tensor = source_.tensors->find(tensor_name);
    if (tensor == nullptr) return missing(tensor_name);
    use(*tensor);
    return tensor;
  }

  // The tensor of that name, of a format that the model takes, and of a shape: axes of 0 are not there.
  [[nodiscard]] Expected<const TensorInfo*> shaped(Role role, const std::string& tensor_name,
                                                   std::array<std::uint64_t, 3> shape) {
    NIHAO_TRY(const TensorInfo* const tensor, find(tensor_name));
    const std::string place = concat("tensor ", tensor->name);
    const auto rank = static_cast<std::size_t>(std::find(shape.begin(), shape.end(), 0u) - shape.begin());
    const std::span<const std::uint64_t> wanted(shape.data(), rank), found(tensor->shape.data(), tensor->rank);
    if (!std::equal(found.begin(), found.end(), wanted.begin(), wanted.end()))
      return Error{ErrorCode::mismatch, concat("its shape is ", shape_text(found), ", and the model needs ", shape_text(wanted)),
                   place};
    if (!admits_(role, tensor->format))
      return Error{ErrorCode::mismatch,
                   concat("it is stored as ", format_info(tensor->format).name, ", which this model type does not admit",
                          by_role_ ? " for its role" : ""),
                   place};
    return tensor;
  }
  [[nodiscard]] Expected<const TensorInfo*> matrix(Role role, std::size_t layer, std::size_t rows, std::size_t cols) {
    return shaped(role, name(role, layer) + ".weight", {rows, cols, 0});
  }
  [[nodiscard]] Expected<const TensorInfo*> stack(Role role, std::size_t layer, std::size_t n, std::size_t rows,
                                                  std::size_t cols) {
    return shaped(role, name(role, layer) + ".weight", {n, rows, cols});
  }

  // Rows [first, first + count) of a tensor whose rows are `cols` values.
  [[nodiscard]] Expected<Weight> prepare(const TensorInfo& tensor, std::size_t first, std::size_t count, std::size_t cols) {
    if (const TensorParts* const parts = tensor.parts) {
      const auto make = [&](std::size_t row, std::size_t n, std::byte* to, std::uint8_t* working) {
        parts->rows(first + row, n, to, working);
      };
      reorders_ = reorders_ || parts->order() != nullptr;
      return Ops<D>::prepare(device_, tensor.format, static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(cols), make,
                             {parts->scale(), parts->order()}, arena_);
    }
    const std::size_t row = row_bytes(tensor.format, cols);
    return Ops<D>::prepare(device_, tensor.format, static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(cols),
                           tensor.bytes.subspan(first * row, count * row), arena_, source_.tensors->mapped());
  }

  [[nodiscard]] Expected<Weight> one_expert(Role role, std::size_t layer, std::size_t e, std::size_t rows, std::size_t cols) {
    std::string tensor = name(role, layer) + ".weight";
    tensor.replace(tensor.find('#'), 1, concat(e));
    NIHAO_TRY(const TensorInfo* const found, shaped(role, tensor, {rows, cols, 0}));
    return prepare(*found, 0, rows, cols);
  }

  // Stacked matrices of Hugging Face checkpoints whose rows are inputs: gate_up [experts, d_model, 2 * ff] and down [experts, ff,
  // d_model], with biases of the same names; DBRX has gate and up apart and the right way round, [experts * ff, d_model].
  [[nodiscard]] Expected<void> stacked_columns(std::size_t layer, const Config& c, std::vector<Expert<Weight>>& experts,
                                               std::vector<float>& biases) {
    const std::size_t n = c.router.experts, d = c.d_model, ff = c.expert_ff;
    const bool dbrx = naming_.architecture == "dbrx";
    const auto transposed = [&](const TensorInfo& t, std::size_t e, std::size_t inputs, std::size_t outputs, auto column) {
      const std::size_t all = static_cast<std::size_t>(t.cols()), size = row_bytes(t.format, all);
      std::vector<float> row(all), values(outputs * inputs);
      for (std::size_t i = 0; i < inputs; ++i) {
        dequantize_row(t.format, t.bytes.subspan((e * inputs + i) * size, size), row);
        for (std::size_t o = 0; o < outputs; ++o) values[o * inputs + i] = row[column(o)];
      }
      return make_as(kept(t.format), values, outputs, inputs);
    };
    const auto same = [](std::size_t o) { return o; };
    if (dbrx) {
      NIHAO_TRY(const TensorInfo* const gate, shaped(Role::expert_gate, name(Role::expert_gate, layer), {n * ff, d, 0}));
      NIHAO_TRY(const TensorInfo* const up, shaped(Role::expert_up, name(Role::expert_up, layer), {n * ff, d, 0}));
      NIHAO_TRY(const TensorInfo* const down, shaped(Role::expert_down, name(Role::expert_down, layer), {n * ff, d, 0}));
      for (std::size_t e = 0; e < n; ++e) {
        NIHAO_TRY(experts[e].gate, prepare(*gate, e * ff, ff, d));
        NIHAO_TRY(experts[e].up, prepare(*up, e * ff, ff, d));
        NIHAO_TRY(experts[e].down, transposed(*down, e, ff, d, same));
      }
      return {};
    }
    NIHAO_TRY(const TensorInfo* const both, shaped(Role::expert_gate_up, name(Role::expert_gate_up, layer), {n, d, 2 * ff}));
    NIHAO_TRY(const TensorInfo* const down, shaped(Role::expert_down, name(Role::expert_down, layer), {n, ff, d}));
    for (std::size_t e = 0; e < n; ++e) {
      NIHAO_TRY(experts[e].gate, transposed(*both, e, d, ff, [&](std::size_t o) { return place_in_both(false, o, ff); }));
      NIHAO_TRY(experts[e].up, transposed(*both, e, d, ff, [&](std::size_t o) { return place_in_both(true, o, ff); }));
      NIHAO_TRY(experts[e].down, transposed(*down, e, ff, d, same));
    }
    return c.ffn_bias ? stacked_biases(layer, c, experts, biases) : Expected<void>{};
  }

  // Where output o of gate or up lies among those of both: gpt-oss's alternate, a gate's, then the same unit's up.
  [[nodiscard]] std::size_t place_in_both(bool up, std::size_t o, std::size_t ff) const noexcept {
    return naming_.architecture == "gpt_oss" ? 2 * o + (up ? 1 : 0) : (up ? ff : 0) + o;
  }
  [[nodiscard]] Expected<void> stacked_biases(std::size_t layer, const Config& c, std::vector<Expert<Weight>>& experts,
                                              std::vector<float>& biases) {
    const std::size_t n = c.router.experts, d = c.d_model, ff = c.expert_ff;
    NIHAO_TRY(const auto both, values_of(name(Role::expert_gate_up, layer) + "_bias", n * 2 * ff, 0));
    NIHAO_TRY(const auto down, values_of(name(Role::expert_down, layer) + "_bias", n * d, 0));
    std::vector<float> gate(n * ff), up(n * ff);
    for (std::size_t i = 0; i < n * ff; ++i) {
      const float* of_expert = both.data() + i / ff * 2 * ff;
      gate[i] = of_expert[place_in_both(false, i % ff, ff)];
      up[i] = of_expert[place_in_both(true, i % ff, ff)];
    }
    keep_biases(gate, up, down, ff, d, experts, biases);
    return {};
  }

  static void keep_biases(std::span<const float> gate, std::span<const float> up, std::span<const float> down, std::size_t ff,
                          std::size_t d, std::vector<Expert<Weight>>& experts, std::vector<float>& biases) {
    biases.assign(gate.begin(), gate.end());
    biases.insert(biases.end(), up.begin(), up.end());
    biases.insert(biases.end(), down.begin(), down.end());
    for (std::size_t e = 0; e < experts.size(); ++e) {
      experts[e].gate_bias = biases.data() + e * ff;
      experts[e].up_bias = biases.data() + gate.size() + e * ff;
      experts[e].down_bias = biases.data() + 2 * gate.size() + e * d;
    }
  }

  // What values of that format are kept as in another order.
  [[nodiscard]] FormatId kept(FormatId format) const noexcept {
    return format_info(format).block_size == 1 ? format : rounded(false);
  }
  [[nodiscard]] FormatId rounded(bool fine) const noexcept { return fine || device_.exact() ? FormatId::F32 : FormatId::F16; }
  [[nodiscard]] Expected<Weight> make_as(FormatId format, std::span<const float> values, std::size_t rows, std::size_t cols) {
    return make_weight(device_, arena_, format, values, rows, cols);
  }

  [[nodiscard]] Expected<std::vector<float>> values_of(const std::string& tensor_name, std::size_t n, float offset) {
    NIHAO_TRY(const TensorInfo* const tensor, find(tensor_name));
    if (tensor->elements() != n)
      return Error{ErrorCode::mismatch, concat("it has ", tensor->elements(), " values, and the model needs ", n),
                   concat("tensor ", tensor_name)};
    std::vector<float> values = tensor_values(*tensor);
    if (offset != 0)
      for (float& v : values) v += offset;
    return values;
  }

  const WeightSource& source_;
  const D& device_;
  Arena& arena_;
  const Hooks& hooks_;
  Naming naming_;
  bool (*admits_)(Role, FormatId);
  bool by_role_;
  std::vector<bool> used_;
  std::vector<LinearName> linears_;
  std::uint64_t done_ = 0, total_ = 0;
  bool reorders_ = false;
};

}  // namespace nihao
