// A callable passed down a call: two pointers, no allocation, no <functional>.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace nihao {

template <class Signature>
class FunctionRef;

/// Refers to a callable that outlives the call it is passed to. An empty one is false and must not be called.
template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  FunctionRef() noexcept = default;
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> && std::is_invocable_r_v<R, F&, Args...>)
  FunctionRef(F&& f) noexcept
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))), call_([](void* object, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<Args>(args)...);
        }) {}

  R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }
  explicit operator bool() const noexcept { return call_ != nullptr; }

 private:
  void* object_ = nullptr;
  R (*call_)(void*, Args...) = nullptr;
};

}  // namespace nihao
