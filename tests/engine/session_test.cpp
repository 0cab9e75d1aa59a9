#include "nihao/engine/session.hpp"

#include <doctest/doctest.h>

#include "engine/generate.hpp"
#include "engine/models.hpp"
#include "support/build_kind.hpp"

#include <thread>

using namespace nihao;
using test::all_of, test::greedy;

namespace {

// Asks to stop once so many tokens of the prompt are read.
struct StopsAfter : ProgressSink {
  StopsAfter(std::stop_source s, std::uint64_t t) : source(std::move(s)), tokens(t) {}
  void progress(std::string_view, std::uint64_t done, std::uint64_t) override {
    reports.push_back(done);
    if (done >= tokens) source.request_stop();
  }
  std::stop_source source;
  std::uint64_t tokens;
  std::vector<std::uint64_t> reports;
};

// Every logit of a session's next step, as bits.
std::vector<float> logits_of(Session& session, TokenId id) {
  const SequenceTokens next{0, std::span(&id, 1), Wanted::last};
  const auto logits = (*session.context())->step(std::span(&next, 1));
  REQUIRE(logits.has_value());
  return {logits->row(0).begin(), logits->row(0).end()};
}

}  // namespace

TEST_CASE("a generation's pieces are its text, its ids decode to it, and result() tells how it went") {
  const auto model = test::tiny_model();
  if (!model) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  Session session(*model);
  CHECK(session.result().has_value());
  const std::string text = all_of(session.complete("the quick brown", greedy(12)));
  const auto& result = session.result();
  REQUIRE(result.has_value());
  CHECK(result->text == text);
  CHECK(result->ids.size() == 12);
  CHECK(result->finish_reason == FinishReason::length);
  CHECK(result->prompt_ids == *model->tokenizer()->encode("the quick brown"));
  CHECK(result->reused_tokens == 0);
  CHECK(result->prefill_seconds > 0);
  CHECK(result->decode_seconds > 0);
  CHECK(result->first_token_seconds >= result->prefill_seconds);
  StreamDecoder decoder(*model->tokenizer(), {.at_start = false});
  std::string decoded;
  for (const TokenId id : result->ids) decoded += decoder.push(id);
  CHECK(decoded + std::string(decoder.flush()) == text);
}

TEST_CASE("result() before the end is what there is so far, and a range left early counts as cancelled") {
  const auto model = test::tiny_model();
  if (!model) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  Session session(*model);
  std::string seen;
  for (const std::string_view piece : session.complete("abc", greedy(50))) {
    seen += piece;
    REQUIRE(session.result().has_value());
    CHECK(session.result()->text == seen);
    if (session.result()->ids.size() >= 5) break;
  }
  const std::vector<TokenId> some = session.result()->ids;
  CHECK(some.size() >= 5);
  CHECK(some.size() < 50);
  // The next generation starts clean.
  CHECK(all_of(session.complete("abc", greedy(8))) == all_of(Session(*model).complete("abc", greedy(8))));
  CHECK(std::equal(some.begin(), some.begin() + 5, session.result()->ids.begin()));
}

TEST_CASE("a prompt that begins like the last one reuses its cache, and every bit is that of a fresh session") {
  const auto model = test::tiny_model();
  if (!model) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  for (const KvType kv : {KvType::f32, KvType::f16, KvType::bf16, KvType::q8_0}) {
    CAPTURE(to_string(kv));
    const SessionOptions options{.context = {.positions = 200, .chunk = 7, .kv = kv}};
    Session used(*model, options), fresh(*model, options);
    all_of(used.complete("the quick brown fox jumps", greedy(9)));
    const std::string again = all_of(used.complete("the quick brown cat sleeps", greedy(9)));
    CHECK(used.result()->reused_tokens >= std::string_view("the quick brown ").size());
    CHECK(all_of(fresh.complete("the quick brown cat sleeps", greedy(9))) == again);
    CHECK(fresh.result()->reused_tokens == 0);
    CHECK(fresh.result()->ids == used.result()->ids);
    CHECK(logits_of(used, 65) == logits_of(fresh, 65));
    // Wholly the same prompt: all but its last token.
    all_of(used.complete("the quick brown cat sleeps", greedy(2)));
    CHECK(used.result()->reused_tokens + 1 == used.result()->prompt_ids.size());
  }
}

TEST_CASE("what the cache holds when a prompt shrinks does not matter") {
  const auto model = test::tiny_model();
  if (!model) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  Session used(*model), fresh(*model);
  all_of(used.complete("a much longer text than the one that comes after it", greedy(20)));
  CHECK(all_of(used.complete("a much", greedy(20))) == all_of(fresh.complete("a much", greedy(20))));
}

TEST_CASE("ids may be given instead of text") {
  const auto model = test::tiny_model();
  if (!model) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  Session by_text(*model), by_ids(*model);
  const std::vector<TokenId> ids = *model->tokenizer()->encode("hello");
  CHECK(all_of(by_text.complete("hello", greedy(6))) == all_of(by_ids.complete(ids, greedy(6))));
  all_of(by_ids.complete(std::vector<TokenId>{3, 100000}, greedy(6)));
  REQUIRE_FALSE(by_ids.result().has_value());
  CHECK(by_ids.result().error().code == ErrorCode::invalid_argument);
  CHECK(by_ids.result().error().what.find("100000") != std::string::npos);
}

TEST_CASE("an empty prompt is the begin token, or an error where there is none (case C60)") {
  const auto model = test::tiny_model();
  if (!model) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  Session session(*model);
  all_of(session.complete("", greedy(3)));
  REQUIRE(session.result().has_value());
  CHECK(session.result()->prompt_ids == std::vector<TokenId>{*model->tokenizer()->bos()});
  CHECK(session.result()->ids.size() == 3);
  all_of(session.complete(std::vector<TokenId>{}, greedy(3)));
  REQUIRE_FALSE(session.result().has_value());
  CHECK(session.result().error().code == ErrorCode::invalid_argument);
  all_of(session.complete("still alive", greedy(3)));
  CHECK(session.result().has_value());
}

TEST_CASE("a context of one token takes a prompt of one and no more (case C55)") {
  const auto model = test::tiny_model();
  if (!model) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  Session session(*model, {.context = {.positions = 1}});
  all_of(session.complete("", greedy(10)));
  REQUIRE(session.result().has_value());
  CHECK(session.result()->ids.size() == 1);
  CHECK(session.result()->finish_reason == FinishReason::length);
  all_of(session.complete("two", greedy(10)));
  REQUIRE_FALSE(session.result().has_value());
  CHECK(session.result().error().code == ErrorCode::context_full);
  CHECK(session.result().error().what == "the context holds 1 tokens, and the prompt has 5");
}

TEST_CASE("a full context ends the answer with length, and the text up to there is the same as with more room") {
  const auto model = test::tiny_model();
  if (!model) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  Session small(*model, {.context = {.positions = 20}}), large(*model, {.context = {.positions = 200}});
  const std::string text = all_of(small.complete("hello", greedy(100)));
  REQUIRE(small.result().has_value());
  CHECK(small.result()->finish_reason == FinishReason::length);
  // The last token is chosen from the last position's logits, and needs no room of its own.
  CHECK(small.result()->ids.size() == 20 - small.result()->prompt_ids.size() + 1);
  CHECK(all_of(large.complete("hello", greedy(100))).starts_with(text));
}

TEST_CASE("a stop string ends the answer before it, and what it cut off is not text") {
  const auto model = test::tiny_model();
  if (!model) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  Session session(*model);
  const std::string whole = all_of(session.complete("hello", greedy(30)));
  const std::vector<TokenId> ids = session.result()->ids;
  REQUIRE(whole.size() > 8);
  GenerateOptions options = greedy(30);
  // A stop string that begins inside one piece and ends in another.
  std::size_t at = whole.size() / 2;
  while (at > 0 && (static_cast<unsigned char>(whole[at]) & 0xC0) == 0x80) --at;
  options.stop = {whole.substr(at)};
  const std::string text = all_of(session.complete("hello", options));
  REQUIRE(session.result().has_value());
  CHECK(session.result()->finish_reason == FinishReason::stop);
  CHECK(text == whole.substr(0, whole.find(options.stop[0])));
  CHECK(session.result()->text == text);
}

TEST_CASE("a chain may be given as text, and a wrong one is the generation's error") {
  const auto model = test::tiny_model();
  if (!model) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  Session session(*model);
  GenerateOptions options{.max_tokens = 10, .ignore_eog = true};
  options.chain = "top_k=1";
  const std::string text = all_of(session.complete("hello", options));
  CHECK(text == all_of(session.complete("hello", greedy(10))));
  options.chain = "top_q=3";
  all_of(session.complete("hello", options));
  REQUIRE_FALSE(session.result().has_value());
  CHECK(session.result().error().code == ErrorCode::invalid_argument);
}

TEST_CASE("the same seed gives the same answer, another seed another") {
  const auto model = test::tiny_model();
  if (!model) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const auto with_seed = [&](std::uint64_t seed) {
    Session session(*model);
    GenerateOptions options{
        .max_tokens = 24, .sampling = {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0, .seed = seed}, .ignore_eog = true};
    for ([[maybe_unused]] const auto piece : session.complete("hello", options)) {}
    return session.result()->ids;
  };
  CHECK(with_seed(1) == with_seed(1));
  CHECK(with_seed(1) != with_seed(2));
}

TEST_CASE("logits that are no numbers are an error that says so, never a token") {
  const auto path = test::data("golden/quant/gguf/F32.gguf");
  if (!path) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  test::FileBytes file(*path);
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(file.tensor("output_norm.weight").data(), &nan, sizeof nan);
  const auto model = load(file.bytes(), {.cpu = {.threads = 1}});
  REQUIRE(model.has_value());
  Session session(*model);
  CHECK(all_of(session.complete("hello", greedy(5))).empty());
  REQUIRE_FALSE(session.result().has_value());
  CHECK(session.result().error().code == ErrorCode::numeric);
}

TEST_CASE("a stop request ends a long prompt within one chunk, and the session goes on") {
  const auto model = test::tiny_model();
  if (!model) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  Session session(*model, {.context = {.positions = 4000, .chunk = 16}});
  const std::string prompt(test::sanitized ? 400 : 3000, 'x');
  // Requested beforehand: no chunk at all is read.
  std::stop_source source;
  source.request_stop();
  GenerateOptions options = greedy(5);
  options.stop_token = source.get_token();
  CHECK(all_of(session.complete(prompt, options)).empty());
  REQUIRE(session.result().has_value());
  CHECK(session.result()->finish_reason == FinishReason::cancelled);
  CHECK((*session.context())->cache().length(0) == 0);
  // While it reads: no chunk is begun after the request, and what has been read stays.
  std::stop_source later;
  options.stop_token = later.get_token();
  const auto sink = std::make_shared<StopsAfter>(later, 48);
  options.progress = sink;
  all_of(session.complete(prompt, options));
  REQUIRE(session.result().has_value());
  CHECK(session.result()->finish_reason == FinishReason::cancelled);
  CHECK(session.result()->ids.empty());
  CHECK(session.result()->prefill_seconds == 0);
  CHECK(session.result()->first_token_seconds == 0);
  CHECK(sink->reports == std::vector<std::uint64_t>{16, 32, 48});
  const std::size_t read = (*session.context())->cache().length(0);
  CHECK(read == 48);
  CHECK(session.cached().size() == read);
  // The rest of the prompt is read as if nothing had happened.
  Session fresh(*model, {.context = {.positions = 4000, .chunk = 16}});
  CHECK(all_of(session.complete(prompt, greedy(5))) == all_of(fresh.complete(prompt, greedy(5))));
  CHECK(session.result()->reused_tokens == read);
}

TEST_CASE("a stop request ends an answer at the next token, and keeps its text") {
  const auto model = test::tiny_model();
  if (!model) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  Session session(*model);
  std::stop_source source;
  GenerateOptions options = greedy(500);
  options.stop_token = source.get_token();
  std::size_t pieces = 0;
  std::string text;
  for (const std::string_view piece : session.complete("hello", options)) {
    text += piece;
    if (++pieces == 3) source.request_stop();
  }
  REQUIRE(session.result().has_value());
  CHECK(session.result()->finish_reason == FinishReason::cancelled);
  CHECK(session.result()->text == text);
  CHECK(session.result()->ids.size() < 20);
}

TEST_CASE("a conversation keeps its history, and forgets a question that was not answered") {
  const auto model = test::tiny_model();
  if (!model) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  SessionOptions options{.context = {.positions = 300}, .system = "be brief"};
  options.chat_template = *ChatTemplate::parse("{% for m in messages %}[{{ m.role }}]{{ m.content }}\n{% endfor %}[assistant]");
  Session session(*model, options);
  const std::string first = all_of(session.generate("hi", greedy(6)));
  REQUIRE(session.messages().size() == 3);
  CHECK(session.messages()[0].content == "be brief");
  CHECK(session.messages()[1].content == "hi");
  CHECK(session.messages()[2].role == "assistant");
  CHECK(session.messages()[2].content == first);
  all_of(session.generate("and now?", greedy(6)));
  CHECK(session.messages().size() == 5);
  CHECK(session.result()->reused_tokens > 20);

  all_of(session.generate(std::string(1000, 'x'), greedy(6)));
  REQUIRE_FALSE(session.result().has_value());
  CHECK(session.result().error().code == ErrorCode::context_full);
  CHECK(session.messages().size() == 5);
  std::stop_source source;
  source.request_stop();
  GenerateOptions stopped = greedy(6);
  stopped.stop_token = source.get_token();
  all_of(session.generate("stop", stopped));
  CHECK(session.result()->finish_reason == FinishReason::cancelled);
  CHECK(session.messages().size() == 5);
  all_of(session.generate("go on", greedy(6)));
  CHECK(session.messages().size() == 7);
}

TEST_CASE("an answer that was left before its end ends when the history is replaced, and does not come into the new one") {
  const auto model = test::tiny_model();
  if (!model) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  SessionOptions options{.context = {.positions = 2000}};
  options.chat_template = *ChatTemplate::parse("{% for m in messages %}[{{ m.role }}]{{ m.content }}\n{% endfor %}[assistant]");
  Session session(*model, options);
  const auto leave_one = [&] {
    std::string seen;
    for (const std::string_view piece : session.generate("left", greedy(30)))
      if ((seen += piece).size() > 3) break;
    REQUIRE(session.messages().back().content == "left");
    return seen;
  };
  leave_one();
  session.set_messages({});
  CHECK(session.messages().empty());
  REQUIRE(session.result().has_value());
  CHECK(session.result()->finish_reason == FinishReason::cancelled);
  CHECK(session.result()->text.size() > 3);
  all_of(session.generate("new", greedy(4)));
  REQUIRE(session.messages().size() == 2);
  CHECK(session.messages()[0].content == "new");
  CHECK(session.messages()[1].role == "assistant");
  // Ended by itself the answer stays, as one that was stopped does; a second end changes nothing.
  const std::string seen = leave_one();
  session.end_generation();
  session.end_generation();
  REQUIRE(session.messages().size() == 4);
  CHECK(session.messages()[3].content.starts_with(seen));
  // A range that is still walked ends too, and one that was not begun asks nothing.
  session.set_messages({});
  std::size_t pieces = 0;
  for ([[maybe_unused]] const auto piece : session.generate("walked", greedy(30))) {
    if (++pieces == 2) session.set_messages({});
  }
  CHECK(pieces >= 2);
  CHECK(pieces <= 3);
  CHECK(session.messages().empty());
  auto never = session.generate("never begun", greedy(30));
  session.set_messages({{"user", "other"}, {"assistant", "one"}});
  CHECK(all_of(never).empty());
  CHECK(session.messages().size() == 2);
}

TEST_CASE("a conversation without a template is an error, and a template's own error reaches the host") {
  const auto model = test::tiny_model();
  if (!model) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  Session bare(*model);
  all_of(bare.generate("hi", greedy(3)));
  REQUIRE_FALSE(bare.result().has_value());
  CHECK(bare.result().error().code == ErrorCode::missing);
  SessionOptions options;
  options.chat_template = *ChatTemplate::parse("{{ raise_exception('no') }}");
  Session raising(*model, options);
  all_of(raising.generate("hi", greedy(3)));
  REQUIRE_FALSE(raising.result().has_value());
  CHECK(raising.result().error().code == ErrorCode::template_error);
  CHECK(raising.result().error().message() == "chat template: line 1: no");
  CHECK(raising.messages().empty());
}

TEST_CASE("two sessions of one model in two threads do not disturb each other") {
  const auto model = test::tiny_model(2);
  if (!model) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const std::vector<std::string> prompts = {"the quick brown fox", "a lazy dog"};
  std::vector<std::string> alone, together(2);
  for (const std::string& prompt : prompts) alone.push_back(all_of(Session(*model).complete(prompt, greedy(30))));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 2; ++i)
    threads.emplace_back([&, i] { together[i] = all_of(Session(*model).complete(prompts[i], greedy(30))); });
  for (std::thread& thread : threads) thread.join();
  CHECK(together == alone);
}

TEST_CASE("a budget ends the thinking after exactly N tokens, and the answer alone is the history") {
  const auto model = test::tiny_model();
  if (!model) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  SessionOptions options{.context = {.positions = 300}};
  options.chat_template =
      *ChatTemplate::parse("{% for m in messages %}[{{ m.role }}]{{ m.content }}\n{% endfor %}[assistant]<think>\n");
  for (const std::size_t n : {0u, 1u, 7u}) {
    CAPTURE(n);
    Session session(*model, options);
    GenerateOptions generate = greedy(n + 20);
    generate.think_budget.most = n;
    std::string thinking, answer;
    for (const std::string_view piece : session.generate("hi", generate)) (session.thinking() ? thinking : answer) += piece;
    const auto& result = session.result();
    REQUIRE(result.has_value());
    CHECK(result->thinking == thinking);
    CHECK(result->text == answer);
    CHECK(result->thinking_tokens == n);
    StreamDecoder decoder(*model->tokenizer(), {.at_start = true});
    std::string all;
    for (const TokenId id : result->ids) all += decoder.push(id);
    CHECK(all + std::string(decoder.flush()) == thinking + "</think>" + answer);
    CHECK(answer.find(session.messages().back().content) != std::string::npos);
    // What the model would have thought without a budget begins alike.
    generate.think_budget = {};
    generate.split_thinking = true;
    Session free(*model, options);
    all_of(free.generate("hi", generate));
    CHECK(std::equal(result->ids.begin(), result->ids.begin() + static_cast<std::ptrdiff_t>(n), free.result()->ids.begin()));
    CHECK(free.result()->text.empty());
    CHECK(free.result()->thinking_tokens == n + 20);
  }
}

TEST_CASE("a budget for a model that is not known to think is an error, and splitting it leaves all of it answer") {
  const auto model = test::tiny_model();
  if (!model) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  Session session(*model);
  GenerateOptions generate = greedy(8);
  const std::string plain = all_of(session.complete("abc", generate));
  generate.split_thinking = true;
  CHECK(all_of(session.complete("abc", generate)) == plain);
  generate.think_budget.most = 3;
  all_of(session.complete("abc", generate));
  REQUIRE_FALSE(session.result().has_value());
  CHECK(session.result().error().code == ErrorCode::unsupported);
}
