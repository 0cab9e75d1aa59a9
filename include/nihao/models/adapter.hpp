// Low-rank adapters (LoRA: Hu et al. 2021, arXiv:2106.09685; rank-stabilised: Kalajdzievski 2023, arXiv:2312.03732): from the
// tensors of a file to what each linear layer of a model adds.
#pragma once

#include "loader.hpp"

#include <cmath>

namespace nihao {

/// Puts the layers of `source` into `table` as a new adapter. `linears` are the model's linear layers by
/// id, those that adapters cannot work on without a name. Errors: mismatch (shapes), missing (one of two matrices), unsupported
/// (a tensor that belongs to no linear layer), out_of_memory. After an error the table is not to be used.
template <class D>
[[nodiscard]] Expected<void> add_adapter(const D& device, Arena& arena, std::span<const LinearName> linears,
                                         const AdapterSource& source, AdapterTable<D>& table) {
  const bool gguf = source.style == NameStyle::gguf;
  const FormatId format = device.exact() ? FormatId::F32 : FormatId::F16;
  std::vector<bool> used(source.tensors->tensors().size(), false);
  const auto take = [&](const std::string& name) -> const TensorInfo* {
    const TensorInfo* tensor = source.tensors->find(name);
    if (tensor != nullptr) used[static_cast<std::size_t>(tensor - source.tensors->tensors().data())] = true;
    return tensor;
  };
  const std::uint32_t adapter = table.add();
  for (std::uint32_t id = 0; id < linears.size(); ++id) {
    const LinearName& linear = linears[id];
    if (linear.tensor.empty()) continue;
    const std::string base =
        gguf ? linear.tensor : concat("base_model.model.", linear.tensor.substr(0, linear.tensor.size() - 7));
    const std::string a_name = base + (gguf ? ".lora_a" : ".lora_A.weight"),
                      b_name = base + (gguf ? ".lora_b" : ".lora_B.weight");
    const TensorInfo *a = take(a_name), *b = take(b_name);
    if (a == nullptr && b == nullptr) continue;
    if (a == nullptr || b == nullptr)
      return Error{ErrorCode::missing, "the adapter has only one of the two matrices",
                   concat("tensor ", a == nullptr ? a_name : b_name)};
    const std::size_t rank = static_cast<std::size_t>(a->rows());
    if (a->rank != 2 || a->cols() != linear.cols || rank == 0)
      return Error{ErrorCode::mismatch,
                   concat("it is [", a->rows(), ", ", a->cols(), "], and the layer's input has ", linear.cols),
                   concat("tensor ", a_name)};
    if (b->rank != 2 || b->rows() != linear.rows || b->cols() != rank)
      return Error{ErrorCode::mismatch,
                   concat("it is [", b->rows(), ", ", b->cols(), "], and the layer needs [", linear.rows, ", ", rank, "]"),
                   concat("tensor ", b_name)};
    const double scale =
        source.alpha / (source.rank_stabilised ? std::sqrt(static_cast<double>(rank)) : static_cast<double>(rank));
    std::vector<float> up = tensor_values(*b);
    for (float& v : up) v = static_cast<float>(static_cast<double>(v) * scale);
    LowRank<D> layer;
    NIHAO_TRY(layer.a, make_weight(device, arena, format, tensor_values(*a), rank, linear.cols));
    NIHAO_TRY(layer.b,
              make_weight(device, arena, format, std::span<const float>(up).subspan(linear.first * rank, linear.count * rank),
                          linear.count, rank));
    table.put(adapter, id, std::move(layer));
  }
  for (std::size_t i = 0; i < used.size(); ++i)
    if (!used[i])
      return Error{ErrorCode::unsupported, "the model has no linear layer that adapters work on by that name",
                   concat("tensor ", printable(source.tensors->tensors()[i].name))};
  return {};
}

}  // namespace nihao
