// What a session needs of a model at work, whatever the model's type.
#pragma once

#include "../base/hooks.hpp"
#include "../base/str.hpp"
#include "../device/observer.hpp"
#include "batch.hpp"

#include <algorithm>
#include <span>
#include <type_traits>

namespace nihao {

struct ContextOptions {
  std::size_t positions = 0;  ///< capacity of each sequence; 0: the model's trained context, at most 4096
  std::size_t sequences = 1;
  std::size_t chunk = 512;  ///< most tokens in a step; longer prompts are cut
  KvType kv = KvType::f16;
  std::uint32_t adapter = no_adapter;  ///< of the sequences that do not name one
};

/// An observer behind one pointer, for callers that do not know the model's type.
class ObserverRef {
 public:
  static constexpr bool active = true;
  template <class O>
    requires(!std::is_same_v<O, ObserverRef>)
  explicit ObserverRef(O& observer) noexcept
      : object_(&observer), see_([](void* o, const Seen& seen) { static_cast<O*>(o)->see(seen); }) {}
  void see(const Seen& seen) const { see_(object_, seen); }

 private:
  void* object_;
  void (*see_)(void*, const Seen&);
};

/// What a session needs of a model, whatever its type.
class ModelContext {
 public:
  virtual ~ModelContext() = default;

  /// One forward pass. Returns logits [wanted rows, vocab], valid until the next step. Errors: invalid_argument, context_full;
  /// the cache is then as before.
  [[nodiscard]] virtual Expected<MatrixView<const float>> step(std::span<const SequenceTokens> batch,
                                                               const ObserverRef* observer = nullptr) = 0;

  /// Tokens of one sequence in steps of at most `chunk`, asking `hooks` between them. Returns the logits of the last. Errors: as
  /// step, and cancelled; positions computed so far stay in the cache.
  [[nodiscard]] Expected<MatrixView<const float>> prefill(std::size_t sequence, std::span<const TokenId> tokens,
                                                          const Hooks& hooks = {}) {
    MatrixView<const float> logits;
    if (tokens.size() > cache_.capacity() - std::min(cache_.capacity(), cache_.length(sequence)))
      return Error{ErrorCode::context_full, concat("the context holds ", cache_.capacity(), " tokens; ", cache_.length(sequence),
                                                   " are used, and ", tokens.size(), " more do not fit")};
    for (std::size_t done = 0; done < tokens.size();) {
      if (hooks.stop.stop_requested()) return Error{ErrorCode::cancelled, "stopped while reading the prompt"};
      const std::size_t count = std::min(chunk_, tokens.size() - done);
      const SequenceTokens part{sequence, tokens.subspan(done, count),
                                done + count == tokens.size() ? Wanted::last : Wanted::none};
      NIHAO_TRY(logits, step(std::span(&part, 1)));
      hooks.report("reading", done += count, tokens.size());
    }
    return logits;
  }

  [[nodiscard]] KvCache& cache() noexcept { return cache_; }
  [[nodiscard]] const KvCache& cache() const noexcept { return cache_; }
  [[nodiscard]] std::size_t chunk() const noexcept { return chunk_; }
  [[nodiscard]] std::uint32_t adapter() const noexcept { return adapter_; }

 protected:
  ModelContext() = default;
  ModelContext(ModelContext&&) = default;
  ModelContext& operator=(ModelContext&&) = default;

  KvCache cache_;
  Plan plan_;
  std::size_t chunk_ = 0;
  std::uint32_t adapter_ = no_adapter;
};

}  // namespace nihao
