#include "speed.hpp"

#include <fmt/core.h>

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
      first_token_seconds(before + result.first_token_seconds) {}

std::string Speed::line() const {
  return fmt::format("prompt {} tokens, {:.1f} tokens/s; answer {} tokens, {:.1f} tokens/s; first token after {:.2f} s",
                     prompt_tokens, prompt_per_second, decode_tokens, decode_per_second, first_token_seconds);
}

double arithmetic_peak(const AnyModel& model, const MachinePeaks& peaks) {
  std::uint64_t in_blocks = 0, all = 0;
  for (const TensorInfo& t : model.tensors().tensors()) {
    all += t.elements();
    if (format_info(t.format).block_size > 1) in_blocks += t.elements();
  }
  return !model.device().exact() && in_blocks > all / 2 ? peaks.int8_per_second : peaks.f32_per_second;
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

Expected<Bound> generation_bound(Session& session) {
  NIHAO_TRY(const GenerationResult result, Expected<GenerationResult>(session.result()));
  NIHAO_TRY(ModelContext* const context, session.context());
  if (result.prompt_ids.empty()) return Bound::compute;
  NIHAO_TRY(Work work, next_token_work(*context, result.ids.empty() ? result.prompt_ids.back() : result.ids.back()));
  const std::size_t read = result.prompt_ids.size() - result.reused_tokens;
  if (result.prefill_seconds > result.decode_seconds) {  // the same weights once a chunk, the same operations once a token
    work.bytes *= (read + context->chunk() - 1) / context->chunk();
    work.flops *= read;
  }
  NIHAO_TRY(const MachinePeaks peaks, measure_peaks(session.model().device()));
  return Roofline{work, 1, peaks.bytes_per_second, arithmetic_peak(session.model(), peaks)}.bound();
}

}  // namespace nihao::program
