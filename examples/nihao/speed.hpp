// How fast a generation was, and what held it back.
#pragma once

#include <nihao/engine/session.hpp>
#include <nihao/format/registry.hpp>
#include <nihao/plan/roofline.hpp>

#include <optional>
#include <string>

namespace nihao::program {

struct Speed {
  std::size_t prompt_tokens, decode_tokens;
  double prompt_per_second, decode_per_second;
  bool prompt_read;            ///< to its end; else there are no figures but the counts
  double first_token_seconds;  ///< since `before` = 0; 0: no token came

  /// `before`: seconds that had passed when the generation was asked for.
  explicit Speed(const GenerationResult& result, double before = 0);
  /// "prompt 37 tokens, 512.3 tokens/s; answer 64 tokens, 105.2 tokens/s; first token after 0.21 s", without the parts of what
  /// did not come to pass.
  [[nodiscard]] std::string line() const;
};

/// The arithmetic peak of the kind that most of the model's weights are multiplied in.
[[nodiscard]] double arithmetic_peak(const AnyModel& model, const MachinePeaks& peaks);

/// The work of the two phases of a generation, reading the prompt and making the answer: what their bounds are told from. It
/// outlives the session and the model.
struct Phases {
  struct Phase {
    Work work;
    double seconds = 0;  ///< 0: it did not come to pass
  };
  Phase prefill, decode;
  bool int8;                    ///< which arithmetic: int8 dot products, or f32
  std::uint64_t weights_bytes;  ///< of the model
  Cpu device;

  /// Of the session's last generation. Leaves the session as it was.
  [[nodiscard]] static Expected<Phases> of(Session& session);

  /// The phases against the machine's peaks.
  struct Rooflines {
    std::optional<Roofline> prefill, decode;  ///< none where the phase did not come to pass
    Bound longer;                             ///< of the phase that took longer
  };
  /// The peaks are measured now, in about a quarter of a second. Call it when the model is gone: it takes as much memory as the
  /// weights had, 256 MiB at most.
  [[nodiscard]] Expected<Rooflines> rooflines() const;
};

}  // namespace nihao::program
