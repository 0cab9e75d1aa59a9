// C15, end and stop: a model ends its answer with a token of its own; a host ends it at a text. The first is a comparison of
// numbers, the second has to see through the cuts between tokens. Read: engine/session.hpp (next_token), text/stop_matcher.hpp,
// text/stream_decoder.hpp.
#include "station.hpp"

#include <nihao/sampling/sampler.hpp>

#include <cmath>

namespace {

double probability(std::span<const float> logits, nihao::TokenId id) {
  double total = 0;
  for (const float l : logits) total += std::exp(static_cast<double>(l - logits[static_cast<std::size_t>(id)]));
  return 1 / total;
}

void show(nihao::Session& session, std::string_view what, const nihao::GenerateOptions& options) {
  std::string answer;
  for (const std::string_view piece : session.complete("The capital of France is Paris, and", options)) answer += piece;
  const auto& result = session.result();
  fmt::print("    {:<28} finish_reason {:<9} {:3} tokens  \"{}\"\n", what,
             result ? to_string(result->finish_reason) : result.error().message(), result ? result->ids.size() : 0,
             nihao::printable(answer, 200));
}

nihao::Expected<void> tell(const station::Model& m) {
  const nihao::Tokenizer& tokenizer = m.tokenizer();
  fmt::print("C15 end and stop\n\n1. Tokens with which this model ends:");
  for (const nihao::TokenId id : tokenizer.eog()) fmt::print(" {} = {}", id, tokenizer.piece(id));
  if (m.model.chat_template() == nullptr || tokenizer.eog().empty())
    return nihao::Error{nihao::ErrorCode::unsupported, "this station needs a model with a chat template and an end token"};
  const nihao::TokenId end = tokenizer.eot().value_or(tokenizer.eog()[0]);

  const nihao::Message question{"user", std::string(station::prompt)};
  NIHAO_TRY(const std::string text, m.model.chat_template()->render(std::span(&question, 1), true, "", ""));
  NIHAO_TRY(std::vector<nihao::TokenId> ids, tokenizer.encode(text, {.parse_special = true}));
  fmt::print(
      "\n\n2. A conversation of one message, \"{}\", is {} tokens in the model's template. The greedy answer, and\n"
      "   the probability of {} ({}) at its first steps and wherever it is above 0.0001:\n",
      station::prompt, ids.size(), tokenizer.piece(end), end);
  NIHAO_TRY(const auto context, m.model.context({.positions = 256, .kv = nihao::KvType::f32}));
  NIHAO_TRY(auto greedy, nihao::Chain<nihao::Greedy>::make(m.config().vocab, 0, {}));
  NIHAO_TRY(auto logits, context->prefill(0, ids));
  nihao::StreamDecoder decoder(tokenizer);
  std::string answer;
  bool ended = false;
  std::size_t count = 0;
  for (; !ended && count < 100; ++count) {
    NIHAO_TRY(const nihao::TokenId id, greedy.sample(logits.row(0), ids));
    ended = tokenizer.is_eog(id);
    const double p = probability(logits.row(0), end);
    if (p > 1e-4 || count < 2)  // elsewhere the end is out of the question
      fmt::print("    {:3}  P(end) = {:8.2e}  token {:6}  {}\n", count, p, id,
                 ended ? "<- the end: it is not part of the answer" : m.shown(id));
    if (ended) break;
    answer += decoder.push(id);
    ids.push_back(id);
    const nihao::SequenceTokens next{0, std::span(&ids.back(), 1)};
    NIHAO_TRY(logits, context->step(std::span(&next, 1)));
  }
  fmt::print("   {} tokens: {}\n", count, answer);

  fmt::print("\n3. A stop string is matched in the text, not in tokens. The pieces of \"{}\" with the stop string \"llama\":\n",
             station::prompt);
  nihao::StopMatcher stop({"llama"});
  nihao::StreamDecoder pieces(tokenizer);
  std::string out;
  for (const nihao::TokenId id : m.ids) {
    const std::string piece(pieces.push(id));
    const std::string certain(stop.push(piece));
    out += certain;
    fmt::print("    token {:6}  {:<10} makes {:<6} lets out {}{}\n", id, m.shown(id), fmt::format("\"{}\"", piece),
               fmt::format("\"{}\"", certain),
               stop.matched()         ? "   stop: the string is there, and nothing of it was let out"
               : pieces.holds_bytes() ? "   (half a character waits for its other half)"
               : certain.empty()      ? "   (held back: it may become the stop string)"
                                      : "");
  }

  fmt::print("\n4. The ways an answer ends (greedy, after \"The capital of France is Paris, and\"):\n");
  nihao::Session session(m.model, {.context = {.positions = 128}});
  nihao::SamplingParams best;
  best.temperature = 0;
  show(session, "max_tokens = 12", {.max_tokens = 12, .sampling = best});
  show(session, "stop = {\"city\"}", {.max_tokens = 60, .sampling = best, .stop = {"city"}});
  std::stop_source host;
  host.request_stop();
  show(session, "the host's stop token", {.max_tokens = 60, .sampling = best, .stop_token = host.get_token()});
  if (!stop.matched() || out != "你好,")
    return nihao::Error{nihao::ErrorCode::mismatch, "the stop string was not found where it is"};
  return {};
}

}  // namespace

int main(int argc, char** argv) { return station::run(argc, argv, tell); }
