// An observer that adds up what each station of a step costs, over layers and steps: time, bytes, operations. It keeps no values.
#pragma once

#include "../device/observer.hpp"

#include <algorithm>
#include <chrono>
#include <span>
#include <vector>

namespace nihao {

/// The station that makes a tensor: those that one call of the device makes together are one, and so are the norms with the
/// sums of the residual stream. A name that is none of the decoder's is a station of its own.
[[nodiscard]] constexpr std::string_view station_of(std::string_view tensor) noexcept {
  struct Entry {
    std::string_view tensor, station;
  };
  constexpr Entry table[] = {{"q_proj", "qkv"},
                             {"k_proj", "qkv"},
                             {"v_proj", "qkv"},
                             {"q_before_rope", "rope"},
                             {"k_before_rope", "rope"},
                             {"rope.cos", "rope"},
                             {"rope.sin", "rope"},
                             {"q_after_rope", "rope"},
                             {"k_after_rope", "rope"},
                             {"attn_heads_concat", "attention"},
                             {"ffn_gate", "gate_up"},
                             {"ffn_up", "gate_up"},
                             {"ffn_act", "activation"},
                             {"ffn_out", "ffn_down"},
                             {"input_norm", "norm"},
                             {"attn_input", "norm"},
                             {"post_attention_norm", "norm"},
                             {"ffn_input", "norm"},
                             {"hidden", "norm"},
                             {"final_norm", "norm"},
                             {"logits", "head"},
                             {"q_a_proj", "qkv"},
                             {"q_a_layernorm", "norm"},
                             {"kv_a_layernorm", "norm"},
                             {"kv_a_proj_with_mqa", "qkv"},
                             {"q_b_proj", "qkv"},
                             {"kv_b_proj", "qkv"},
                             {"q_latent", "qkv"},
                             {"attn_latents_concat", "attention"},
                             {"router.logits", "router"},
                             {"router.experts", "router"},
                             {"router.weights", "router"},
                             {"routed_experts_out", "experts"},
                             {"experts.ffn_act", "experts"},
                             {"shared.ffn_gate", "shared"},
                             {"shared.ffn_up", "shared"},
                             {"shared.ffn_act", "shared"},
                             {"shared.ffn_down", "shared"}};
  for (const Entry& entry : table)
    if (entry.tensor == tensor) return entry.station;
  return tensor;
}

/// What a station is made of, as far as its costs go.
enum class StationKind : std::uint8_t { matmul, attention, pass };  ///< pass: reads and writes activations alone

/// The costs of one station, over all layers and steps.
struct StationCost {
  std::string_view name;  ///< as station_of gives it
  StationKind kind = StationKind::pass;
  double seconds = 0;
  Work work = {};
  std::uint64_t calls = 0;    ///< runs of its tensors without another station between: one for each layer and step
  std::uint64_t rows = 0;     ///< of all calls together
  std::uint64_t weights = 0;  ///< of a matmul: the weights that it has read, each time it read them
};

/// The observer. Time counts from a step's "begin", or from the last tensor, to this one: so all of a step up to its last tensor
/// is some station's (the angles of rope are layer 0's first), and what watching costs is in it. Not for two steps at once.
class StationCosts {
 public:
  static constexpr bool active = true;

  /// Called by forward.
  void see(const Seen& seen) { see(seen, Clock::now()); }

  /// The same with the moment given: for tests.
  void see(const Seen& seen, std::chrono::steady_clock::time_point now) {
    if (seen.name == "begin") {
      ++steps_;
      here_ = none;
    } else {
      const std::string_view name = station_of(seen.name);
      if (here_ == none || stations_[here_].name != name) {
        const auto found = std::find_if(stations_.begin(), stations_.end(), [&](const StationCost& s) { return s.name == name; });
        here_ = static_cast<std::size_t>(found - stations_.begin());
        if (found == stations_.end()) stations_.push_back({.name = name});
        ++stations_[here_].calls;
        stations_[here_].rows += seen.values.rows();
      }
      StationCost& station = stations_[here_];
      station.seconds += std::chrono::duration<double>(now - last_).count();
      station.work.bytes += seen.work.bytes, station.work.flops += seen.work.flops;
      if (seen.attention != nullptr) {
        station.kind = StationKind::attention;
      } else if (seen.work.flops > 0 && seen.values.rows() > 0) {
        station.kind = StationKind::matmul;
        station.weights += seen.work.flops / (2 * seen.values.rows());
      }
    }
    last_ = now;
  }

  /// In the order in which they first came.
  [[nodiscard]] std::span<const StationCost> stations() const noexcept { return stations_; }
  [[nodiscard]] std::size_t steps() const noexcept { return steps_; }
  /// Of all stations.
  [[nodiscard]] double seconds() const noexcept {
    double total = 0;
    for (const StationCost& s : stations_) total += s.seconds;
    return total;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  std::vector<StationCost> stations_;
  std::size_t steps_ = 0, here_ = none;  // the station of the last tensor
  Clock::time_point last_ = Clock::now();
};

}  // namespace nihao
