// The knobs of sampling that every program has.
#pragma once

#include <cstdint>

namespace nihao {

/// The usual knobs, for those who do not write a chain. SamplerChain::make turns them into stages in this order:
///
///     penalties, top_k, top_p, min_p, temperature, dist
///
/// Penalties first, because they correct the model's own distribution, which the cuts then see. top-k before top-p, so that
/// the nucleus is counted among the k (renormalised). Temperature last, so that a high one spreads the chosen candidates
/// without bringing the tail back. At temperature 0 the chain is penalties and greedy: the cuts never remove the likeliest.
struct SamplingParams {
  float temperature = 0.8f;          ///< 0: greedy
  std::int32_t top_k = 40;           ///< 0: off
  float top_p = 0.95f;               ///< 1: off
  float min_p = 0.05f;               ///< 0: off
  float repeat_penalty = 1.0f;       ///< 1: off
  float frequency_penalty = 0.0f;    ///< 0: off
  float presence_penalty = 0.0f;     ///< 0: off
  std::int32_t penalty_last_n = 64;  ///< how many of the latest tokens the penalties look at; 0: none, -1: all
  std::uint64_t seed = 0;            ///< same seed, same logits: same tokens, on every platform
};

}  // namespace nihao
