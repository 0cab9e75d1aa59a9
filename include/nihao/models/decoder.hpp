// The decoder: embedding, blocks, final norm, head. One forward pass for every family, every batch and every device.
#pragma once

#include "../base/hooks.hpp"
#include "../format/quant.hpp"
#include "../kernels/cpu/ops.hpp"
#include "../layers/block.hpp"
#include "batch.hpp"
#include "loader.hpp"

namespace nihao {

/// The block kinds of a family, in the order that a config's layers name them.
template <class... Blocks>
struct Layers {
  static_assert(sizeof...(Blocks) == 1, "nihao::Layers takes one block kind.");
};

/// Memory for the steps of one session on device D.
template <class D>
struct Workspace {
  Activations activations;
  typename Ops<D>::Scratch scratch;
  PageBuffer output;  ///< normed rows [outputs, d_model], then logits [outputs, vocab]
  std::size_t max_rows = 0;
};

/// S: sizes known at compile time; L: Layers<Block<...>>; Q: Quant<...>; D: the device.
template <Sizes S, class L, class Q, class D = Cpu>
class Decoder;

template <Sizes S, class B, class Q, class D>
class Decoder<S, Layers<B>, Q, D> {
 public:
  using Device = D;
  static constexpr Sizes sizes = S;
  using BlockWeights = typename B::template Weights<D>;

  /// Takes the weights of `source`. Errors: mismatch (a static size or format that the file contradicts, a tensor's shape),
  /// missing, unsupported (a tensor too many), out_of_memory, cancelled.
  [[nodiscard]] static Expected<Decoder> load(Config config, WeightSource source, const D& device, const Hooks& hooks = {}) {
    NIHAO_CHECK(agrees(config));
    Decoder model(std::move(config), std::move(source), device);
    const Config& c = model.config_;
    const std::size_t d = c.d_model, q_width = std::size_t{c.heads} * c.head_dim, kv_width = std::size_t{c.kv_heads} * c.head_dim;
    Loader<D> loader(model.source_, model.device_, model.arena_, hooks, B::Placement::after);
    NIHAO_TRY(model.final_norm_, loader.norm(Role::final_norm, 0, d));
    if (loader.has(Role::head)) {
      NIHAO_TRY(model.embedding_, loader.table(Role::embedding, c.vocab, d, &Q::admits));
      NIHAO_TRY(model.head_, loader.linear(Role::head, 0, c.vocab, d, false, &Q::admits));
    } else {  // tied: the head multiplies with the embedding
      NIHAO_TRY(model.head_, loader.linear(Role::embedding, 0, c.vocab, d, false, &Q::admits));
      model.embedding_ = model.head_;
    }
    constexpr GqaOptions options = B::Attn::options;
    for (std::size_t i = 0; i < c.layers.size(); ++i) {
      BlockWeights& w = model.layers_.emplace_back();
      if constexpr (B::Placement::before) {
        NIHAO_TRY(w.attn_norm, loader.norm(Role::attn_norm, i, d));
        NIHAO_TRY(w.ffn_norm, loader.norm(Role::ffn_norm, i, d));
      }
      if constexpr (B::Placement::after) {
        NIHAO_TRY(w.attn_post_norm, loader.norm(Role::attn_post_norm, i, d));
        NIHAO_TRY(w.ffn_post_norm, loader.norm(Role::ffn_post_norm, i, d));
      }
      NIHAO_TRY(w.attention.q, loader.linear(Role::q, i, q_width, d, options.qkv_bias, &Q::admits));
      NIHAO_TRY(w.attention.k, loader.linear(Role::k, i, kv_width, d, options.qkv_bias, &Q::admits));
      NIHAO_TRY(w.attention.v, loader.linear(Role::v, i, kv_width, d, options.qkv_bias, &Q::admits));
      NIHAO_TRY(w.attention.o, loader.linear(Role::o, i, d, q_width, false, &Q::admits));
      if constexpr (options.qk_norm != QkNorm::none) {
        constexpr bool whole = options.qk_norm == QkNorm::whole;
        NIHAO_TRY(w.attention.q_norm, loader.norm(Role::q_norm, i, whole ? q_width : c.head_dim));
        NIHAO_TRY(w.attention.k_norm, loader.norm(Role::k_norm, i, whole ? kv_width : c.head_dim));
      }
      NIHAO_TRY(w.ffn.gate, loader.linear(Role::gate, i, c.d_ff, d, false, &Q::admits));
      NIHAO_TRY(w.ffn.up, loader.linear(Role::up, i, c.d_ff, d, false, &Q::admits));
      NIHAO_TRY(w.ffn.down, loader.linear(Role::down, i, d, c.d_ff, false, &Q::admits));
    }
    if (!c.rope_factors.empty()) loader.take("rope_freqs.weight");
    NIHAO_CHECK(loader.finish());
    model.source_.tensors->release();  // names, the tokenizer's lists: they have been read
    hooks.log(LogLevel::info, concat("loaded ", printable(c.architecture), ": ", c.layers.size(), " layers of width ", d, ", ",
                                     c.vocab, " tokens, on ", device.describe()));
    return model;
  }

  [[nodiscard]] const Config& config() const noexcept { return config_; }
  [[nodiscard]] const D& device() const noexcept { return device_; }
  [[nodiscard]] const TensorFile& tensors() const noexcept { return *source_.tensors; }

  /// What each layer asks of a cache.
  [[nodiscard]] std::vector<CacheSpec> cache_specs() const {
    return std::vector<CacheSpec>(layers_.size(), B::Attn::cache_spec(config_));
  }

  /// Memory for steps of up to max_rows tokens over up to max_positions. `device` may differ from the model's in its threads, not
  /// in whether it is exact. Errors: out_of_memory.
  [[nodiscard]] Expected<Workspace<D>> workspace(std::size_t max_rows, std::size_t max_positions) const {
    const std::size_t q_width = std::size_t{config_.heads} * config_.head_dim,
                      kv_width = std::size_t{config_.kv_heads} * config_.head_dim;
    Workspace<D> w;
    w.max_rows = max_rows;
    NIHAO_TRY(w.activations, Activations::create({max_rows, config_.d_model, q_width, kv_width, config_.d_ff,
                                                  config_.head_dim / 2, ropes_.size()}));
    NIHAO_TRY(w.scratch, Ops<D>::Scratch::create(
                             device_, {max_rows, std::max({std::size_t{config_.d_model}, q_width, std::size_t{config_.d_ff}}),
                                       config_.head_dim, config_.heads, max_positions}));
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
    for (std::size_t kind = 0; kind < ropes_.size(); ++kind)
      for (std::size_t t = 0; t < rows; ++t)
        rope_angles(ropes_[kind], batch.position[t], a.cos(rows, kind).row(t), a.sin(rows, kind).row(t));

    for (std::size_t i = 0; i < layers_.size(); ++i)
      B::template forward<S, Q>(device_, workspace.scratch, layers_[i], config_, AttentionStep{batch, cache, i}, a, observer);

    if constexpr (O::active) {  // the head needs the outputs' rows alone; who watches sees all
      B::Placement::Norm::apply(device_, MatrixView<const float>(x), final_norm_, config_.norm_eps, a.branch(rows));
      observer.see({"final_norm", -1, a.branch(rows)});
    }
    const MatrixView<float> normed(reinterpret_cast<float*>(workspace.output.data()), outputs, config_.d_model);
    const MatrixView<float> logits(normed.data() + outputs * config_.d_model, outputs, config_.vocab);
    for (std::size_t i = 0; i < outputs; ++i)
      B::Placement::Norm::apply(device_, MatrixView<const float>(x).slice_rows(plan.outputs()[i], 1), final_norm_,
                                config_.norm_eps, normed.slice_rows(i, 1));
    if (outputs > 0) {
      const std::array<typename Ops<D>::Job, 1> head{head_.to(logits)};
      Ops<D>::template linear<Q>(device_, workspace.scratch, normed, head, InputPrecision::fine);
      if constexpr (O::active) observer.see({"logits", -1, logits, head_.work(outputs)});
    }
    return logits;
  }

 private:
  Decoder(Config config, WeightSource source, const D& device)
      : config_(std::move(config)), source_(std::move(source)), device_(device) {
    for (const RopeParams& params : config_.ropes) {
      ropes_.push_back(rope_frequencies(params, config_.head_dim));
      for (std::size_t i = 0; i < config_.rope_factors.size(); ++i)
        ropes_.back().frequency[i] /= static_cast<double>(config_.rope_factors[i]);
    }
  }

  // The first static size that the file contradicts.
  [[nodiscard]] static Expected<void> agrees(const Config& config) {
    const Sizes file = config.sizes();
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
  std::vector<RopeFrequencies> ropes_;
  Linear<D> embedding_, head_;
  std::vector<float> final_norm_;
  std::vector<BlockWeights> layers_;
};

}  // namespace nihao
