// What a model's file says of its architecture, in one form for all families and file kinds.
#pragma once

#include "../base/extents.hpp"
#include "../kernels/rope.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace nihao {

/// What may differ from layer to layer.
struct LayerConfig {
  std::uint32_t window = 0;  ///< sliding window: a position sees this many, itself included; 0: all before it
  std::uint32_t rope = 0;    ///< index into Config::ropes
};

/// Sizes and constants of a decoder. All are checked when the config is read: kernels may rely on them.
struct Config {
  std::string architecture;  ///< as the file names it: "llama", "gemma3_text"
  std::uint32_t vocab = 0, d_model = 0, heads = 0, kv_heads = 0, head_dim = 0, d_ff = 0;
  std::uint32_t context = 0;  ///< positions the model was trained for
  float norm_eps = 1e-5f;
  float attention_scale = 0;  ///< of the scores
  float embedding_scale = 1;
  RopeStyle rope_style = RopeStyle::halves;
  std::vector<RopeParams> ropes;    ///< at least one
  std::vector<float> rope_factors;  ///< [head_dim / 2] divide the frequencies; empty: none (GGUF's rope_freqs.weight)
  std::vector<LayerConfig> layers;

  [[nodiscard]] Sizes sizes() const noexcept {
    const auto n = [](std::size_t size) { return static_cast<std::int32_t>(size); };
    return {n(d_model), n(layers.size()), n(heads), n(kv_heads), n(head_dim), n(d_ff), n(vocab)};
  }
};

}  // namespace nihao
