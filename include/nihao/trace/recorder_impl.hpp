// What the recorder sees of attention, computed a second time.
#pragma once

#include "../kernels/cpu/attention.hpp"
#include "recorder.hpp"

namespace nihao {

NIHAO_INLINE void Recorder::see_tiles(const AttentionInputs& in, int layer) {
  const std::size_t rows = in.batch.rows(), heads = in.shape.heads;
  const std::size_t tiles = ceil_div(positions_of(in.batch), attention_tile);
  const std::span<float> kept = room(heads * rows * tiles * 3);
  if (!kept.empty()) {
    std::vector<AttentionTile> row;
    for (const SequenceRows& s : in.batch.sequences) {
      const KvView kv{in.layout, in.base, s.blocks};
      for (std::size_t r = s.first; r < s.first + s.count; ++r) {
        const std::size_t own = static_cast<std::size_t>(in.batch.position[r]) / attention_tile + 1;
        row.resize(heads * own);
        attention_tiles(in.isa, in.shape, kv, in.batch.position[r], in.q.row(r), row);
        for (std::size_t h = 0; h < heads; ++h)
          for (std::size_t t = 0; t < tiles; ++t) {
            const AttentionTile& tile = t < own ? row[h * own + t] : AttentionTile{};
            float* to = kept.data() + ((h * rows + r) * tiles + t) * 3;
            to[0] = tile.most, to[1] = tile.total, to[2] = tile.correction;
          }
      }
    }
  }
  records_.push_back({"attn_tiles", layer, step(), heads * rows, tiles * 3, kept, 0.0, {}});
}

NIHAO_INLINE void Recorder::see_probabilities(const AttentionInputs& in, int layer) {
  const std::size_t rows = in.batch.rows(), heads = in.shape.heads, positions = positions_of(in.batch);
  const std::span<float> kept = room(heads * rows * positions);
  if (!kept.empty()) {
    std::vector<float> out(in.q.cols());
    for (const SequenceRows& s : in.batch.sequences) {
      const KvView kv{in.layout, in.base, s.blocks};
      for (std::size_t r = s.first; r < s.first + s.count; ++r) {
        std::vector<std::vector<float>> probabilities;
        reference::attention(in.shape, kv, in.batch.position[r], in.q.row(r), out, &probabilities);
        for (std::size_t h = 0; h < heads; ++h)
          std::copy(probabilities[h].begin(), probabilities[h].end(), kept.data() + (h * rows + r) * positions);
      }
    }
  }
  records_.push_back({"attn_probs", layer, step(), heads * rows, positions, kept, 0.0, {}});
}

}  // namespace nihao
