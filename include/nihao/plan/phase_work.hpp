// What a whole phase of a generation reads and computes, told from one observed step: no phase has to be watched to be known.
#pragma once

#include "../device/observer.hpp"
#include "../kernels/attention.hpp"

#include <algorithm>
#include <vector>

namespace nihao {

/// An observer of one step of one row with logits. The work of any other steps of the same model and cache follows: weights are
/// read once a step and multiplied once a row, the head's once for every step with logits, and attention depends on positions.
class PhaseWork {
 public:
  static constexpr bool active = true;

  void see(const Seen& seen) {
    if (seen.attention != nullptr) {
      const AttentionInputs& in = *seen.attention;
      const auto same = [&](const Kind& k) {
        return k.shape.window == in.shape.window && k.shape.heads == in.shape.heads && k.shape.head_dim == in.shape.head_dim &&
               k.layout.block_bytes() == in.layout.block_bytes();
      };
      const auto found = std::find_if(kinds_.begin(), kinds_.end(), same);
      if (found != kinds_.end()) ++found->layers;
      else kinds_.push_back({in.shape, in.layout, 1});
    } else {
      Work& work = seen.name == "logits" ? head_ : weights_;
      work.bytes += seen.work.bytes, work.flops += seen.work.flops;
    }
  }

  /// Of reading `count` tokens in steps of at most `chunk`, after `before` others; the logits of the last.
  [[nodiscard]] Work reading(std::size_t before, std::size_t count, std::size_t chunk) const {
    Work total = count > 0 ? head_ : Work{};
    for (std::size_t done = 0; done < count; done += chunk) add(total, before + done, std::min(chunk, count - done));
    return total;
  }

  /// Of making `count` tokens one by one: those at the positions from `before` on are fed.
  [[nodiscard]] Work making(std::size_t before, std::size_t count) const {
    Work total{head_.bytes * count, head_.flops * count};
    for (std::size_t i = 0; i < count; ++i) add(total, before + i, 1);
    return total;
  }

 private:
  struct Kind {  // layers whose attention costs the same
    AttentionShape shape;
    KvLayout layout;
    std::size_t layers;
  };

  // A step of the rows [first, first + rows), without the head.
  void add(Work& total, std::size_t first, std::size_t rows) const {
    total.bytes += weights_.bytes;
    total.flops += weights_.flops * rows;
    for (const Kind& k : kinds_) {
      const Work one = attention_work(k.shape, k.layout, static_cast<std::int64_t>(first), static_cast<std::int64_t>(rows));
      total.bytes += k.layers * one.bytes, total.flops += k.layers * one.flops;
    }
  }

  Work weights_, head_;
  std::vector<Kind> kinds_;
};

}  // namespace nihao
