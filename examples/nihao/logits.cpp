// nihao logits: what a model says of the token after a prompt, and how it got there.
#include "commands.hpp"
#include "model.hpp"

#include <nihao/files/safetensors_writer.hpp>
#include <nihao/trace/reference_tensors.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace nihao::program {

namespace {

struct LogitsFlags {
  ModelFlags model;
  TextFlags text;
  std::vector<TokenId> ids;
  std::size_t top = 10;
  bool all = false, json = false;
  std::string out, states;
  CLI::Option* ids_option = nullptr;
};

Expected<std::vector<TokenId>> prompt_ids(const LogitsFlags& flags, const AnyModel& model) {
  if (flags.ids_option->count() > 0) return flags.ids;
  NIHAO_TRY(const std::string text, flags.text.read());
  if (auto tokenizer = model.require_tokenizer(); !tokenizer) {
    tokenizer.error().what += ": give --ids";
    return std::move(tokenizer).error().in(flags.model.path);
  }
  return model.tokenizer()->encode(text, {.parse_special = true});
}

// Every tensor of the pass, named as in the reference data.
Expected<void> write_states(const std::string& path, const Recorder& recorder, const Config& config) {
  if (recorder.full()) return Error{ErrorCode::limit, "the tensors of this prompt do not fit the recorder", path};
  const std::vector<NamedTensor> named = reference_tensors(recorder.records(), config);
  std::vector<SafetensorsTensor> tensors;
  tensors.reserve(named.size());
  for (const NamedTensor& t : named)
    tensors.push_back({t.name, SafetensorsType::F32, t.shape, std::as_bytes(std::span(t.values))});
  return write_safetensors(path, tensors);
}

// The `count` tokens with the largest logits, largest first; of equal ones the lower id.
Expected<std::vector<TokenId>> largest(std::span<const float> logits, std::size_t count) {
  std::vector<TokenId> order(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i])) return Error{ErrorCode::numeric, concat("the logit of token ", i, " is not a number")};
    order[i] = static_cast<TokenId>(i);
  }
  count = std::min(count, logits.size());
  const auto logit = [&](TokenId id) { return logits[static_cast<std::size_t>(id)]; };
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](TokenId a, TokenId b) { return logit(a) != logit(b) ? logit(a) > logit(b) : a < b; });
  order.resize(count);
  return order;
}

std::string quoted_piece(const AnyModel& model, TokenId id) {
  return model.tokenizer() ? json_text(model.tokenizer()->piece(id)).dump() : std::string();
}

Expected<int> logits(const LogitsFlags& flags) {
  if (flags.ids_option->count() == 0 && !flags.text.given()) throw UsageError("--ids, TEXT or --file is required");
  keep_apart(flags.out, "--out", flags.model.path, "the model");
  keep_apart(flags.states, "--states", flags.model.path, "the model");
  keep_apart(flags.states, "--states", flags.out, "--out");
  NIHAO_TRY(const AnyModel model, load_model(flags.model));
  NIHAO_TRY(const std::vector<TokenId> ids, prompt_ids(flags, model));
  if (ids.empty()) return Error{ErrorCode::invalid_argument, "the prompt is empty, and the model has no begin token"};
  ContextOptions options = flags.model.context_options();
  if (options.positions == 0) options.positions = ids.size();
  NIHAO_TRY(const auto context, model.context(options));

  const std::size_t vocab = model.config().vocab;
  std::vector<float> rows;  // [all ? ids : 1, vocab]
  Recorder recorder({.attention_probabilities = true, .max_bytes = std::size_t{4} << 30});
  const ObserverRef observer(recorder);
  for (std::size_t done = 0; done < ids.size();) {
    const std::size_t count = std::min(context->chunk(), ids.size() - done);
    const bool last = done + count == ids.size();
    const SequenceTokens part{0, std::span(ids).subspan(done, count),
                              flags.all ? Wanted::all
                              : last    ? Wanted::last
                                        : Wanted::none};
    NIHAO_TRY(const MatrixView<const float> made, context->step(std::span(&part, 1), flags.states.empty() ? nullptr : &observer));
    rows.insert(rows.end(), made.data(), made.data() + made.rows() * made.cols());
    done += count;
  }
  if (!flags.out.empty()) {
    const SafetensorsTensor tensor{"logits", SafetensorsType::F32, {rows.size() / vocab, vocab}, std::as_bytes(std::span(rows))};
    NIHAO_CHECK(write_safetensors(flags.out, std::span(&tensor, 1)));
  }

  if (!flags.states.empty()) NIHAO_CHECK(write_states(flags.states, recorder, model.config()));

  // A file has all positions; without one they are printed.
  const bool each = flags.all && flags.out.empty() && flags.states.empty();
  const std::size_t kept = rows.size() / vocab;
  Json positions(Json::value_t::array);
  for (std::size_t i = each ? 0 : kept - 1; i < kept; ++i) {
    const std::span<const float> row = std::span(rows).subspan(i * vocab, vocab);
    NIHAO_TRY(const std::vector<TokenId> likeliest, largest(row, flags.top));
    if (flags.json) {
      Json list(Json::value_t::array);
      for (const TokenId id : likeliest) list.push_back({{"id", id}, {"logit", row[static_cast<std::size_t>(id)]}});
      positions.push_back(std::move(list));
      continue;
    }
    if (each) fmt::print("after {} {}\n", ids[i], quoted_piece(model, ids[i]));
    for (const TokenId id : likeliest)
      fmt::print("{:>7}  {:>10.5f}  {}\n", id, row[static_cast<std::size_t>(id)], quoted_piece(model, id));
  }
  if (flags.json) {
    Json document = {{"ids", ids}, {"top", positions.back()}};
    if (each) document["positions"] = std::move(positions);
    print_json(document);
  }
  return 0;
}

}  // namespace

void add_logits(Commands& commands) {
  const auto flags = std::make_shared<LogitsFlags>();
  CLI::App& app = commands.add("logits", "The logits after a prompt", [flags] { return logits(*flags); });
  flags->model.add(app, "as many as the prompt has");
  flags->text.add(app, "the prompt");
  flags->ids_option = add_list<TokenId>(app, "--ids", "ID,...", flags->ids, "the prompt as token ids: 1,2,3", 0, INT32_MAX)
                          ->excludes(flags->text.text_option)
                          ->excludes(flags->text.file_option);
  app.add_option("--top", flags->top, "how many of the likeliest tokens to print")
      ->type_name("N")
      ->transform(within(0, 1 << 24))
      ->capture_default_str();
  app.add_flag("--all", flags->all, "of every position, not of the last alone");
  app.add_option("--out", flags->out, "write the logits to this safetensors file: tensor \"logits\", f32 [positions, vocabulary]")
      ->type_name("F")
      ->check(not_empty());
  app.add_option("--states", flags->states, "write what every station made to this safetensors file, named as in docs/program.md")
      ->type_name("F")
      ->check(not_empty());
  app.add_flag("--json", flags->json, "print one JSON document");
}

}  // namespace nihao::program
