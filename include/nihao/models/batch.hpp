// What one step is asked to do: tokens of several sequences, and whose logits are wanted. Prefill, decode and anything between
// are the same call; only the batch differs.
#pragma once

#include "../cache/kv_cache.hpp"
#include "../text/token.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace nihao {

/// Which rows of a sequence's part are to give logits.
enum class Wanted : std::uint8_t { none, last, all };

/// The adapter that ContextOptions name.
inline constexpr std::uint32_t usual_adapter = UINT32_MAX - 1;

/// The next tokens of one sequence. They stand at the positions that follow what its cache holds.
struct SequenceTokens {
  std::size_t sequence = 0;         ///< which of the cache's
  std::span<const TokenId> tokens;  ///< at least one
  Wanted wanted = Wanted::last;
  std::uint32_t adapter = usual_adapter;  ///< which of LoadOptions::adapters works on it, or no_adapter
};

/// What a step may have.
struct StepLimits {
  std::uint32_t vocab;
  std::size_t rows;
  std::size_t adapters = 0;            ///< how many the model has
  std::uint32_t adapter = no_adapter;  ///< of who names none
};

/// A batch laid out for the device. Reused from step to step: after the first of a size nothing allocates.
class Plan {
 public:
  /// Checks `batch` and takes its positions in `cache`. Errors: invalid_argument (no tokens, an id outside the vocabulary, a
  /// sequence twice, more rows than limits.rows, no such adapter), context_full. After an error the cache is as it was.
  [[nodiscard]] Expected<void> reserve(std::span<const SequenceTokens> batch, KvCache& cache, const StepLimits& limits) {
    clear();
    NIHAO_CHECK(check(batch, cache, limits));
    for (const SequenceTokens& s : batch) {
      const std::size_t before = cache.length(s.sequence);
      if (auto room = cache.extend(s.sequence, s.tokens.size()); !room) {
        for (std::size_t i = 0; i < sequences_.size(); ++i)
          cache.truncate(batch[i].sequence, cache.length(batch[i].sequence) - batch[i].tokens.size());
        return std::move(room).error();
      }
      const auto first = static_cast<std::uint32_t>(ids_.size());
      sequences_.push_back({first, static_cast<std::uint32_t>(s.tokens.size()), cache.blocks(s.sequence), adapter_of(s, limits)});
      for (std::size_t i = 0; i < s.tokens.size(); ++i) {
        ids_.push_back(s.tokens[i]);
        positions_.push_back(static_cast<std::int32_t>(before + i));
        if (s.wanted == Wanted::all || (s.wanted == Wanted::last && i + 1 == s.tokens.size()))
          outputs_.push_back(first + static_cast<std::uint32_t>(i));
      }
    }
    return {};
  }

  [[nodiscard]] BatchView view() const noexcept { return {positions_, sequences_}; }
  [[nodiscard]] std::span<const TokenId> ids() const noexcept { return ids_; }
  /// Rows that give logits, in order.
  [[nodiscard]] std::span<const std::uint32_t> outputs() const noexcept { return outputs_; }

 private:
  void clear() {
    ids_.clear();
    positions_.clear();
    outputs_.clear();
    sequences_.clear();
  }
  [[nodiscard]] static std::uint32_t adapter_of(const SequenceTokens& s, const StepLimits& limits) noexcept {
    return s.adapter == usual_adapter ? limits.adapter : s.adapter;
  }
  [[nodiscard]] static Expected<void> check(std::span<const SequenceTokens> batch, const KvCache& cache,
                                            const StepLimits& limits) {
    std::size_t rows = 0;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const SequenceTokens& s = batch[i];
      if (s.tokens.empty())
        return Error{ErrorCode::invalid_argument, concat("sequence ", s.sequence, " has no tokens in this step")};
      if (s.sequence >= cache.sequences())
        return Error{ErrorCode::invalid_argument,
                     concat("there is no sequence ", s.sequence, " in a cache of ", cache.sequences())};
      for (std::size_t j = 0; j < i; ++j)
        if (batch[j].sequence == s.sequence)
          return Error{ErrorCode::invalid_argument, concat("sequence ", s.sequence, " is in the batch twice")};
      for (const TokenId id : s.tokens)
        if (id < 0 || static_cast<std::uint32_t>(id) >= limits.vocab)
          return Error{ErrorCode::invalid_argument, concat("token id ", id, " is outside the vocabulary of ", limits.vocab)};
      if (const std::uint32_t adapter = adapter_of(s, limits); adapter != no_adapter && adapter >= limits.adapters)
        return Error{ErrorCode::invalid_argument, concat("there is no adapter ", adapter, " of ", limits.adapters)};
      rows += s.tokens.size();
    }
    if (rows == 0) return Error{ErrorCode::invalid_argument, "the batch is empty"};
    if (rows > limits.rows)
      return Error{ErrorCode::invalid_argument, concat("a step takes ", limits.rows, " tokens, and the batch has ", rows)};
    return {};
  }

  std::vector<TokenId> ids_;
  std::vector<std::int32_t> positions_;
  std::vector<std::uint32_t> outputs_;
  std::vector<SequenceRows> sequences_;
};

}  // namespace nihao
