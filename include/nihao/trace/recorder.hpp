// An observer that keeps what it sees: every station's tensors, how long each took, and what it read and computed.
#pragma once

#include "../base/arena.hpp"
#include "../device/observer.hpp"
#include "../kernels/batch_view.hpp"

#include <algorithm>
#include <chrono>
#include <span>
#include <string_view>
#include <vector>

namespace nihao {

struct RecorderOptions {
  /// Keep the attention's probabilities too. They are computed by the plain definition from the keys as the cache has them: slow,
  /// and heads * rows * positions floats a layer.
  bool attention_probabilities = false;
  /// Keep the online softmax of every row and head after each tile of attention_tile positions: "attn_tiles". The kernel runs a
  /// second time, one row at a time.
  bool attention_tiles = false;
  /// Tensors beyond this many bytes are counted and timed, but their values are not kept.
  std::size_t max_bytes = std::size_t{1} << 30;
};

/// What one station made in one step.
struct Record {
  std::string_view name;  ///< as Seen::name: "q_proj", "hidden"
  int layer;              ///< -1 outside the blocks
  std::size_t step;       ///< which step of the recording, from 0
  std::size_t rows, cols;
  /// [rows, cols]; empty if the recorder was full. "attn_probs": [heads * rows, positions]. "attn_tiles": [heads * rows,
  /// tiles * 3], the numbers of AttentionTile: running maximum, denominator, correction; zeros where a row does not see the tile.
  std::span<const float> values;
  double seconds;  ///< since the station before, without the recorder's own time
  Work work;
};

/// Records the steps of one session. Not for two steps at once. Their tensors by the names of the reference data:
/// trace/reference_tensors.hpp.
class Recorder {
 public:
  static constexpr bool active = true;

  explicit Recorder(const RecorderOptions& options = {}) : options_(options) {}

  /// Called by forward. Time is counted from the step's "begin", or from the last station.
  void see(const Seen& seen) {
    const double seconds = std::chrono::duration<double>(Clock::now() - last_).count();
    if (seen.name == "begin") {
      ++steps_;
    } else {
      const std::size_t rows = seen.values.rows(), cols = seen.values.cols();
      const std::span<float> kept = room(rows * cols);
      for (std::size_t r = 0; r < rows && !kept.empty(); ++r)
        std::copy_n(seen.values.row(r).data(), cols, kept.data() + r * cols);
      records_.push_back({seen.name, seen.layer, step(), rows, cols, kept, seconds, seen.work});
      if (seen.attention != nullptr && options_.attention_probabilities) see_probabilities(*seen.attention, seen.layer);
      if (seen.attention != nullptr && options_.attention_tiles) see_tiles(*seen.attention, seen.layer);
    }
    last_ = Clock::now();
  }

  /// In the order in which they were made.
  [[nodiscard]] std::span<const Record> records() const noexcept { return records_; }
  [[nodiscard]] std::size_t steps() const noexcept { return steps_; }
  /// True if some values were not kept for want of memory or because of RecorderOptions::max_bytes.
  [[nodiscard]] bool full() const noexcept { return full_; }
  /// Bytes of the values that are kept.
  [[nodiscard]] std::size_t bytes() const noexcept { return arena_.total(); }
  /// What all stations together read and computed.
  [[nodiscard]] Work work() const noexcept {
    Work total;
    for (const Record& r : records_) total.bytes += r.work.bytes, total.flops += r.work.flops;
    return total;
  }

  /// Forgets everything.
  void clear() {
    records_.clear();
    arena_ = {};
    steps_ = 0;
    full_ = false;
  }

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] std::size_t step() const noexcept { return steps_ - std::min<std::size_t>(steps_, 1); }

  // Room for n values; none if that would be too much.
  std::span<float> room(std::size_t n) {
    if (n > (options_.max_bytes - std::min(options_.max_bytes, arena_.total())) / sizeof(float))
      return full_ = true, std::span<float>{};
    auto piece = arena_.allocate(n * sizeof(float));
    if (!piece) return full_ = true, std::span<float>{};
    return {reinterpret_cast<float*>(*piece), n};
  }

  [[nodiscard]] static std::size_t positions_of(const BatchView& batch) noexcept {
    std::size_t positions = 0;
    for (const std::int32_t p : batch.position) positions = std::max(positions, static_cast<std::size_t>(p) + 1);
    return positions;
  }

  void see_tiles(const AttentionInputs& in, int layer);
  void see_probabilities(const AttentionInputs& in, int layer);

  RecorderOptions options_;
  Arena arena_;
  std::vector<Record> records_;
  std::size_t steps_ = 0;
  bool full_ = false;
  Clock::time_point last_ = Clock::now();
};

}  // namespace nihao

#if !NIHAO_COMPILED
#include "recorder_impl.hpp"
#endif
