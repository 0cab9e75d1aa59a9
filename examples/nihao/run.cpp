// nihao run: one generation, streamed.
#include "commands.hpp"
#include "interrupts.hpp"
#include "model.hpp"
#include "speed.hpp"
#include "thinking.hpp"

#include <nihao/engine/session.hpp>

#include <fmt/core.h>

#include <cmath>
#include <cstdio>
#include <optional>

namespace nihao::program {

namespace {

struct RunFlags {
  ModelFlags model;
  TextFlags text;
  SamplingFlags sampling;
  ThinkFlags think;
  std::size_t tokens = 256;
  std::vector<std::string> stop;
  std::string system, chat_template;
  bool chat = false, ignore_eos = false, why = false, json = false;
  std::size_t logprobs = 0;
  std::string logprobs_of = "raw";
  CLI::Option* logprobs_option = nullptr;
};

struct Answer {
  GenerationResult result;
  double load_seconds, generate_start;  // the latter since the program started
  std::uint64_t peak_rss;
  std::optional<Phases> phases;  // with --json or --why
};

// Loads the model, streams the answer (without --json), and lets the model go.
Expected<Answer> generate(const RunFlags& flags) {
  NIHAO_TRY(const std::string text, flags.text.read());
  SessionOptions options{.context = flags.model.context_options(), .system = flags.system, .now = local_time()};
  if (!flags.chat_template.empty()) { NIHAO_TRY(options.chat_template, load_template(flags.chat_template)); }

  Interrupts interrupts;
  GenerateOptions generate{.max_tokens = flags.tokens,
                           .sampling = flags.sampling.params,
                           .chain = flags.sampling.chain,
                           .stop = flags.stop,
                           .stop_token = interrupts.work(),
                           .ignore_eog = flags.ignore_eos};
  flags.think.apply(generate);
  if (flags.logprobs_option->count() > 0) generate.logprobs = flags.logprobs;
  if (flags.logprobs_of == "chain") generate.logprobs_of = LogprobsOf::chain;
  const double load_start = seconds_since_start();
  NIHAO_TRY(const AnyModel model, load_model(flags.model, generate.stop_token));
  Answer answer{};
  answer.load_seconds = seconds_since_start() - load_start;
  Session session(model, std::move(options));
  std::vector<TokenId> ids;
  if (!flags.chat) {
    if (auto tokenizer = model.require_tokenizer(); !tokenizer) return std::move(tokenizer).error().in(flags.model.path);
    NIHAO_TRY(ids, model.tokenizer()->encode(text, {.parse_special = true}));
  }
  answer.generate_start = seconds_since_start();
  for (const std::string_view piece :
       flags.chat ? session.generate(text, generate) : session.complete(std::move(ids), generate)) {
    if (!flags.json) flags.think.print(session, piece);
  }
  NIHAO_TRY(answer.result, Expected<GenerationResult>(session.result()));
  answer.peak_rss = peak_rss_bytes();
  if (flags.json || flags.why) { NIHAO_TRY(answer.phases, Phases::of(session)); }
  return answer;
}

// "prefill: compute-bound, 45.1 % of the arithmetic peak, 1.2 % of the bandwidth, 812.3 operations a byte"
void note_phase(std::string_view name, const std::optional<Roofline>& roof) {
  if (!roof) return;
  note(fmt::format("{}: {}-bound, {:.1f} % of the arithmetic peak, {:.1f} % of the bandwidth, {:.1f} operations a byte", name,
                   to_string(roof->bound()), 100 * roof->flops_fraction(), 100 * roof->bandwidth_fraction(),
                   roof->arithmetic_intensity()));
}

Json to_json(const std::optional<Roofline>& roof) {
  if (!roof) return {};
  return {{"flops_fraction", roof->flops_fraction()},
          {"bandwidth_fraction", roof->bandwidth_fraction()},
          {"arithmetic_intensity", roof->arithmetic_intensity()},
          {"bound", to_string(roof->bound())}};
}

Json to_json(const TokenLogprob& t) { return {{"id", t.id}, {"logprob", std::isinf(t.logprob) ? Json() : Json(t.logprob)}}; }

// One entry a token of the answer: {id, logprob, top: [{id, logprob}]}.
Json to_json(const std::vector<Logprobs>& all) {
  Json list(Json::value_t::array);
  for (const Logprobs& one : all) {
    Json entry = to_json(one.chosen), top(Json::value_t::array);
    for (const TokenLogprob& t : one.top) top.push_back(to_json(t));
    entry["top"] = std::move(top);
    list.push_back(std::move(entry));
  }
  return list;
}

Expected<int> run(const RunFlags& flags) {
  NIHAO_TRY(const Answer answer, generate(flags));
  const GenerationResult& result = answer.result;
  const Speed speed(result, answer.generate_start);
  if (!flags.json) {
    if (!result.text.empty() && result.text.back() != '\n') fmt::print("\n");
    flags.think.print_count(result);
    note(speed.line());
    if (flags.why) {
      NIHAO_TRY(const Phases::Rooflines roofs, answer.phases->rooflines());
      note_phase("prefill", roofs.prefill);
      note_phase("decode", roofs.decode);
    }
  } else {
    NIHAO_TRY(const Phases::Rooflines roofs, answer.phases->rooflines());
    const bool any = speed.first_token_seconds > 0;
    Json json = {{"prompt_ids", result.prompt_ids},
                 {"ids", result.ids},
                 {"text", json_text(result.text)},
                 {"finish_reason", to_string(result.finish_reason)},
                 {"timings",
                  {{"load_ms", answer.load_seconds * 1e3},
                   {"prompt_tokens", speed.prompt_tokens},
                   {"prompt_per_s", speed.prompt_per_second},
                   {"decode_tokens", speed.decode_tokens},
                   {"decode_per_s", speed.decode_per_second},
                   {"first_token_ms", any ? Json(speed.first_token_seconds * 1e3) : Json()},
                   {"bound", to_string(roofs.longer)},
                   {"prefill", to_json(roofs.prefill)},
                   {"decode", to_json(roofs.decode)}}},
                 {"peak_rss_bytes", answer.peak_rss}};
    flags.think.add_to(json, result);
    if (flags.logprobs_option->count() > 0) {
      json["logprobs"] = to_json(result.logprobs);
      json["logprobs_of"] = flags.logprobs_of;
    }
    print_json(json);
  }
  return result.finish_reason == FinishReason::cancelled ? 130 : 0;
}

}  // namespace

void add_run(Commands& commands) {
  const auto flags = std::make_shared<RunFlags>();
  CLI::App& app = commands.add("run", "One generation", [flags] { return run(*flags); });
  flags->model.add(app);
  flags->text.add(app, "the prompt");
  CLI::Option* chat = app.add_flag(
      "--chat", flags->chat, "TEXT is a message, put to the model through its chat template; else the model continues TEXT");
  app.add_option("--system", flags->system, "with --chat: the system message")->type_name("TEXT")->needs(chat);
  app.add_option("--template", flags->chat_template, "with --chat: a file with a template, instead of the model's own")
      ->type_name("F")
      ->check(not_empty())
      ->needs(chat);
  app.add_option("-n", flags->tokens, "most tokens of the answer")
      ->type_name("N")
      ->transform(within(0, 1 << 28))
      ->capture_default_str();
  app.add_option("--stop", flags->stop, "end before this text; may be given several times")
      ->type_name("TEXT")
      ->allow_extra_args(false)
      ->check(not_empty());
  app.add_flag("--ignore-eos", flags->ignore_eos, "go on when the model says that it has finished");
  flags->sampling.add(app);
  flags->think.add(app);
  CLI::Option* why = app.add_flag(
      "--why", flags->why, "after the answer, what bounds the prompt's reading and the answer's making (--json tells it anyway)");
  CLI::Option* json = app.add_flag("--json", flags->json, "print one JSON document instead of the text")->excludes(why);
  flags->logprobs_option =
      app.add_option("--logprobs", flags->logprobs, "with --json: each token's logprob, and those of the N likeliest")
          ->type_name("N")
          ->transform(within(0, 1 << 24))
          ->needs(json);
  app.add_option("--logprobs-of", flags->logprobs_of,
                 "of which distribution: raw (the model's own) or chain (what the token was drawn from)")
      ->type_name("NAME")
      ->check(one_of({"raw", "chain"}))
      ->capture_default_str()
      ->needs(flags->logprobs_option);
}

}  // namespace nihao::program
