// A model at work: its cache, its memory, and steps. One per session; many share one model.
#pragma once

#include "decoder.hpp"
#include "model_context.hpp"

namespace nihao {

/// The context of a model of type M. The model outlives it.
template <class M>
class Context final : public ModelContext {
 public:
  /// Errors: invalid_argument, out_of_memory.
  [[nodiscard]] static Expected<Context> create(const M& model, const ContextOptions& options = {}) {
    if (options.chunk == 0 || options.chunk > (std::size_t{1} << 20))
      return Error{ErrorCode::invalid_argument, concat("a chunk of ", options.chunk, " tokens is out of range")};
    Context context(model);
    const std::size_t positions =
        options.positions > 0 ? options.positions : std::clamp<std::size_t>(model.config().context, 1, 4096);
    context.adapter_ = options.adapter;
    context.chunk_ = std::min(options.chunk, positions * std::max<std::size_t>(options.sequences, 1));
    const auto specs = model.cache_specs();
    NIHAO_TRY(context.cache_, KvCache::create(specs, options.kv, positions, options.sequences));
    NIHAO_TRY(context.workspace_, model.workspace(context.chunk_, positions));
    return context;
  }

  [[nodiscard]] Expected<MatrixView<const float>> step(std::span<const SequenceTokens> batch,
                                                       const ObserverRef* observer = nullptr) override {
    NIHAO_CHECK(plan_.reserve(batch, cache_, {model_->config().vocab, chunk_, model_->adapters(), adapter_}));
    if (observer != nullptr) return model_->forward(plan_, cache_, workspace_, *observer);
    NoTrace nobody;
    return model_->forward(plan_, cache_, workspace_, nobody);
  }

 private:
  explicit Context(const M& model) noexcept : model_(&model) {}
  const M* model_;
  Workspace<typename M::Device> workspace_;
};

}  // namespace nihao
