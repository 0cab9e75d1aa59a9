// The tensors of a checkpoint that quantization methods put together: taken by name, type and shape before a byte is read.
#pragma once

#include "../../base/small_floats.hpp"
#include "../../files/safetensors.hpp"
#include "../../files/tensor_file.hpp"

#include <initializer_list>
#include <memory>
#include <utility>

namespace nihao::detail {

/// A part whose type and size have been checked. Elements lie at any address.
struct Part {
  SafetensorsType type = SafetensorsType::U8;
  std::span<const std::byte> bytes = {};

  [[nodiscard]] std::uint8_t byte(std::size_t i) const noexcept { return static_cast<std::uint8_t>(bytes[i]); }
  [[nodiscard]] std::uint32_t word(std::size_t i) const noexcept {
    std::uint32_t w;
    std::memcpy(&w, bytes.data() + 4 * i, 4);
    return w;
  }
  /// Element i of a part of floats.
  [[nodiscard]] float value(std::size_t i) const noexcept {
    const auto read = [&]<class T>(T stored) {
      std::memcpy(&stored, bytes.data() + i * sizeof stored, sizeof stored);
      return to_float(stored);
    };
    switch (type) {
      case SafetensorsType::F16: return read(f16{});
      case SafetensorsType::BF16: return read(bf16{});
      case SafetensorsType::F8_E4M3: return read(e4m3{});
      default: return read(0.0f);
    }
  }
};

/// Types a scale may have.
inline constexpr std::initializer_list<SafetensorsType> float_types = {SafetensorsType::F16, SafetensorsType::BF16,
                                                                       SafetensorsType::F32};

/// A checkpoint's parts, and what has become of them.
class PartTaker {
 public:
  explicit PartTaker(const Safetensors& file) : file_(file), taken_(file.entries().size(), false) {}

  [[nodiscard]] const Safetensors& file() const noexcept { return file_; }
  [[nodiscard]] bool has(std::string_view name) const noexcept { return file_.find(name) != nullptr; }
  [[nodiscard]] bool taken(const SafetensorsEntry& entry) const noexcept { return taken_[index(entry)]; }

  /// The shape of a part. Errors: missing.
  [[nodiscard]] Expected<std::vector<std::uint64_t>> shape(const std::string& name) const {
    const SafetensorsEntry* const entry = file_.find(name);
    if (entry == nullptr) return missing(name);
    return entry->shape;
  }

  /// Takes a part of one of `types` and of `shape`. Errors: missing, mismatch; both name it.
  [[nodiscard]] Expected<Part> take(const std::string& name, std::initializer_list<SafetensorsType> types,
                                    std::span<const std::uint64_t> shape) {
    const SafetensorsEntry* const entry = file_.find(name);
    if (entry == nullptr) return missing(name);
    if (std::find(types.begin(), types.end(), entry->type) == types.end())
      return Error{ErrorCode::mismatch, concat("it has values of type ", safetensors_type_info(entry->type).name),
                   concat("tensor ", printable(name))};
    if (!std::equal(shape.begin(), shape.end(), entry->shape.begin(), entry->shape.end()))
      return Error{ErrorCode::mismatch,
                   concat("its shape is ", shape_text(entry->shape), ", and the matrix needs ", shape_text(shape)),
                   concat("tensor ", printable(name))};
    taken_[index(*entry)] = true;
    return Part{entry->type, entry->bytes};
  }
  [[nodiscard]] Expected<Part> take(const std::string& name, std::initializer_list<SafetensorsType> types,
                                    std::initializer_list<std::uint64_t> shape) {
    return take(name, types, std::span(shape.begin(), shape.size()));
  }
  /// Takes a part whatever it holds, if it is there.
  void drop(std::string_view name) noexcept {
    if (const SafetensorsEntry* const entry = file_.find(name)) taken_[index(*entry)] = true;
  }

  /// The order for a matrix; one that has been met lately is shared.
  [[nodiscard]] std::shared_ptr<const std::vector<std::uint32_t>> shared(std::vector<std::uint32_t> order) {
    for (const auto& known : orders_)
      if (known != nullptr && *known == order) return known;
    next_ = (next_ + 1) % std::size(orders_);
    return orders_[next_] = std::make_shared<const std::vector<std::uint32_t>>(std::move(order));
  }

 private:
  [[nodiscard]] std::size_t index(const SafetensorsEntry& entry) const noexcept {
    return static_cast<std::size_t>(&entry - file_.entries().data());
  }
  [[nodiscard]] static Error missing(const std::string& name) {
    return {ErrorCode::missing, "the file has no such tensor", concat("tensor ", printable(name))};
  }

  const Safetensors& file_;
  std::vector<bool> taken_;
  std::shared_ptr<const std::vector<std::uint32_t>> orders_[8];
  std::size_t next_ = 0;
};

}  // namespace nihao::detail
