// Session, defined.
#pragma once

#include "../sampling/sampler.hpp"
#include "../text/untrusted.hpp"
#include "session.hpp"

#include <algorithm>

namespace nihao {

namespace detail {
[[nodiscard]] inline double seconds_since(std::chrono::steady_clock::time_point start) noexcept {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}
// Templates put the white space between thinking and answer themselves.
[[nodiscard]] inline std::string trimmed(const std::string& text) {
  constexpr const char* space = " \t\n\r";
  const std::size_t from = text.find_first_not_of(space);
  return from == text.npos ? std::string() : text.substr(from, text.find_last_not_of(space) + 1 - from);
}
}  // namespace detail

NIHAO_INLINE Session::Session(AnyModel model, SessionOptions options) : model_(std::move(model)), options_(std::move(options)) {
  if (!options_.system.empty()) messages_.push_back({"system", options_.system});
}
NIHAO_INLINE Session::Session(Session&&) noexcept = default;
NIHAO_INLINE Session& Session::operator=(Session&&) noexcept = default;
NIHAO_INLINE Session::~Session() = default;

NIHAO_INLINE Session::Generation Session::generate(std::string_view message, GenerateOptions options) {
  begin(std::move(options), true);
  messages_.push_back({"user", std::string(message)});
  prompt_error_ = render_prompt();
  return Generation(*this);
}

NIHAO_INLINE Session::Generation Session::complete(std::string_view text, GenerateOptions options) {
  begin(std::move(options), false);
  prompt_error_ = encode(text);
  return Generation(*this);
}

NIHAO_INLINE Session::Generation Session::complete(std::vector<TokenId> ids, GenerateOptions options) {
  begin(std::move(options), false);
  result_.prompt_ids = std::move(ids);
  if (auto tokenizer = model_.require_tokenizer(); !tokenizer) prompt_error_ = std::move(tokenizer).error();
  return Generation(*this);
}

NIHAO_INLINE const Expected<GenerationResult>& Session::result() {
  if (!finished_ && !ended_) outcome_ = result_;
  return outcome_;
}

NIHAO_INLINE void Session::set_messages(std::vector<Message> messages) {
  end_generation();
  messages_ = std::move(messages);
}

NIHAO_INLINE void Session::set_cached(std::vector<TokenId> tokens) {
  end_generation();
  cached_ = std::move(tokens);
}

NIHAO_INLINE void Session::end_generation() {
  if (!finished_ && !ended_) static_cast<void>(finish(FinishReason::cancelled));
}

NIHAO_INLINE Expected<ModelContext*> Session::context() {
  if (context_ == nullptr) { NIHAO_TRY(context_, model_.context(options_.context)); }
  return context_.get();
}

NIHAO_INLINE void Session::begin(GenerateOptions options, bool chat) {
  end_generation();
  generate_ = std::move(options);
  chat_ = chat;
  result_ = {};
  outcome_ = GenerationResult{};
  prompt_error_ = {};
  sampler_.reset();
  reasoning_.reset();
  splitter_.reset();
  budget_.reset();
  stop_ = StopMatcher(generate_.stop);
  decoder_.reset();
  if (const Tokenizer* t = model_.tokenizer()) decoder_.emplace(*t, StreamDecoderOptions{.skip_special = true, .at_start = chat});
  finished_ = ended_ = started_ = false;
  start_ = Clock::now();
}

NIHAO_INLINE Expected<void> Session::encode(std::string_view text) {
  NIHAO_TRY(const Tokenizer* t, model_.require_tokenizer());
  NIHAO_TRY(result_.prompt_ids, t->encode(text));
  return {};
}

NIHAO_INLINE Expected<void> Session::render_prompt() {
  NIHAO_TRY(const Tokenizer* tokenizer, model_.require_tokenizer());
  const Tokenizer& t = *tokenizer;
  const ChatTemplate* chat_template = options_.chat_template ? &*options_.chat_template : nullptr;
  if (chat_template == nullptr) { NIHAO_TRY(chat_template, model_.require_chat_template()); }
  NIHAO_TRY(const UntrustedPrompt prompt, render_untrusted(*chat_template, messages_, true, t, {.now = options_.now}));
  // A template that writes BOS itself is not given another.
  const std::string_view bos = t.bos() ? t.piece(*t.bos()) : std::string_view();
  const bool has_bos = !bos.empty() && prompt.text.starts_with(bos);
  NIHAO_TRY(result_.prompt_ids, t.encode(prompt.text, {.add_special = !has_bos, .parse_special = true, .breaks = prompt.breaks}));
  return {};
}

// Finds out how the model thinks, and whether the prompt has begun it.
NIHAO_INLINE Expected<void> Session::prepare_thinking() {
  if (!generate_.split_thinking && !generate_.think_budget.any()) return {};
  const Tokenizer& t = *model_.tokenizer();
  const ChatTemplate* own = options_.chat_template ? &*options_.chat_template : model_.chat_template();
  reasoning_ =
      find_reasoning_format(own != nullptr ? own->source() : "", [&](std::string_view s) { return t.find(s).has_value(); });
  if (!reasoning_) {
    if (!generate_.think_budget.any()) return {};
    return Error{ErrorCode::unsupported, "neither the model's template nor its vocabulary tells how it marks its thinking"};
  }
  constexpr std::size_t enough = 64;  // tokens of the prompt's end, where the marker may be
  const std::span<const TokenId> ids = result_.prompt_ids;
  const bool inside = opens_thinking(*reasoning_, t.decode(ids.last(std::min(enough, ids.size()))));
  const EncodeOptions plain{.add_special = false, .parse_special = true};
  ThinkBudget::Tokens tokens;
  NIHAO_TRY(tokens.close, t.encode(reasoning_->close, plain));
  NIHAO_TRY(tokens.force, t.encode(reasoning_->to_answer(), plain));
  NIHAO_TRY(tokens.wait, t.encode("Wait", plain));
  splitter_.emplace(*reasoning_, inside);
  budget_.emplace(generate_.think_budget, std::move(tokens), inside);
  return {};
}

// The next token: sampled, or what the thinking's budget says.
NIHAO_INLINE Expected<TokenId> Session::choose_token() {
  drawn_ = false;
  if (const auto forced = budget_ ? budget_->forced() : std::nullopt) return budget_->push(*forced);
  NIHAO_TRY(const TokenId id, sampler_->sample(logits_.row(logits_.rows() - 1), history_, result_.prompt_ids.size()));
  const TokenId chosen = budget_ ? budget_->push(id, model_.tokenizer()->is_eog(id) && !generate_.ignore_eog) : id;
  drawn_ = chosen == id;
  return chosen;
}

NIHAO_INLINE Expected<void> Session::add_logprobs(TokenId id) {
  Logprobs made{LogprobsOf::chain, {id, 0}, {}};
  if (generate_.logprobs_of == LogprobsOf::raw) {
    NIHAO_TRY(made, raw_logprobs(logits_.row(logits_.rows() - 1), id, *generate_.logprobs));
  } else if (drawn_) {
    NIHAO_TRY(made, chain_logprobs(sampler_->probabilities(), id, *generate_.logprobs));
  }
  result_.logprobs.push_back(std::move(made));
  return {};
}

// The next piece, or the end.
NIHAO_INLINE void Session::advance() {
  piece_ = std::exchange(next_piece_, {});
  thinking_ = false;
  if (!piece_.empty()) return;
  if (ended_) finished_ = true;  // the last piece has been shown
  while (!finished_ && piece_.empty())
    if (auto step = next_token(); !step) fail(std::move(step).error());
}

NIHAO_INLINE Expected<void> Session::next_token() {
  if (!started_) {
    NIHAO_CHECK(std::move(prompt_error_));
    NIHAO_CHECK(prepare_thinking());
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
  NIHAO_TRY(const TokenId id, choose_token());
  history_.push_back(id);
  if (result_.ids.empty()) {
    result_.first_token_seconds = detail::seconds_since(start_);
    decode_start_ = Clock::now();
  } else {
    result_.decode_seconds = detail::seconds_since(decode_start_);
    ++result_.decode_tokens;
  }
  if (model_.tokenizer()->is_eog(id) && !generate_.ignore_eog) return finish(FinishReason::stop);
  result_.ids.push_back(id);
  if (generate_.logprobs) NIHAO_CHECK(add_logprobs(id));
  const std::string_view text =
      stop_.push(decoder_->push(id, reasoning_ && reasoning_->has_marker(model_.tokenizer()->piece(id))));
  let_out(text, stop_.matched());
  if (budget_) {
    budget_->set_inside(splitter_->thinking());
    result_.thinking_tokens = budget_->thinking_tokens();
  }
  if (stop_.matched()) return finish(FinishReason::stop);
  return {};
}

// Brings the cache to the prompt: keeps what it has in common with it, computes the rest.
NIHAO_INLINE Expected<void> Session::read_prompt() {
  NIHAO_TRY(ModelContext* const context, this->context());
  const std::vector<TokenId>& ids = result_.prompt_ids;
  if (ids.empty()) return Error{ErrorCode::invalid_argument, "the prompt is empty, and the model has no begin token"};
  if (ids.size() > context->cache().capacity())
    return Error{ErrorCode::context_full,
                 concat("the context holds ", context->cache().capacity(), " tokens, and the prompt has ", ids.size())};
  if (!sampler_) {
    const std::size_t vocab = model_.config().vocab;
    NIHAO_TRY(auto sampler, generate_.chain.empty() ? SamplerChain::make(generate_.sampling, vocab)
                                                    : SamplerChain::parse(generate_.chain, vocab, generate_.sampling.seed,
                                                                          model_.tokenizer()->eog()));
    sampler_ = std::make_unique<SamplerChain>(std::move(sampler));
  }
  std::size_t common = 0;
  while (common < cached_.size() && common + 1 < ids.size() && cached_[common] == ids[common])
    ++common;  // the last is always computed
  context->cache().truncate(0, common);
  cached_.resize(common);
  history_ = ids;
  result_.reused_tokens = common;
  // All that grows with a token has its room now: decoding allocates nothing, but for text beyond eight bytes a token.
  const std::size_t most = std::min<std::size_t>(generate_.max_tokens, context->cache().capacity());
  result_.ids.reserve(most);
  result_.text.reserve(8 * most);
  history_.reserve(ids.size() + most);
  const auto begin = Clock::now();
  Hooks hooks;
  hooks.stop = generate_.stop_token;
  hooks.progress = generate_.progress;
  auto logits = context->prefill(0, std::span(ids).subspan(common), hooks);
  cached_.assign(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(context->cache().length(0)));
  cached_.reserve(std::min(ids.size() + most, context->cache().capacity()));
  if (!logits) return std::move(logits).error();
  logits_ = *logits;
  result_.prefill_seconds = detail::seconds_since(begin);
  return {};
}

// `last`: nothing follows.
NIHAO_INLINE void Session::let_out(std::string_view text, bool last) {
  ReasoningSplitter::Delta delta{{}, text};
  if (splitter_) delta = last ? splitter_->finish(text) : splitter_->push(text);
  const auto add = [](std::string& to, std::string_view text) {
    to += text;
    return std::string_view(to).substr(to.size() - text.size());
  };
  piece_ = add(result_.thinking, delta.reasoning);
  next_piece_ = add(result_.text, delta.content);
  thinking_ = !piece_.empty();
  if (!thinking_) piece_ = std::exchange(next_piece_, {});
}

NIHAO_INLINE Expected<void> Session::finish(FinishReason reason) {
  if (decoder_ && !stop_.matched()) {
    const std::string tail = std::string(stop_.push(decoder_->flush()));
    let_out(tail + std::string(stop_.matched() ? std::string_view() : stop_.flush()), true);
  }
  result_.finish_reason = reason;
  if (chat_ && reason == FinishReason::cancelled && result_.text.empty()) forget_question();
  else if (chat_) messages_.push_back({"assistant", splitter_ ? detail::trimmed(result_.text) : result_.text});
  outcome_ = result_;
  ended_ = true;
  finished_ = piece_.empty();  // a last piece is shown first: the next advance ends the range
  return {};
}

NIHAO_INLINE void Session::fail(Error error) {
  if (error.code == ErrorCode::cancelled) {
    static_cast<void>(finish(FinishReason::cancelled));
    return;
  }
  if (chat_) forget_question();
  outcome_ = std::move(error);
  ended_ = finished_ = true;
}

// Nothing was answered: as if it had not been asked.
NIHAO_INLINE void Session::forget_question() {
  if (!messages_.empty() && messages_.back().role == "user") messages_.pop_back();
}

}  // namespace nihao
