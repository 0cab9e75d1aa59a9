// A conversation with a model: history, cache, and answers that stream.
#pragma once

#include "../models/any_model.hpp"
#include "../sampling/sampler.hpp"
#include "../text/stop_matcher.hpp"
#include "../text/stream_decoder.hpp"

#include <chrono>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace nihao {

struct SessionOptions {
  ContextOptions context = {};
  std::string system = {};  ///< the conversation's system message; empty: what the template does without one
  std::optional<ChatTemplate> chat_template = {};  ///< instead of the model's own
  std::optional<jinja::DateTime> now = {};         ///< what time templates see (RenderOptions::now)
};

struct GenerateOptions {
  std::size_t max_tokens = 512;  ///< the answer's, at most
  SamplingParams sampling = {};
  std::string chain = {};              ///< a chain as SamplerChain::parse reads it; then `sampling` gives the seed alone
  std::vector<std::string> stop = {};  ///< end before any of these
  std::stop_token stop_token = {};     ///< asked once a step, and between chunks of a prompt
  bool ignore_eog = false;             ///< go on past the model's end token (for measuring)
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
  std::string text;
  std::vector<TokenId> prompt_ids, ids;
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
  explicit Session(AnyModel model, SessionOptions options = {}) : model_(std::move(model)), options_(std::move(options)) {
    if (!options_.system.empty()) messages_.push_back({"system", options_.system});
  }

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
  [[nodiscard]] Generation generate(std::string_view message, GenerateOptions options = {}) {
    begin(std::move(options), true);
    messages_.push_back({"user", std::string(message)});
    prompt_error_ = render_prompt();
    return Generation(*this);
  }

  /// Continues `text` as it stands: no template, no history. The cache is kept for what two texts have in common.
  [[nodiscard]] Generation complete(std::string_view text, GenerateOptions options = {}) {
    begin(std::move(options), false);
    prompt_error_ = encode(text);
    return Generation(*this);
  }

  /// The same for a text that is tokens already.
  [[nodiscard]] Generation complete(std::vector<TokenId> ids, GenerateOptions options = {}) {
    begin(std::move(options), false);
    result_.prompt_ids = std::move(ids);
    if (model_.tokenizer() == nullptr) prompt_error_ = no_tokenizer();
    return Generation(*this);
  }

  /// The last generation: its error, or what came of it (so far, if the range has not been walked to its end).
  [[nodiscard]] const Expected<GenerationResult>& result() {
    if (!finished_ && !ended_) outcome_ = result_;
    return outcome_;
  }

  [[nodiscard]] const AnyModel& model() const noexcept { return model_; }
  [[nodiscard]] std::span<const Message> messages() const noexcept { return messages_; }
  /// Replaces the history; the cache is reused as far as it fits.
  void set_messages(std::vector<Message> messages) { messages_ = std::move(messages); }
  /// The tokens whose keys and values are in the cache.
  [[nodiscard]] std::span<const TokenId> cached() const noexcept { return cached_; }
  /// The context, made now if no generation has needed it yet. Errors: as AnyModel::context.
  [[nodiscard]] Expected<ModelContext*> context() {
    if (context_ == nullptr) { NIHAO_TRY(context_, model_.context(options_.context)); }
    return context_.get();
  }
  /// Says which tokens the cache holds, after somebody has filled it (loading a saved session).
  void set_cached(std::vector<TokenId> tokens) { cached_ = std::move(tokens); }

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] static double seconds_since(Clock::time_point start) noexcept {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  void begin(GenerateOptions options, bool chat) {
    if (!finished_ && !ended_) static_cast<void>(finish(FinishReason::cancelled));  // a range left before its end
    generate_ = std::move(options);
    chat_ = chat;
    result_ = {};
    outcome_ = GenerationResult{};
    prompt_error_ = {};
    sampler_.reset();
    stop_ = StopMatcher(generate_.stop);
    decoder_.reset();
    if (const Tokenizer* t = model_.tokenizer())
      decoder_.emplace(*t, StreamDecoderOptions{.skip_special = true, .at_start = chat});
    finished_ = ended_ = started_ = false;
    start_ = Clock::now();
  }

  [[nodiscard]] static Error no_tokenizer() { return Error{ErrorCode::missing, "the model's files have no tokenizer"}; }

  [[nodiscard]] Expected<void> encode(std::string_view text) {
    if (model_.tokenizer() == nullptr) return no_tokenizer();
    NIHAO_TRY(result_.prompt_ids, model_.tokenizer()->encode(text));
    return {};
  }

  [[nodiscard]] Expected<void> render_prompt() {
    if (model_.tokenizer() == nullptr) return no_tokenizer();
    const ChatTemplate* chat_template = options_.chat_template ? &*options_.chat_template : model_.chat_template();
    if (chat_template == nullptr) return Error{ErrorCode::missing, "the model's files have no chat template"};
    const Tokenizer& t = *model_.tokenizer();
    const auto name = [&](std::optional<TokenId> id) { return id ? t.piece(*id) : std::string_view(); };
    NIHAO_TRY(const std::string text,
              chat_template->render(messages_, true, name(t.bos()), name(t.eos()), {.now = options_.now}));
    // A template that writes BOS itself is not given another.
    const bool has_bos = t.bos() && !name(t.bos()).empty() && text.starts_with(name(t.bos()));
    NIHAO_TRY(result_.prompt_ids, t.encode(text, {.add_special = !has_bos, .parse_special = true}));
    return {};
  }

  // The next piece, or the end.
  void advance() {
    piece_ = {};
    if (ended_) finished_ = true;  // the last piece has been shown
    while (!finished_ && piece_.empty())
      if (auto step = next_token(); !step) fail(std::move(step).error());
  }

  [[nodiscard]] Expected<void> next_token() {
    if (!started_) {
      NIHAO_CHECK(std::move(prompt_error_));
      NIHAO_CHECK(read_prompt());
      started_ = true;
    } else {
      if (generate_.stop_token.stop_requested()) return finish(FinishReason::cancelled);
      if (result_.ids.size() >= generate_.max_tokens || cached_.size() >= context_->cache().capacity())
        return finish(FinishReason::length);
      const SequenceTokens next{0, std::span(&result_.ids.back(), 1), Wanted::last};
      NIHAO_TRY(logits_, context_->step(std::span(&next, 1)));
      cached_.push_back(result_.ids.back());
    }
    if (generate_.max_tokens == 0) return finish(FinishReason::length);
    NIHAO_TRY(const TokenId id, sampler_->sample(logits_.row(logits_.rows() - 1), history_));
    history_.push_back(id);
    if (result_.ids.empty()) {
      result_.first_token_seconds = seconds_since(start_);
      decode_start_ = Clock::now();
    } else {
      result_.decode_seconds = seconds_since(decode_start_);
      ++result_.decode_tokens;
    }
    if (model_.tokenizer()->is_eog(id) && !generate_.ignore_eog) return finish(FinishReason::stop);
    result_.ids.push_back(id);
    let_out(stop_.push(decoder_->push(id)));
    if (stop_.matched()) return finish(FinishReason::stop);
    return {};
  }

  // Brings the cache to the prompt: keeps what it has in common with it, computes the rest.
  [[nodiscard]] Expected<void> read_prompt() {
    NIHAO_TRY(ModelContext* const context, this->context());
    const std::vector<TokenId>& ids = result_.prompt_ids;
    if (ids.empty()) return Error{ErrorCode::invalid_argument, "the prompt is empty, and the model has no begin token"};
    if (ids.size() > context->cache().capacity())
      return Error{ErrorCode::context_full,
                   concat("the context holds ", context->cache().capacity(), " tokens, and the prompt has ", ids.size())};
    if (!sampler_) {
      const std::size_t vocab = model_.config().vocab;
      NIHAO_TRY(auto sampler, generate_.chain.empty() ? SamplerChain::make(generate_.sampling, vocab)
                                                      : SamplerChain::parse(generate_.chain, vocab, generate_.sampling.seed));
      sampler_.emplace(std::move(sampler));
    }
    std::size_t common = 0;
    while (common < cached_.size() && common + 1 < ids.size() && cached_[common] == ids[common])
      ++common;  // the last is always computed
    context->cache().truncate(0, common);
    cached_.resize(common);
    history_ = ids;
    result_.reused_tokens = common;
    result_.ids.reserve(std::min<std::size_t>(generate_.max_tokens, context->cache().capacity()));
    const auto begin = Clock::now();
    Hooks hooks;
    hooks.stop = generate_.stop_token;
    auto logits = context->prefill(0, std::span(ids).subspan(common), hooks);
    cached_.assign(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(context->cache().length(0)));
    if (!logits) return std::move(logits).error();
    logits_ = *logits;
    result_.prefill_seconds = seconds_since(begin);
    return {};
  }

  void let_out(std::string_view text) {
    const std::size_t before = result_.text.size();
    result_.text += text;
    piece_ = std::string_view(result_.text).substr(before);
  }

  Expected<void> finish(FinishReason reason) {
    if (decoder_ && !stop_.matched()) {
      const std::string tail = std::string(stop_.push(decoder_->flush()));
      let_out(tail + std::string(stop_.matched() ? std::string_view() : stop_.flush()));
    }
    result_.finish_reason = reason;
    if (chat_ && reason == FinishReason::cancelled && result_.text.empty()) forget_question();
    else if (chat_) messages_.push_back({"assistant", result_.text});
    outcome_ = result_;
    ended_ = true;
    finished_ = piece_.empty();  // a last piece is shown first: the next advance ends the range
    return {};
  }

  void fail(Error error) {
    if (error.code == ErrorCode::cancelled) {
      static_cast<void>(finish(FinishReason::cancelled));
      return;
    }
    if (chat_) forget_question();
    outcome_ = std::move(error);
    ended_ = finished_ = true;
  }

  // Nothing was answered: as if it had not been asked.
  void forget_question() {
    if (!messages_.empty() && messages_.back().role == "user") messages_.pop_back();
  }

  AnyModel model_;
  SessionOptions options_;
  std::shared_ptr<ModelContext> context_;
  std::vector<Message> messages_;
  std::vector<TokenId> cached_, history_;
  GenerateOptions generate_;
  GenerationResult result_;
  Expected<GenerationResult> outcome_ = GenerationResult{};
  Expected<void> prompt_error_;
  std::optional<SamplerChain> sampler_;
  std::optional<StreamDecoder> decoder_;
  StopMatcher stop_;
  MatrixView<const float> logits_;
  std::string_view piece_;
  Clock::time_point start_, decode_start_;
  bool chat_ = false, started_ = false, finished_ = true, ended_ = false;
};

}  // namespace nihao
