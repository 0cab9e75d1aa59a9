#include "speed.hpp"

#include <nihao/plan/phase_work.hpp>

#include <fmt/core.h>

#include <algorithm>

namespace nihao::program {

namespace {
[[nodiscard]] double per_second(std::size_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}
}  // namespace

Speed::Speed(const GenerationResult& result, double before)
    : prompt_tokens(result.prompt_ids.size()),
      decode_tokens(result.ids.size()),
      prompt_per_second(per_second(result.prompt_ids.size() - result.reused_tokens, result.prefill_seconds)),
      decode_per_second(per_second(result.decode_tokens, result.decode_seconds)),
      prompt_read(result.prefill_seconds > 0),
      first_token_seconds(result.first_token_seconds > 0 ? before + result.first_token_seconds : 0) {}

std::string Speed::line() const {
  std::string out = fmt::format("prompt {} tokens, ", prompt_tokens);
  if (!prompt_read) return out + "stopped before its end";
  out += fmt::format("{:.1f} tokens/s", prompt_per_second);
  if (first_token_seconds == 0) return out + "; no answer";
  return out + fmt::format("; answer {} tokens, {:.1f} tokens/s; first token after {:.2f} s", decode_tokens, decode_per_second,
                           first_token_seconds);
}

namespace {
// Whether most of the model's weights are multiplied as int8.
[[nodiscard]] bool multiplies_int8(const AnyModel& model) {
  std::uint64_t in_blocks = 0, all = 0;
  for (const TensorInfo& t : model.tensors().tensors()) {
    all += t.elements();
    if (!format_info(t.format).as_floats) in_blocks += t.elements();
  }
  return !model.device().exact() && in_blocks > all / 2;
}
}  // namespace

double arithmetic_peak(const AnyModel& model, const MachinePeaks& peaks) {
  return multiplies_int8(model) ? peaks.int8_per_second : peaks.f32_per_second;
}

namespace {
// Watches the next token at the place where the session stands, and leaves the session as it was.
Expected<PhaseWork> watch_a_token(ModelContext& context, TokenId id) {
  KvCache& cache = context.cache();
  const std::size_t length = cache.length(0);
  if (length == cache.capacity()) cache.truncate(0, length - 1);  // a full context: its last token again
  PhaseWork work;
  const ObserverRef observer(work);
  const SequenceTokens next{0, std::span(&id, 1), Wanted::last};
  NIHAO_CHECK(context.step(std::span(&next, 1), &observer));
  cache.truncate(0, length);
  return work;
}
}  // namespace

Expected<Phases> Phases::of(Session& session) {
  const AnyModel& model = session.model();
  Phases phases{{}, {}, multiplies_int8(model), 0, model.device()};
  for (const TensorInfo& t : model.tensors().tensors()) phases.weights_bytes += t.bytes.size();
  NIHAO_TRY(const GenerationResult result, Expected<GenerationResult>(session.result()));
  NIHAO_TRY(ModelContext* const context, session.context());
  const std::size_t prompt = result.prompt_ids.size(), reused = result.reused_tokens;
  if (prompt == 0) return phases;
  NIHAO_TRY(const PhaseWork work, watch_a_token(*context, result.prompt_ids.back()));
  phases.prefill = {work.reading(reused, prompt - reused, context->chunk()), result.prefill_seconds};
  phases.decode = {work.making(prompt, result.decode_tokens), result.decode_seconds};
  return phases;
}

Expected<Phases::Rooflines> Phases::rooflines() const {
  constexpr std::uint64_t most = std::uint64_t{256} << 20;
  NIHAO_TRY(const MachinePeaks peaks, measure_peaks(device, static_cast<std::size_t>(std::min(weights_bytes, most))));
  const auto roof = [&](const Phase& phase) {
    return Roofline{phase.work, phase.seconds, peaks.bytes_per_second, int8 ? peaks.int8_per_second : peaks.f32_per_second};
  };
  Rooflines out{{}, {}, roof(decode.seconds > prefill.seconds ? decode : prefill).bound()};
  if (prefill.seconds > 0) out.prefill = roof(prefill);
  if (decode.seconds > 0) out.decode = roof(decode);
  return out;
}

}  // namespace nihao::program
