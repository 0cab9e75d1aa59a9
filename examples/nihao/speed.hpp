// How fast a generation was, and what held it back.
#pragma once

#include <nihao/engine/session.hpp>
#include <nihao/format/registry.hpp>
#include <nihao/plan/roofline.hpp>

#include <string>

namespace nihao::program {

struct Speed {
  std::size_t prompt_tokens, decode_tokens;
  double prompt_per_second, decode_per_second;
  double first_token_seconds;  ///< since `before` = 0

  /// `before`: seconds that had passed when the generation was asked for.
  explicit Speed(const GenerationResult& result, double before = 0);
  /// "prompt 37 tokens, 512.3 tokens/s; answer 64 tokens, 105.2 tokens/s; first token after 0.21 s"
  [[nodiscard]] std::string line() const;
};

/// The arithmetic peak of the kind that most of the model's weights are multiplied in.
[[nodiscard]] double arithmetic_peak(const AnyModel& model, const MachinePeaks& peaks);

/// The work of the next token at the place where the session stands. Leaves the session as it was.
[[nodiscard]] Expected<Work> next_token_work(ModelContext& context, TokenId id);

/// What bound the phase of the session's last generation that took longer, reading the prompt or making the answer: its work
/// against the machine's peaks, measured now. Takes a quarter of a second.
[[nodiscard]] Expected<Bound> generation_bound(Session& session);

}  // namespace nihao::program
