// From the tensors of a file to the weights of layers: each taken by its role, its shape checked, and none left over.
#pragma once

#include "../base/arena.hpp"
#include "../base/hooks.hpp"
#include "../files/tensor_file.hpp"
#include "../format/registry.hpp"
#include "../layers/linear.hpp"
#include "names.hpp"

#include <memory>
#include <vector>

namespace nihao {

/// Where a model's tensors come from.
struct WeightSource {
  const TensorFile* tensors;
  std::shared_ptr<const void> owner;  ///< keeps the tensors' bytes alive
  NameStyle style;
  float norm_offset = 0;  ///< added to norm weights: Hugging Face's Gemma stores their distance from 1
};

/// Takes weights from a source for device D, packing each for the device and giving the file's pages back as it goes.
template <class D>
class Loader {
 public:
  Loader(const WeightSource& source, const D& device, Arena& arena, const Hooks& hooks, bool norms_after)
      : source_(source),
        device_(device),
        arena_(arena),
        hooks_(hooks),
        norms_after_(norms_after),
        used_(source.tensors->tensors().size(), false) {
    for (const TensorInfo& t : source.tensors->tensors()) total_ += t.bytes.size();
  }

  /// Whether the file has that weight.
  [[nodiscard]] bool has(Role role, std::size_t layer = 0) const {
    return source_.tensors->find(name(role, layer) + ".weight") != nullptr;
  }

  /// A [rows, cols] matrix. `admits` says which formats the model's type takes. Errors: missing, mismatch, unsupported,
  /// cancelled.
  [[nodiscard]] Expected<Linear<D>> linear(Role role, std::size_t layer, std::size_t rows, std::size_t cols, bool bias,
                                           bool (*admits)(FormatId)) {
    NIHAO_TRY(const TensorInfo* const tensor, matrix(role, layer, rows, cols, admits));
    Linear<D> result;
    NIHAO_TRY(result.weight, Ops<D>::prepare(device_, tensor->format, static_cast<std::uint32_t>(rows),
                                             static_cast<std::uint32_t>(cols), tensor->bytes, arena_, source_.tensors->mapped()));
    if (bias) { NIHAO_TRY(result.bias, floats(name(role, layer) + ".bias", rows, 0)); }
    return result;
  }

  /// A table whose rows are looked up, not multiplied: kept as stored.
  [[nodiscard]] Expected<Linear<D>> table(Role role, std::size_t rows, std::size_t cols, bool (*admits)(FormatId)) {
    NIHAO_TRY(const TensorInfo* const tensor, matrix(role, 0, rows, cols, admits));
    return Linear<D>{
        Ops<D>::table(tensor->format, static_cast<std::uint32_t>(rows), static_cast<std::uint32_t>(cols), tensor->bytes)};
  }

  /// A norm's weights: n floats.
  [[nodiscard]] Expected<std::vector<float>> norm(Role role, std::size_t layer, std::size_t n) {
    return floats(name(role, layer) + ".weight", n, source_.norm_offset);
  }

  /// Marks a tensor that has been read otherwise.
  void take(std::string_view tensor_name) {
    if (const TensorInfo* t = source_.tensors->find(tensor_name)) use(*t);
  }

  /// Checks that every tensor of the file was taken: a model with weights that nobody multiplies is not the file's model.
  /// Errors: unsupported, with the first such tensor's name.
  [[nodiscard]] Expected<void> finish() const {
    for (std::size_t i = 0; i < used_.size(); ++i) {
      const TensorInfo& t = source_.tensors->tensors()[i];
      if (!used_[i] && t.name.find("rotary_emb.inv_freq") == std::string_view::npos)
        return Error{ErrorCode::unsupported, "this architecture has no place for it", concat("tensor ", printable(t.name))};
    }
    return {};
  }

 private:
  [[nodiscard]] std::string name(Role role, std::size_t layer) const {
    return tensor_name(source_.style, role, layer, norms_after_);
  }

  void use(const TensorInfo& tensor) {
    const auto index = static_cast<std::size_t>(&tensor - source_.tensors->tensors().data());
    if (used_[index]) return;
    used_[index] = true;
    done_ += tensor.bytes.size();
    hooks_.report("loading", done_, total_);
  }

  [[nodiscard]] Expected<const TensorInfo*> find(const std::string& tensor_name) {
    if (hooks_.stop.stop_requested()) return Error{ErrorCode::cancelled, "stopped while loading"};
    const TensorInfo* tensor = source_.tensors->find(tensor_name);
    if (tensor == nullptr) return Error{ErrorCode::missing, "the file has no such tensor", concat("tensor ", tensor_name)};
    use(*tensor);
    return tensor;
  }

  [[nodiscard]] Expected<const TensorInfo*> matrix(Role role, std::size_t layer, std::size_t rows, std::size_t cols,
                                                   bool (*admits)(FormatId)) {
    NIHAO_TRY(const TensorInfo* const tensor, find(name(role, layer) + ".weight"));
    const std::string place = concat("tensor ", tensor->name);
    if (tensor->rank != 2 || tensor->shape[0] != rows || tensor->shape[1] != cols)
      return Error{
          ErrorCode::mismatch,
          concat("its shape is [", tensor->rows(), ", ", tensor->cols(), "], and the model needs [", rows, ", ", cols, "]"),
          place};
    if (!admits(tensor->format))
      return Error{ErrorCode::mismatch,
                   concat("it is stored as ", format_info(tensor->format).name, ", which this model type does not admit"), place};
    return tensor;
  }

  [[nodiscard]] Expected<std::vector<float>> floats(const std::string& tensor_name, std::size_t n, float offset) {
    NIHAO_TRY(const TensorInfo* const tensor, find(tensor_name));
    if (tensor->elements() != n)
      return Error{ErrorCode::mismatch, concat("it has ", tensor->elements(), " values, and the model needs ", n),
                   concat("tensor ", tensor_name)};
    std::vector<float> values(n);
    dequantize_row(tensor->format, tensor->bytes, values);
    if (offset != 0)
      for (float& v : values) v += offset;
    return values;
  }

  const WeightSource& source_;
  const D& device_;
  Arena& arena_;
  const Hooks& hooks_;
  bool norms_after_;
  std::vector<bool> used_;
  std::uint64_t done_ = 0, total_ = 0;
};

}  // namespace nihao
