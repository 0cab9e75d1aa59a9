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

/// An observer of steps, for one sequence at a time, or several. Matrices that the model does not multiply with have no entry: of
/// latent attention's, W_uv,h where keys and values are made for every token (MlaMode::naive), and W_uk,h where it is merged with
/// the queries' matrix.
class ImportanceCollector {
 public:
  static constexpr bool active = true;

  explicit ImportanceCollector(const Config& config) : config_(config), layers_(config.layers.size()) {}

  void see(const Seen& seen) {
    if (seen.layer >= static_cast<int>(layers_.size())) return;
    const auto layer = static_cast<std::size_t>(std::max(seen.layer, 0));
    Inputs& here = layers_[layer];
    const std::string_view name = seen.name;
    if (name == "input_norm" || name == "attn_input") add(here[attention], seen.values);
    else if (name == "q_a_layernorm") add(here[queries], seen.values);
    else if (name == "kv_a_layernorm") add(here[keys], seen.values);
    else if (name == "q_proj" || name == "q_b_proj") add_heads(here[head_queries], seen.values, config_.mla.nope);
    else if (name == "attn_latents_concat") add_heads(here[head_latents], seen.values, config_.mla.kv_rank);
    else if (name == "attn_heads_concat") add(here[heads], seen.values);
    else if (name == "post_attention_norm" || name == "ffn_input")
      add(here[feed_forward], seen.values), keep(token_, seen.values);
    else if (name == "router.experts") keep(choices_, seen.values);
    else if (name == "router.weights") route(here, seen.values);
    else if (name == "experts.ffn_act") come_back(here, seen.values);
    else if (name == "ffn_act") add(here[gated], seen.values);
    else if (name == "shared.ffn_act") add(here[shared], seen.values);
    else if (name == "final_norm") add(final_, seen.values);
  }

  /// What was seen, for those matrices that `tensors`, the model's GGUF file, has. An embedding that is the head too has no
  /// entry: its rows are looked up as well, and all columns of those matter alike. Errors: numeric (an input was no number).
  [[nodiscard]] Expected<ImportanceMatrix> matrix(const TensorFile& tensors) const {
    ImportanceMatrix result;
    const auto put = [&](Role role, std::size_t layer, const ImportanceEntry& sums) -> Expected<void> {
      const std::string name = tensor_name({NameStyle::gguf, config_.architecture}, role, layer);
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
      NIHAO_CHECK(put(Role::k_b, i, in[head_queries]));
      NIHAO_CHECK(put(Role::v_b, i, in[head_latents]));
      NIHAO_CHECK(put(Role::o, i, in[heads]));
      const bool experts = !in[expert_inputs].rows.empty();
      if (!experts)
        for (const Role role : {Role::gate, Role::up, Role::gate_up}) NIHAO_CHECK(put(role, i, ff));
      NIHAO_CHECK(put(Role::down, i, in[gated]));
      for (const Role role : {Role::expert_gate, Role::expert_up, Role::expert_gate_up})
        NIHAO_CHECK(put(role, i, in[expert_inputs]));
      NIHAO_CHECK(put(Role::expert_down, i, in[expert_gated]));
      if (experts)
        for (const Role role : {Role::shared_gate, Role::shared_up}) NIHAO_CHECK(put(role, i, ff));
      NIHAO_CHECK(put(Role::shared_down, i, in[shared]));
    }
    NIHAO_CHECK(put(Role::head, 0, final_));
    return result;
  }

 private:
  // The places of a layer whose values go into matrices.
  enum Place : std::uint8_t {
    attention,
    queries,
    keys,
    head_queries,
    head_latents,
    heads,
    feed_forward,
    expert_inputs,
    expert_gated,
    gated,
    shared,
    places
  };
  using Inputs = std::array<ImportanceEntry, places>;

  // A step's rows, for as long as a layer needs them.
  struct Rows {
    std::vector<float> values;
    std::size_t cols = 0;
    [[nodiscard]] MatrixView<const float> view() const noexcept { return {values.data(), values.size() / cols, cols}; }
  };
  void keep(Rows& rows, MatrixView<const float> values) const {
    if (config_.router.experts == 0) return;
    rows.cols = values.cols();
    rows.values.clear();
    for (std::size_t r = 0; r < values.rows(); ++r)
      rows.values.insert(rows.values.end(), values.row(r).begin(), values.row(r).end());
  }

  // The squares of x times `factor`.
  static void add_row(float* sums, std::span<const float> x, float factor = 1) noexcept {
    for (std::size_t i = 0; i < x.size(); ++i) sums[i] += factor * x[i] * (factor * x[i]);
  }
  static void add(ImportanceEntry& to, MatrixView<const float> values) {
    if (to.rows.empty()) to.rows.assign(1, 0.0f), to.sums.assign(values.cols(), 0.0f);
    for (std::size_t r = 0; r < values.rows(); ++r) add_row(to.sums.data(), values.row(r));
    to.rows[0] += static_cast<float>(values.rows());
  }
  // The first `width` values of every head, a matrix each, which have all seen as many rows.
  void add_heads(ImportanceEntry& to, MatrixView<const float> values, std::size_t width) const {
    if (width == 0) return;
    const std::size_t n = config_.heads, stride = values.cols() / n;
    if (to.rows.empty()) to.rows.assign(1, 0.0f), to.sums.assign(n * width, 0.0f);
    for (std::size_t r = 0; r < values.rows(); ++r)
      for (std::size_t h = 0; h < n; ++h) add_row(&to.sums[h * width], values.row(r).subspan(h * stride, width));
    to.rows[0] += static_cast<float>(values.rows());
  }
  void add_expert(ImportanceEntry& to, std::size_t expert, std::span<const float> x, float factor = 1) const {
    if (to.rows.empty()) to.rows.assign(config_.router.experts, 0.0f), to.sums.assign(to.rows.size() * x.size(), 0.0f);
    add_row(&to.sums[expert * x.size()], x, factor);
    to.rows[expert] += 1;
  }
  // A token goes to the experts that were chosen for it: times their weights where those come first (Llama 4).
  void route(Inputs& here, MatrixView<const float> weights) {
    const bool weighed = config_.architecture == "llama4";
    const MatrixView<const float> choices = choices_.view(), tokens = token_.view();
    for (std::size_t r = 0; r < choices.rows(); ++r)
      for (std::size_t j = 0; j < choices.cols(); ++j)
        add_expert(here[expert_inputs], static_cast<std::size_t>(choices(r, j)), tokens.row(r), weighed ? weights(r, j) : 1);
  }
  // What an expert makes of it goes back through its down.
  void come_back(Inputs& here, MatrixView<const float> gated_products) {
    const MatrixView<const float> choices = choices_.view();
    const std::size_t width = gated_products.cols() / choices.cols();
    for (std::size_t r = 0; r < choices.rows(); ++r)
      for (std::size_t j = 0; j < choices.cols(); ++j)
        add_expert(here[expert_gated], static_cast<std::size_t>(choices(r, j)), gated_products.row(r).subspan(j * width, width));
  }

  const Config& config_;
  std::vector<Inputs> layers_;
  ImportanceEntry final_;
  Rows token_, choices_;  // what the layer's feed-forward reads, and each token's experts
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
