// From a checkpoint's parts to the tensors of a model: one method of quantization after the other adds its matrices here.
#pragma once

#include "../../files/json.hpp"
#include "bytes.hpp"
#include "flat.hpp"
#include "four_bit_floats.hpp"
#include "packed_integers.hpp"

#include <iterator>
#include <memory>
#include <string>

namespace nihao::detail {

class Assembler {
 public:
  /// `config` is the model's quantization_config.
  Assembler(const Json& config, const Safetensors& file) : config_(config), parts_(file) {}

  [[nodiscard]] const Json& config() const noexcept { return config_; }
  [[nodiscard]] PartTaker& parts() noexcept { return parts_; }

  /// A key of the configuration. Errors: mismatch, missing.
  template <class T>
  [[nodiscard]] Expected<T> get(std::string_view key) const {
    return at(json_get<T>(config_, key));
  }
  template <class T>
  [[nodiscard]] Expected<T> get_or(std::string_view key, T otherwise) const {
    return at(json_get_or<T>(config_, key, std::move(otherwise)));
  }
  [[nodiscard]] static Error unsupported(std::string_view what, std::string_view key) {
    return {ErrorCode::unsupported, what, concat("quantization_config.", key)};
  }
  /// An error's place gets the name of the object before it.
  template <class T>
  [[nodiscard]] static Expected<T> at(Expected<T> result) {
    if (!result) return Error{result.error().code, result.error().what, concat("quantization_config.", result.error().where)};
    return result;
  }

  /// Scales of keys and values, which are cached here as they are.
  void drop_cache_scales() noexcept {
    for (const SafetensorsEntry& entry : parts_.file().entries())
      for (const std::string_view suffix : {".k_scale", ".v_scale", ".q_scale", ".prob_scale"})
        if (entry.name.ends_with(suffix)) parts_.drop(entry.name);
  }

  /// `f(base, entry)` for each tensor called base + suffix, until one fails.
  template <class F>
  [[nodiscard]] Expected<void> each(std::string_view suffix, F&& f) {
    for (const SafetensorsEntry& entry : parts_.file().entries()) {
      if (!entry.name.ends_with(suffix) || parts_.taken(entry)) continue;
      NIHAO_CHECK(f(entry.name.substr(0, entry.name.size() - suffix.size()), entry));
    }
    return {};
  }

  /// Adds the matrix of that base: shape [rows, cols], or [stack, rows, cols]. Errors: unsupported, mismatch.
  [[nodiscard]] Expected<void> add(std::string base, const SafetensorsEntry& codes, std::unique_ptr<CodedMatrix> matrix,
                                   std::initializer_list<std::uint64_t> shape) {
    if (base.ends_with("embed_tokens"))
      return Error{ErrorCode::unsupported, "a quantized embedding", concat("tensor ", printable(codes.name))};
    TensorInfo tensor{{},           matrix->format(), static_cast<std::uint8_t>(shape.size()),
                      {1, 1, 1, 1}, codes.bytes,      codes.offset,
                      codes.file,   matrix.get()};
    std::copy(shape.begin(), shape.end(), tensor.shape.begin());
    tensors_.push_back(tensor);
    matrices_.push_back(std::move(matrix));
    bases_.push_back(std::move(base));
    return {};
  }

  /// The shape of a matrix of codes. Errors: mismatch (it is no matrix, or an empty one).
  [[nodiscard]] static Expected<std::pair<std::size_t, std::size_t>> matrix_shape(const SafetensorsEntry& entry) {
    if (entry.shape.size() != 2 || entry.elements() == 0)
      return Error{ErrorCode::mismatch, concat("its shape is ", shape_text(entry.shape), ", which is no matrix's"),
                   concat("tensor ", printable(entry.name))};
    return std::pair(static_cast<std::size_t>(entry.shape[0]), static_cast<std::size_t>(entry.shape[1]));
  }

  /// The model's tensors: what was added, and the rest of `file`, which this was made from, as it is. Errors: unsupported (a
  /// matrix has a part that no method has taken), mismatch (a weight is there in two ways), out_of_memory.
  [[nodiscard]] Expected<TensorFile> finish(Safetensors&& file) && {
    std::vector<std::string_view> sorted(bases_.begin(), bases_.end());
    std::sort(sorted.begin(), sorted.end());
    for (const SafetensorsEntry& entry : parts_.file().entries()) {
      if (parts_.taken(entry)) continue;
      const std::string_view name = entry.name;
      for (std::string_view base = name; base.find('.') != base.npos;) {
        base = base.substr(0, base.rfind('.'));
        if (!std::binary_search(sorted.begin(), sorted.end(), base) || name.substr(base.size()) == ".bias") continue;
        return Error{ErrorCode::unsupported, "this method of quantization has no such part", concat("tensor ", printable(name))};
      }
    }
    std::size_t size = 0;
    for (const std::string& base : bases_) size += base.size() + weight.size();
    NIHAO_TRY(PageBuffer names, PageBuffer::allocate(size));
    char* to = reinterpret_cast<char*>(names.data());
    for (std::size_t i = 0; i < bases_.size(); ++i) {
      char* const name = to;
      to = std::copy(weight.begin(), weight.end(), std::copy(bases_[i].begin(), bases_[i].end(), to));
      tensors_[i].name = {name, static_cast<std::size_t>(to - name)};
    }
    for (const TensorInfo& plain : file.tensors().tensors())
      if (!parts_.taken(*file.find(plain.name))) tensors_.push_back(plain);
    std::vector<std::unique_ptr<const TensorParts>> parts(std::make_move_iterator(matrices_.begin()),
                                                          std::make_move_iterator(matrices_.end()));
    return std::move(file).take_tensors().with(std::move(tensors_), std::move(names), std::move(parts));
  }

 private:
  static constexpr std::string_view weight = ".weight";

  const Json& config_;
  PartTaker parts_;
  std::vector<std::string> bases_;
  std::vector<TensorInfo> tensors_;
  std::vector<std::unique_ptr<CodedMatrix>> matrices_;
};

}  // namespace nihao::detail
