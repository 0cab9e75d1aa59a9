// The forward pass of every block kind, on a device whose operations are elsewhere: what is left is the layers' own machine
// code. Compiled twice by compare.py: as it is (with NoTrace), and with everything that speaks of observers cut out.
#include "nihao/models/families.hpp"

namespace nihao {

struct Elsewhere {};

template <>
struct Ops<Elsewhere> {
  struct Weight {
    std::uint32_t rows = 0, cols = 0;
    std::uint64_t bytes() const noexcept;
  };
  struct Scratch {};
  using Job = LinearJob<Weight>;
  using Out = MatrixView<float>;
  using In = MatrixView<const float>;

  static void embed(const Elsewhere&, const Weight&, std::span<const std::int32_t>, float, Out) noexcept;
  template <class Q>
  static void linear(const Elsewhere&, const Scratch&, In, std::span<const Job>, InputPrecision = InputPrecision::usual) noexcept;
  static void rms_norm(const Elsewhere&, In, std::span<const float>, float, Out) noexcept;
  static void rms_norm_heads(const Elsewhere&, Out, std::span<const float>, float) noexcept;
  static void rope(const Elsewhere&, Out, std::size_t, In, In, RopeStyle) noexcept;
  static void append(const Elsewhere&, const KvLayout&, std::byte*, const BatchView&, In, In) noexcept;
  static void attention(const Elsewhere&, const Scratch&, const AttentionShape&, const KvLayout&, std::byte*, const BatchView&,
                        In, Out) noexcept;
  template <class F>
  static void gated(const Elsewhere&, Out, In) noexcept;
  static void add(const Elsewhere&, Out, In) noexcept;
};

#if WITHOUT_OBSERVERS
#define BODY return model.forward(plan, cache, workspace);
#else
#define BODY      \
  NoTrace nobody; \
  return model.forward(plan, cache, workspace, nobody);
#endif
#define PROBE(Family)                                                                                                    \
  [[gnu::flatten]] MatrixView<const float> probe(const Family<Sizes{}, Quant<Any>, Elsewhere>& model, const Plan& plan,  \
                                                 const KvCache& cache, const Workspace<Elsewhere>& workspace) noexcept { \
    BODY                                                                                                                 \
  }
PROBE(Llama)
PROBE(Qwen2)
PROBE(Gemma3)
PROBE(Olmo2)

}  // namespace nihao
