// The forward pass of every block kind, on a device whose operations are elsewhere: what is left is the layers' own machine
// code. Compiled twice by compare.py: as it is (with NoTrace), and with everything that speaks of observers cut out.
#include "nihao/models/families.hpp"

namespace nihao {

struct Elsewhere {};

template <>
struct Ops<Elsewhere> {
  struct Weight {
    FormatId format = FormatId::F32;
    std::uint32_t rows = 0, cols = 0;
    std::uint64_t bytes() const noexcept;
  };
  struct Scratch {};
  using Job = LinearJob<Weight>;
  using Call = LinearCall<Weight>;
  static constexpr std::size_t most_calls = 16;
  using Out = MatrixView<float>;
  using In = MatrixView<const float>;

  static void embed(const Elsewhere&, const Weight&, std::span<const std::int32_t>, float, Out) noexcept;
  template <class Q>
  static void linear(const Elsewhere&, const Scratch&, In, std::span<const Job>, InputPrecision = InputPrecision::usual) noexcept;
  template <class Q>
  static void linear(const Elsewhere&, const Scratch&, std::span<const Call>, InputPrecision = InputPrecision::usual) noexcept;
  static void rms_norm(const Elsewhere&, In, std::span<const float>, float, Out) noexcept;
  static void rms_norm_heads(const Elsewhere&, Out, std::span<const float>, float) noexcept;
  static void layer_norm(const Elsewhere&, In, std::span<const float>, std::span<const float>, float, Out) noexcept;
  static void linear_heads(const Elsewhere&, const Scratch&, In, std::size_t, std::span<const Weight>, Out, std::size_t) noexcept;
  static void copy_heads(const Elsewhere&, In, std::size_t, Out, std::size_t, std::size_t, std::size_t) noexcept;
  static void scale_and_cap(const Elsewhere&, Out, float, float) noexcept;
  static void scale_rows(const Elsewhere&, Out, std::span<const float>) noexcept;
  static void clip(const Elsewhere&, Out, float) noexcept;
  template <class Router>
  static void route(const Elsewhere&, const RouterShape&, In, std::span<const float>, std::span<Choice>) noexcept;
  template <class Q, class F, bool WeighsInput>
  static void experts(const Elsewhere&, const Scratch&, In, std::span<const Expert<Weight>>, std::span<const Choice>,
                      const ExpertBuffers&, Out, float) noexcept;
  static void rope(const Elsewhere&, Out, std::size_t, In, In, RopeStyle, std::size_t = 0) noexcept;
  static void append(const Elsewhere&, const KvLayout&, std::byte*, const BatchView&, In, In) noexcept;
  static void attention(const Elsewhere&, const Scratch&, const AttentionShape&, const KvLayout&, std::byte*, const BatchView&,
                        In, Out) noexcept;
  template <class F>
  static void gated(const Elsewhere&, Out, In, float = 0) noexcept;
  static void add(const Elsewhere&, Out, In, float = 1) noexcept;
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
PROBE(Gemma3)
PROBE(Olmo2)
PROBE(Cohere2)
PROBE(Llama4)
PROBE(DeepSeekV3)

}  // namespace nihao
