// Quant: which weight formats a model type admits, and so which kernels it compiles.
#pragma once

#include "registry.hpp"

namespace nihao {

/// Any format of the registry, picked per tensor at run time.
struct Any {};

/// Quant<Any> takes what the file has. Quant<Q4_K> takes that one format, Quant<Q4_K, Q6_K> takes those two: loading a file with
/// another is an error that names the tensor, and no other kernel is compiled.
template <class... Formats>
struct Quant {
  static_assert(sizeof...(Formats) > 0, "Quant needs at least one weight format, or nihao::Any.");
  static_assert(((sizeof(CheckFormat<Formats>) > 0) && ...));

  [[nodiscard]] static constexpr bool admits(FormatId id) noexcept { return ((Formats::id == id) || ...); }

  /// `f(Q4_K{})` for the format with that id, which is one of Formats.
  template <class F>
  static constexpr void visit(FormatId id, F&& f) {
    static_cast<void>(((Formats::id == id ? (f(Formats{}), true) : false) || ...));
  }
};
template <>
struct Quant<Any> {
  [[nodiscard]] static constexpr bool admits(FormatId) noexcept { return true; }
  template <class F>
  static constexpr void visit(FormatId id, F&& f) {
    visit_format(id, std::forward<F>(f));
  }
};

}  // namespace nihao
