// Making an importance matrix: a text runs through the model, and an observer sums the squares of what each matrix is multiplied
// with.
#pragma once

#include "../files/tensor_file.hpp"
#include "../layers/config.hpp"
#include "../models/model_context.hpp"
#include "importance.hpp"
#include "tensor_role.hpp"

#include <array>

namespace nihao {

/// An observer of steps. What it cannot see it leaves out: the inputs of experts' way back (they never are together in one
/// place), of the heads' own matrices of latent attention, and of gate and up where no norm stands before them (OLMo 2). For one
/// sequence at a time, or several.
class ImportanceCollector {
 public:
  static constexpr bool active = true;

  explicit ImportanceCollector(const Config& config) : config_(config), layers_(config.layers.size()) {}

  void see(const Seen& seen) {
    if (seen.layer >= static_cast<int>(layers_.size())) return;
    const auto layer = static_cast<std::size_t>(std::max(seen.layer, 0));
    Inputs& here = layers_[layer];
    const std::string_view name = seen.name;
    if (name == "input_norm") add(here[attention], seen.values);
    else if (name == "embed") embedded(0, seen.values);
    else if (name == "hidden") embedded(layer + 1, seen.values);
    else if (name == "q_a_layernorm") add(here[queries], seen.values);
    else if (name == "kv_a_layernorm") add(here[keys], seen.values);
    else if (name == "attn_heads_concat") add(here[heads], seen.values);
    else if (name == "post_attention_norm") add(here[feed_forward], seen.values), keep(seen.values);
    else if (name == "router.experts") route(here, seen.values);
    else if (name == "ffn_act") add(here[gated], seen.values);
    else if (name == "shared.ffn_act") add(here[shared], seen.values);
    else if (name == "final_norm") add(final_, seen.values);
  }

  /// What was seen, for those matrices that `tensors`, the model's GGUF file, has. An embedding that is the head too has no
  /// entry: its rows are looked up as well, and all columns of those matter alike. Errors: numeric (an input was no number).
  [[nodiscard]] Expected<ImportanceMatrix> matrix(const TensorFile& tensors) const {
    ImportanceMatrix result;
    const auto put = [&](Role role, std::size_t layer, const ImportanceEntry& sums) -> Expected<void> {
      const std::string name = tensor_name({NameStyle::gguf, config_.architecture, false}, role, layer);
      if (name.empty() || sums.rows.empty() || tensors.find(concat(name, ".weight")) == nullptr) return {};
      for (const float s : sums.sums)
        if (!std::isfinite(s))
          return Error{ErrorCode::numeric, "an input of it is no number", concat("tensor ", name, ".weight")};
      result.add({concat(name, ".weight"), sums.sums, sums.rows});
      return {};
    };
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const Inputs& in = layers_[i];
      const bool side_by_side = in[feed_forward].rows.empty() && config_.architecture == "cohere2";
      const auto& ff = side_by_side ? in[attention] : in[feed_forward];
      for (const Role role : {Role::q, Role::k, Role::v, Role::qkv, Role::q_a, Role::kv_a}) {
        if (role == Role::q && !in[queries].rows.empty()) continue;
        NIHAO_CHECK(put(role, i, in[attention]));
      }
      NIHAO_CHECK(put(Role::q_b, i, in[queries]));
      NIHAO_CHECK(put(Role::kv_b, i, in[keys]));
      NIHAO_CHECK(put(Role::o, i, in[heads]));
      const bool experts = !in[expert_inputs].rows.empty();
      if (!experts)
        for (const Role role : {Role::gate, Role::up, Role::gate_up}) NIHAO_CHECK(put(role, i, ff));
      NIHAO_CHECK(put(Role::down, i, in[gated]));
      for (const Role role : {Role::expert_gate, Role::expert_up, Role::expert_gate_up})
        NIHAO_CHECK(put(role, i, in[expert_inputs]));
      if (experts)
        for (const Role role : {Role::shared_gate, Role::shared_up}) NIHAO_CHECK(put(role, i, ff));
      NIHAO_CHECK(put(Role::shared_down, i, in[shared]));
    }
    NIHAO_CHECK(put(Role::head, 0, final_));
    return result;
  }

 private:
  // The places of a layer whose values go into matrices.
  enum Place : std::uint8_t { attention, queries, keys, heads, feed_forward, expert_inputs, gated, shared, places };
  using Inputs = std::array<ImportanceEntry, places>;

  static void add(ImportanceEntry& to, MatrixView<const float> values, std::size_t matrix = 0, std::size_t matrices = 1) {
    if (to.rows.empty()) to.rows.assign(matrices, 0.0f), to.sums.assign(matrices * values.cols(), 0.0f);
    if (to.sums.size() != matrices * values.cols()) return;
    float* const sums = to.sums.data() + matrix * values.cols();
    for (std::size_t r = 0; r < values.rows(); ++r) {
      const std::span<const float> row = values.row(r);
      for (std::size_t i = 0; i < row.size(); ++i) sums[i] += row[i] * row[i];
    }
    to.rows[matrix] += static_cast<float>(values.rows());
  }
  // The residual stream is a layer's input where the family has no norm before it.
  void embedded(std::size_t layer, MatrixView<const float> values) {
    if (config_.architecture == "olmo2" && layer < layers_.size()) add(layers_[layer][attention], values);
  }
  void keep(MatrixView<const float> values) {
    if (config_.router.experts == 0) return;
    kept_cols_ = values.cols();
    kept_.clear();
    for (std::size_t r = 0; r < values.rows(); ++r) kept_.insert(kept_.end(), values.row(r).begin(), values.row(r).end());
  }
  void route(Inputs& here, MatrixView<const float> choices) {
    if (kept_cols_ == 0 || kept_.size() != choices.rows() * kept_cols_) return;
    for (std::size_t r = 0; r < choices.rows(); ++r)
      for (const float expert : choices.row(r))
        add(here[expert_inputs], {kept_.data() + r * kept_cols_, 1, kept_cols_}, static_cast<std::size_t>(expert),
            config_.router.experts);
  }

  const Config& config_;
  std::vector<Inputs> layers_;
  ImportanceEntry final_;
  std::vector<float> kept_;  // what the layer's feed-forward has read
  std::size_t kept_cols_ = 0;
};

struct CollectOptions {
  std::size_t window = 512;           ///< tokens read together
  std::size_t most_windows = 0;       ///< 0: all of the text
  std::optional<TokenId> begin = {};  ///< stands in for the first token of every window: the model's BOS, if it wants one
  Hooks hooks = {};
};

/// Runs `tokens` through the model a window at a time, from an empty cache each; what is left at the end is dropped. Sequence 0
/// of the context is overwritten. `config` and `tensors` are the model's, from GGUF. Errors: invalid_argument (a text shorter
/// than a window), context_full, numeric, cancelled.
[[nodiscard]] inline Expected<ImportanceMatrix> collect_importance(ModelContext& context, const Config& config,
                                                                   const TensorFile& tensors, std::span<const TokenId> tokens,
                                                                   const CollectOptions& options = {}) {
  const std::size_t n = options.window;
  if (n == 0 || tokens.size() < n)
    return Error{ErrorCode::invalid_argument, concat("the text has ", tokens.size(), " tokens, and a window takes ", n)};
  std::size_t windows = tokens.size() / n;
  if (options.most_windows > 0) windows = std::min(windows, options.most_windows);
  ImportanceCollector collector(config);
  const ObserverRef observer(collector);
  std::vector<TokenId> window;
  for (std::size_t w = 0; w < windows; ++w) {
    const std::span<const TokenId> from = tokens.subspan(w * n, n);
    window.assign(from.begin(), from.end());
    if (options.begin) window.front() = *options.begin;
    context.cache().truncate(0, 0);
    for (std::size_t done = 0; done < n;) {
      if (options.hooks.stop.stop_requested()) return Error{ErrorCode::cancelled, "stopped while reading the text"};
      const std::size_t count = std::min(context.chunk(), n - done);
      const SequenceTokens part{0, std::span<const TokenId>(window).subspan(done, count), Wanted::none};
      NIHAO_CHECK(context.step(std::span(&part, 1), &observer));
      done += count;
      options.hooks.report("reading", w * n + done, windows * n);
    }
  }
  NIHAO_TRY(ImportanceMatrix result, collector.matrix(tensors));
  result.chunks = static_cast<std::uint32_t>(windows);
  result.chunk_size = static_cast<std::uint32_t>(n);
  return result;
}

}  // namespace nihao
