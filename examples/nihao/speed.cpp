#include "speed.hpp"

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
    if (format_info(t.format).block_size > 1) in_blocks += t.elements();
  }
  return !model.device().exact() && in_blocks > all / 2;
}
}  // namespace

double arithmetic_peak(const AnyModel& model, const MachinePeaks& peaks) {
  return multiplies_int8(model) ? peaks.int8_per_second : peaks.f32_per_second;
}

Expected<Work> next_token_work(ModelContext& context, TokenId id) {
  KvCache& cache = context.cache();
  const std::size_t length = cache.length(0);
  if (length == cache.capacity()) cache.truncate(0, length - 1);  // a full context: its last token again
  WorkCounter counter;
  const ObserverRef observer(counter);
  const SequenceTokens next{0, std::span(&id, 1), Wanted::last};
  NIHAO_CHECK(context.step(std::span(&next, 1), &observer));
  cache.truncate(0, length);
  return counter.total;
}

Expected<LongerPhase> LongerPhase::of(Session& session) {
  const AnyModel& model = session.model();
  LongerPhase phase{{}, multiplies_int8(model), 0, model.device()};
  for (const TensorInfo& t : model.tensors().tensors()) phase.weights_bytes += t.bytes.size();
  NIHAO_TRY(const GenerationResult result, Expected<GenerationResult>(session.result()));
  NIHAO_TRY(ModelContext* const context, session.context());
  if (result.prompt_ids.empty()) return phase;
  NIHAO_TRY(phase.work, next_token_work(*context, result.ids.empty() ? result.prompt_ids.back() : result.ids.back()));
  const std::size_t read = result.prompt_ids.size() - result.reused_tokens;
  if (result.prefill_seconds > result.decode_seconds) {  // the same weights once a chunk, the same operations once a token
    phase.work.bytes *= (read + context->chunk() - 1) / context->chunk();
    phase.work.flops *= read;
  }
  return phase;
}

Expected<Bound> LongerPhase::bound() const {
  constexpr std::uint64_t most = std::uint64_t{256} << 20;
  NIHAO_TRY(const MachinePeaks peaks, measure_peaks(device, static_cast<std::size_t>(std::min(weights_bytes, most))));
  return Roofline{work, 1, peaks.bytes_per_second, int8 ? peaks.int8_per_second : peaks.f32_per_second}.bound();
}

}  // namespace nihao::program
