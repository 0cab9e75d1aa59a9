// Quant<Mix<...>>: a model type that says role by role which formats its weights have.
#pragma once

#include "../format/quant.hpp"
#include "../layers/names.hpp"

namespace nihao {

/// The formats that weights of one role may have: For<Role::v, Q4_K, Q6_K>.
template <Role R, class... Formats>
struct For {
  static_assert(sizeof...(Formats) > 0, "For<Role, Formats...> needs at least one weight format.");
  static constexpr Role role = R;
  using Quant = nihao::Quant<Formats...>;
};

/// `Usual` for all roles, but for those that a For speaks of.
template <class Usual, class... Exceptions>
struct Mix {};

namespace detail {
/// Every format once or more: duplicates cost nothing, for visit stops at the first.
template <class Usual, class... Exceptions>
struct MixFormats;
template <class Usual>
struct MixFormats<Usual> {
  using All = Quant<Usual>;
};
template <class Usual, Role R, class... Formats, class... Rest>
struct MixFormats<Usual, For<R, Formats...>, Rest...> {
  template <class... Others>
  static Quant<Formats..., Others...> join(Quant<Others...>*);
  using All = decltype(join(static_cast<typename MixFormats<Usual, Rest...>::All*>(nullptr)));
};
}  // namespace detail

/// Loading a file whose tensor has another format than its role admits is an error that names it; kernels are compiled for the
/// formats that appear, and no others. Norms, biases and the frequencies' factors are outside Quant, and so is a router in F32
/// (say For<Role::router, F32> for models with experts).
template <class Usual, class... Exceptions>
struct Quant<Mix<Usual, Exceptions...>> {
  using All = typename detail::MixFormats<Usual, Exceptions...>::All;

  [[nodiscard]] static constexpr bool admits(FormatId id) noexcept { return All::admits(id); }
  [[nodiscard]] static constexpr bool admits(Role role, FormatId id) noexcept {
    const bool excepted = ((Exceptions::role == role) || ...);
    return excepted ? ((Exceptions::role == role && Exceptions::Quant::admits(id)) || ...) : Usual::id == id;
  }
  template <class F>
  static constexpr void visit(FormatId id, F&& f) {
    All::visit(id, std::forward<F>(f));
  }
};

/// A Quant that admits formats role by role.
template <class Q>
concept AdmitsByRole = requires {
  { Q::admits(Role::q, FormatId::F32) } -> std::same_as<bool>;
};

/// Whether a model of Quant type Q takes a weight of that role in that format.
template <class Q>
[[nodiscard]] constexpr bool admits(Role role, FormatId id) noexcept {
  if constexpr (AdmitsByRole<Q>) return Q::admits(role, id);
  else return Q::admits(id);
}

/// What a Q4_K_M file of a model without experts has, whose rows are whole blocks of 256: quantize/recipe.hpp says which layers
/// have which, and why.
using Q4_K_M = Mix<Q4_K, For<Role::head, Q6_K>, For<Role::embedding, Q4_K, Q6_K>, For<Role::v, Q4_K, Q6_K>,
                   For<Role::qkv, Q4_K, Q6_K>, For<Role::down, Q4_K, Q6_K>>;
/// The same of Q5_K_M.
using Q5_K_M = Mix<Q5_K, For<Role::head, Q6_K>, For<Role::embedding, Q5_K, Q6_K>, For<Role::v, Q5_K, Q6_K>,
                   For<Role::qkv, Q5_K, Q6_K>, For<Role::down, Q5_K, Q6_K>>;

}  // namespace nihao
