// A conversation with a model: history, cache, and answers that stream.
#pragma once

#include "../models/any_model.hpp"
#include "../sampling/logprobs.hpp"
#include "../sampling/params.hpp"
#include "../sampling/think_budget.hpp"
#include "../text/reasoning.hpp"
#include "../text/stop_matcher.hpp"
#include "../text/stream_decoder.hpp"

#include <chrono>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace nihao {

class SamplerChain;

struct SessionOptions {
  ContextOptions context = {};
  std::string system = {};  ///< the conversation's system message; empty: what the template does without one
  std::optional<ChatTemplate> chat_template = {};  ///< instead of the model's own
  std::optional<jinja::DateTime> now = {};         ///< what time templates see (RenderOptions::now)
};

struct GenerateOptions {
  std::size_t max_tokens = 512;  ///< the answer's, at most
  SamplingParams sampling = {};
  std::string chain = {};                       ///< a chain as SamplerChain::parse reads it; then `sampling` gives the seed alone
  std::vector<std::string> stop = {};           ///< end before any of these
  std::stop_token stop_token = {};              ///< asked once a step, and between chunks of a prompt
  std::shared_ptr<ProgressSink> progress = {};  ///< told after each chunk of a prompt, in tokens
  bool ignore_eog = false;                      ///< go on past the model's end token (for measuring)
  /// Tell the model's thinking from its answer: Session::thinking() says of a piece which it is, the result has them apart, and
  /// the history has the answer alone. Of a model that is not known to think, all is answer.
  bool split_thinking = false;
  /// How long the model may and must think; a limit implies split_thinking. Where nothing tells how the model marks its
  /// thinking, it is the error `unsupported`.
  ThinkLimits think_budget = {};
  /// For each token of the answer its logprob and those of so many of the likeliest (0: of none of them); nothing: no logprobs.
  std::optional<std::size_t> logprobs = {};
  LogprobsOf logprobs_of =
      LogprobsOf::raw;  ///< of which distribution; a token that the thinking budget forces is certain in `chain`
};

enum class FinishReason : std::uint8_t {
  stop,       ///< the model's end token, or a stop string
  length,     ///< max_tokens, or the context is full
  cancelled,  ///< the stop token
};

constexpr std::string_view to_string(FinishReason reason) noexcept {
  switch (reason) {
    case FinishReason::stop: return "stop";
    case FinishReason::length: return "length";
    case FinishReason::cancelled: return "cancelled";
  }
  return "unknown";
}

/// What a generation came to. Times are wall-clock.
struct GenerationResult {
  std::string text;                 ///< with split_thinking the answer alone
  std::string thinking;             ///< with split_thinking
  std::size_t thinking_tokens = 0;  ///< how many of `ids` made it, without the markers around it
  std::vector<TokenId> prompt_ids, ids;
  std::vector<Logprobs> logprobs;  ///< of each of `ids`, if they were asked for
  FinishReason finish_reason = FinishReason::stop;
  std::size_t reused_tokens = 0;   ///< of the prompt, found in the cache
  double prefill_seconds = 0;      ///< the rest of the prompt, up to its logits
  double first_token_seconds = 0;  ///< from the call to the first token
  double decode_seconds = 0;       ///< every token after the first
  std::size_t decode_tokens = 0;   ///< how many those were, an end token included
};

/// One conversation (or one text) with one model. Not for two threads at once; two sessions of a model are.
///
///     for (std::string_view piece : session.generate("你好,llama", {.max_tokens = 64})) fmt::print("{}", piece);
///     if (auto result = session.result(); !result) report(result.error());
class Session {
 public:
  /// Never fails: what goes wrong with the memory for it is the first generation's error.
  explicit Session(AnyModel model, SessionOptions options = {});
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  /// A range that makes the answer as it is walked: each piece is whole UTF-8, never empty, and valid until the next step.
  class Generation {
   public:
    class Iterator {
     public:
      using value_type = std::string_view;
      using difference_type = std::ptrdiff_t;
      using iterator_concept = std::input_iterator_tag;
      Iterator() noexcept = default;
      explicit Iterator(Session* session) : session_(session) {}
      std::string_view operator*() const noexcept { return session_->piece_; }
      Iterator& operator++() { return session_->advance(), *this; }
      void operator++(int) { ++*this; }
      friend bool operator==(const Iterator& i, std::default_sentinel_t) noexcept { return i.at_end(); }

     private:
      [[nodiscard]] bool at_end() const noexcept { return session_->finished_; }
      Session* session_ = nullptr;
    };

    explicit Generation(Session& session) noexcept : session_(&session) {}
    /// Computes the first piece.
    [[nodiscard]] Iterator begin() { return session_->advance(), Iterator(session_); }
    [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

   private:
    Session* session_;
  };

  /// Answers `message` in the conversation, through the chat template; the history then has both, or neither if nothing was
  /// answered (an error, or stopped before the first piece). Without a template the error is `missing`.
  [[nodiscard]] Generation generate(std::string_view message, GenerateOptions options = {});

  /// Continues `text` as it stands: no template, no history. The cache is kept for what two texts have in common.
  [[nodiscard]] Generation complete(std::string_view text, GenerateOptions options = {});

  /// The same for a text that is tokens already.
  [[nodiscard]] Generation complete(std::vector<TokenId> ids, GenerateOptions options = {});

  /// The last generation: its error, or what came of it (so far, if the range has not been walked to its end).
  [[nodiscard]] const Expected<GenerationResult>& result();

  /// Whether the piece that a range is at is thinking, and not answer. Without split_thinking none is.
  [[nodiscard]] bool thinking() const noexcept { return thinking_; }

  [[nodiscard]] const AnyModel& model() const noexcept { return model_; }
  /// The history. While an answer is being made its question is the last.
  [[nodiscard]] std::span<const Message> messages() const noexcept { return messages_; }
  /// Replaces the history; the cache is reused as far as it fits. A generation under way ends first, as by end_generation().
  void set_messages(std::vector<Message> messages);
  /// Ends a generation whose range was left before its end, as its stop token would: what there is of the answer goes to the
  /// history. Without one under way it does nothing. Whatever begins or replaces something calls it.
  void end_generation();
  /// The tokens whose keys and values are in the cache.
  [[nodiscard]] std::span<const TokenId> cached() const noexcept { return cached_; }
  /// The context, made now if no generation has needed it yet. Errors: as AnyModel::context.
  [[nodiscard]] Expected<ModelContext*> context();
  /// Says which tokens the cache holds, after somebody has filled it (loading a saved session). Ends a generation under way.
  void set_cached(std::vector<TokenId> tokens);

 private:
  using Clock = std::chrono::steady_clock;

  void begin(GenerateOptions options, bool chat);
  [[nodiscard]] Expected<void> encode(std::string_view text);
  [[nodiscard]] Expected<void> render_prompt();
  [[nodiscard]] Expected<void> read_prompt();
  [[nodiscard]] Expected<void> prepare_thinking();
  [[nodiscard]] Expected<TokenId> choose_token();
  [[nodiscard]] Expected<void> next_token();
  [[nodiscard]] Expected<void> add_logprobs(TokenId id);
  void advance();
  void let_out(std::string_view text, bool last);
  Expected<void> finish(FinishReason reason);
  void fail(Error error);
  void forget_question();

  AnyModel model_;
  SessionOptions options_;
  std::shared_ptr<ModelContext> context_;
  std::vector<Message> messages_;
  std::vector<TokenId> cached_, history_;
  GenerateOptions generate_;
  GenerationResult result_;
  Expected<GenerationResult> outcome_ = GenerationResult{};
  Expected<void> prompt_error_;
  std::unique_ptr<SamplerChain> sampler_;
  std::optional<StreamDecoder> decoder_;
  StopMatcher stop_;
  std::optional<ReasoningFormat> reasoning_;  // with split_thinking
  std::optional<ReasoningSplitter> splitter_;
  std::optional<ThinkBudget> budget_;
  MatrixView<const float> logits_;
  std::string_view piece_, next_piece_;
  Clock::time_point start_, decode_start_;
  bool drawn_ = false,  // whether the last token came from the sampler
      chat_ = false, started_ = false, finished_ = true, ended_ = false, thinking_ = false;
};

}  // namespace nihao

#if !NIHAO_COMPILED
#include "session_impl.hpp"
#endif
