// A small model with made-up weights, for stations that SmolLM2 has nothing to show of: a config, and tensors of whatever shape
// its type asks for. Nothing is read from a file.
#pragma once

#include <nihao/files/tensor_file.hpp>
#include <nihao/models/load_family.hpp>
#include <nihao/sampling/random.hpp>

#include <cmath>
#include <deque>
#include <fmt/core.h>
#include <initializer_list>
#include <memory>
#include <string>

namespace station {

/// Tensors by the names that Hugging Face's checkpoints have.
class MadeUp {
 public:
  explicit MadeUp(std::uint64_t seed) : random_(seed) {}

  /// Matrices with values around 0, so large that x W^T is about as large as x.
  MadeUp& matrix(std::string name, std::size_t rows, std::size_t cols) {
    std::vector<float>& values = add(std::move(name), {rows, cols});
    for (float& v : values) v = static_cast<float>((2 * random_.uniform() - 1) * std::sqrt(3.0 / static_cast<double>(cols)));
    return *this;
  }
  /// A norm's weights: ones.
  MadeUp& norm(std::string name, std::size_t width) {
    add(std::move(name), {width}).assign(width, 1.0f);
    return *this;
  }
  [[nodiscard]] const std::vector<float>& values(std::string_view name) const {
    return values_[static_cast<std::size_t>(std::find(names_.begin(), names_.end(), name) - names_.begin())];
  }

  /// What a family's load takes. This outlives the model.
  [[nodiscard]] nihao::WeightSource source() const {
    std::vector<nihao::TensorInfo> tensors;
    for (std::size_t i = 0; i < names_.size(); ++i)
      tensors.push_back({names_[i],
                         nihao::FormatId::F32,
                         static_cast<std::uint8_t>(shapes_[i][1] == 0 ? 1 : 2),
                         {shapes_[i][0], std::max<std::uint64_t>(shapes_[i][1], 1), 1, 1},
                         std::as_bytes(std::span(values_[i])),
                         0,
                         0});
    return {std::make_shared<const nihao::TensorFile>(std::move(tensors), std::vector<nihao::MappedFile>{}),
            nihao::NameStyle::hugging_face};
  }

 private:
  std::vector<float>& add(std::string name, std::initializer_list<std::size_t> shape) {
    names_.push_back(std::move(name));
    shapes_.push_back({*shape.begin(), shape.size() > 1 ? *(shape.begin() + 1) : 0});
    std::size_t size = 1;
    for (const std::size_t axis : shape) size *= axis;
    values_.emplace_back(size);
    return values_.back();
  }
  nihao::Random random_;
  std::deque<std::string> names_;
  std::vector<std::array<std::uint64_t, 2>> shapes_;
  std::deque<std::vector<float>> values_;
};

/// The model of a config and made-up weights; multiplies exactly, as most stations do.
[[nodiscard]] inline nihao::Expected<nihao::AnyModel> load(const nihao::Config& config, const MadeUp& made) {
  NIHAO_TRY(const nihao::Cpu cpu, nihao::Cpu::create({.threads = 1, .exact = true}));
  return nihao::load_family<nihao::Cpu>(config, made.source(), cpu, {}, {}, "the station");
}

/// Runs a station that needs no model.
inline int run_alone(nihao::Expected<void> (*tell)()) {
  if (const auto told = tell(); !told) return fmt::print(stderr, "{}\n", told.error().message()), 1;
  return 0;
}

}  // namespace station
