// The decoder: embedding, blocks, final norm, head. One forward pass for every family, every batch and every device.
#pragma once

#include "../base/hooks.hpp"
#include "../format/quant.hpp"
#include "../kernels/cpu/ops.hpp"
#include "../layers/block.hpp"
#include "../layers/mla.hpp"
#include "../layers/moe.hpp"
#include "adapter.hpp"
#include "batch.hpp"
#include "loader.hpp"
#include "quant_mix.hpp"

#include <tuple>

namespace nihao {

/// The block kinds of a family; a config's layers say which of them each is (LayerConfig::kind).
template <class... Blocks>
struct Layers {
  static_assert(sizeof...(Blocks) > 0, "nihao::Layers takes at least one block kind, such as Block<...>.");
};

/// Memory for the steps of one session on device D.
template <class D>
struct Workspace {
  Activations activations;
  typename Ops<D>::Scratch scratch;
  PageBuffer low;     ///< [max_rows, rank] of adapters; empty without
  PageBuffer output;  ///< normed rows [outputs, d_model], then logits [outputs, vocab]
  std::size_t max_rows = 0;
  std::vector<RopeFrequencies> ropes;  ///< of Config::ropes, for sequences that grow to this session's positions
};

/// S: sizes known at compile time; L: Layers<Block<...>, ...>; Q: Quant<...>; D: the device.
template <Sizes S, class L, class Q, class D = Cpu>
class Decoder;

template <Sizes S, class B, class... Others, class Q, class D>
class Decoder<S, Layers<B, Others...>, Q, D> {
 public:
  using Device = D;
  using Norm = typename B::Placement::Norm;
  static constexpr Sizes sizes = S;
  static constexpr std::size_t kinds = 1 + sizeof...(Others);

  /// Takes the weights of `source`. Errors: mismatch (a static size or format that the file contradicts, a tensor's shape),
  /// missing, unsupported (a tensor too many), out_of_memory, cancelled.
  [[nodiscard]] static Expected<Decoder> load(Config config, WeightSource source, const D& device, const Hooks& hooks = {}) {
    NIHAO_CHECK(agrees(config));
    Decoder model(std::move(config), std::move(source), device);
    const Config& c = model.config_;
    Loader<D> loader(model.source_, model.device_, model.arena_, hooks, c.architecture, &admits<Q>, AdmitsByRole<Q>);
    NIHAO_TRY(model.final_norm_, loader.norm(Role::final_norm, 0, c));
    if (loader.has(Role::head)) {
      NIHAO_TRY(model.embedding_, loader.table(Role::embedding, c.vocab, c.d_model));
      NIHAO_TRY(model.head_, loader.linear(Role::head, 0, c.vocab, c.d_model, c.head_bias));
    } else {  // tied: the head multiplies with the embedding
      NIHAO_TRY(model.head_, loader.linear(Role::embedding, 0, c.vocab, c.d_model, false));
      model.embedding_ = model.head_;
    }
    for (std::size_t i = 0; i < c.layers.size(); ++i) {
      Expected<void> done;
      model.places_.push_back(model.with_kind(c.layers[i].kind, [&]<class Kind>(auto& layers) {
        auto weights = Kind::template load<D>(loader, c, i);
        if (weights) layers.push_back(*std::move(weights));
        else done = std::move(weights).error();
        return layers.size() - 1;
      }));
      NIHAO_CHECK(done);
    }
    for (const std::string_view rope : {"rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight"})
      loader.take(rope);  // the config has them
    NIHAO_CHECK(loader.finish(c));
    model.reorders_ = loader.reorders();
    std::vector<LinearName> linears = loader.take_linears();
    linears[model.head_.id].tensor.clear();  // adapters do not work on it
    for (const AdapterSource& adapter : model.source_.adapters)
      NIHAO_CHECK(add_adapter(model.device_, model.arena_, linears, adapter, model.adapters_));
    model.source_.adapters.clear();
    model.source_.tensors->release();  // names, the tokenizer's lists: they have been read
    hooks.log(LogLevel::info, concat("loaded ", printable(c.architecture), ": ", c.layers.size(), " layers of width ", c.d_model,
                                     ", ", c.vocab, " tokens, on ", device.describe()));
    return model;
  }

  /// How many adapters were loaded with it: SequenceTokens::adapter is less.
  [[nodiscard]] std::size_t adapters() const noexcept { return adapters_.size(); }

  [[nodiscard]] const Config& config() const noexcept { return config_; }
  [[nodiscard]] const D& device() const noexcept { return device_; }
  [[nodiscard]] const TensorFile& tensors() const noexcept { return *source_.tensors; }

  /// What each layer asks of a cache.
  [[nodiscard]] std::vector<CacheSpec> cache_specs() const {
    std::vector<CacheSpec> specs(config_.layers.size());
    for (std::size_t i = 0; i < specs.size(); ++i)
      specs[i] = with_kind(config_.layers[i].kind, [&]<class Kind>(const auto&) { return Kind::Attn::cache_spec(config_); });
    return specs;
  }

  /// Memory for steps of up to max_rows tokens over up to max_positions. `device` may differ from the model's in its threads, not
  /// in whether it is exact. Errors: out_of_memory.
  [[nodiscard]] Expected<Workspace<D>> workspace(std::size_t max_rows, std::size_t max_positions) const {
    Workspace<D> w;
    w.max_rows = max_rows;
    w.ropes.reserve(config_.ropes.size());
    for (const RopeParams& rope : config_.ropes)
      w.ropes.push_back(rope_frequencies(rope, config_.rotated_width(), max_positions));
    std::size_t area = 0, widest = config_.d_model;
    CacheSpec largest{};
    each_kind([&]<class Kind>() {
      area = std::max({area, Kind::Attn::area(config_), Kind::Ffn::area(config_)});
      widest = std::max({widest, Kind::Attn::widest(config_), Kind::Ffn::widest(config_)});
      const CacheSpec spec = Kind::Attn::cache_spec(config_);
      largest.head_dim = std::max(largest.head_dim, spec.head_dim);
      largest.value_dim = std::max(largest.value_dim, spec.value_dim > 0 ? spec.value_dim : spec.head_dim);
    });
    const std::size_t least = std::max<std::size_t>(1, config_.router.chosen);
    NIHAO_TRY(w.activations,
              Activations::create({max_rows, config_.d_model, config_.rotated_width() / 2, w.ropes.size(), area, least}));
    NIHAO_TRY(w.scratch, Ops<D>::Scratch::create(device_, {std::max(max_rows, least), widest, largest.head_dim, config_.heads,
                                                           max_positions, largest.value_dim, reorders_}));
    if (!adapters_.empty()) { NIHAO_TRY(w.low, PageBuffer::allocate(max_rows * adapters_.rank() * sizeof(float))); }
    const std::size_t row = std::size_t{config_.d_model} + config_.vocab;
    NIHAO_TRY(w.output, PageBuffer::allocate(max_rows * row * sizeof(float), Pages::small));
    return w;
  }

  /// One step: the rows of `plan` through all layers, their keys and values into `cache`. Returns the logits of the plan's
  /// outputs, [outputs, vocab], valid until the workspace's next step. Neither fails nor allocates: plan.reserve has checked.
  template <Observer O>
  [[nodiscard]] MatrixView<const float> forward(const Plan& plan, const KvCache& cache, const Workspace<D>& workspace,
                                                O& observer) const noexcept {
    const BatchView batch = plan.view();
    const std::size_t rows = batch.rows(), outputs = plan.outputs().size();
    const Activations& a = workspace.activations;
    const MatrixView<float> x = a.x(rows);

    if constexpr (O::active) observer.see({"begin", -1, {}});
    Ops<D>::embed(device_, embedding_.weight, plan.ids(), config_.embedding_scale, x);
    if constexpr (O::active) observer.see({"embed", -1, x});
    for (std::size_t kind = 0; kind < workspace.ropes.size(); ++kind)
      for (std::size_t t = 0; t < rows; ++t)
        rope_angles(workspace.ropes[kind], batch.position[t], a.cos(rows, kind).row(t), a.sin(rows, kind).row(t));
    if (config_.temperature_scale != 0)
      for (std::size_t t = 0; t < rows; ++t) a.temperature(rows)[t] = config_.row_temperature(batch.position[t]);

    const Projector<D> project{device_, workspace.scratch, batch, &adapters_,
                               MatrixView<float>(reinterpret_cast<float*>(workspace.low.data()), rows, adapters_.rank())};
    for (std::size_t i = 0; i < places_.size(); ++i)
      with_kind(config_.layers[i].kind, [&]<class Kind>(const auto& layers) {
        Kind::template forward<S, Q>(project, layers[places_[i]], config_, AttentionStep{batch, cache, i}, a, observer);
      });

    if constexpr (O::active) {  // the head needs the outputs' rows alone; who watches sees all
      Norm::apply(device_, MatrixView<const float>(x), final_norm_, config_.norm_eps, a.branch(rows));
      observer.see({"final_norm", -1, a.branch(rows)});
    }
    const MatrixView<float> normed(reinterpret_cast<float*>(workspace.output.data()), outputs, config_.d_model);
    const MatrixView<float> logits(normed.data() + outputs * config_.d_model, outputs, config_.vocab);
    for (std::size_t i = 0; i < outputs; ++i)
      Norm::apply(device_, MatrixView<const float>(x).slice_rows(plan.outputs()[i], 1), final_norm_, config_.norm_eps,
                  normed.slice_rows(i, 1));
    if (outputs > 0) {
      const std::array<typename Ops<D>::Job, 1> head{head_.to(logits)};
      Ops<D>::template linear<Q>(device_, workspace.scratch, normed, head, InputPrecision::fine);
      if (config_.logit_scale != 1 || config_.logit_softcap != 0)
        Ops<D>::scale_and_cap(device_, logits, config_.logit_scale, config_.logit_softcap);
      if constexpr (O::active) observer.see({"logits", -1, logits, head_.work(outputs)});
    }
    return logits;
  }

 private:
  Decoder(Config config, WeightSource source, const D& device)
      : config_(std::move(config)), source_(std::move(source)), device_(device) {}

  // f<Kind>() for each block kind.
  template <class F>
  static void each_kind(F&& f) {
    f.template operator()<B>();
    (f.template operator()<Others>(), ...);
  }
  // f<Kind>(its layers) for the kind of that number, which check_config has made sure of.
  template <class F>
  decltype(auto) with_kind(std::uint32_t kind, F&& f) {
    return at_kind<0, B, Others...>(layers_, kind, f);
  }
  template <class F>
  decltype(auto) with_kind(std::uint32_t kind, F&& f) const {
    return at_kind<0, B, Others...>(layers_, kind, f);
  }
  template <std::size_t Number, class Kind, class... Rest, class T, class F>
  static decltype(auto) at_kind(T& layers, std::uint32_t kind, F& f) {
    if constexpr (sizeof...(Rest) > 0)
      if (kind != Number) return at_kind<Number + 1, Rest...>(layers, kind, f);
    return f.template operator()<Kind>(std::get<Number>(layers));
  }

  // The first static size that the file contradicts.
  [[nodiscard]] static Expected<void> agrees(const Config& config) {
    const Sizes file = config.sizes();
    for (const LayerConfig& layer : config.layers)
      if (layer.kind >= kinds) return Error{ErrorCode::mismatch, concat("a layer of kind ", layer.kind, " of ", kinds)};
    const struct {
      std::string_view name;
      std::int32_t type, file;
    } all[] = {{"d_model", S.d_model, file.d_model},    {"layers", S.layers, file.layers},       {"heads", S.heads, file.heads},
               {"kv_heads", S.kv_heads, file.kv_heads}, {"head_dim", S.head_dim, file.head_dim}, {"d_ff", S.d_ff, file.d_ff},
               {"vocab", S.vocab, file.vocab}};
    for (const auto& size : all)
      if (size.type != dyn && size.type != size.file)
        return Error{ErrorCode::mismatch,
                     concat(size.name, " is ", size.file, " in the file and ", size.type, " in the model's type")};
    return {};
  }

  Config config_;
  WeightSource source_;
  D device_;
  Arena arena_;
  Linear<D> embedding_, head_;
  NormWeights final_norm_;
  std::tuple<std::vector<typename B::template Weights<D>>, std::vector<typename Others::template Weights<D>>...> layers_;
  AdapterTable<D> adapters_;
  bool reorders_ = false;            // see ScratchShape
  std::vector<std::size_t> places_;  // of each layer among those of its kind
};

}  // namespace nihao
