// Station C26, reasoning: what a model thinks and what it answers, told apart while the text streams.
#pragma once

#include "stop_matcher.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nihao {

/// How a family of models writes down its thinking. As data: a new family is a row of `reasoning_formats`.
struct ReasoningFormat {
  enum class Shape : std::uint8_t {
    block,    ///< one block at the beginning, between two markers; all after it is the answer
    harmony,  ///< messages, each with a channel (https://cookbook.openai.com/articles/openai-harmony)
  };
  std::string_view open;        ///< begins the thinking
  std::string_view close;       ///< ends it
  std::string_view force = {};  ///< what a runtime writes to end it, if that is more than `close`; begins with `close`
  Shape shape = Shape::block;

  /// What a runtime writes to have the answer begin.
  [[nodiscard]] constexpr std::string_view to_answer() const noexcept { return force.empty() ? close : force; }
  /// Whether the text of a control token is (a part of) one of the format's markers, which a decoder must not leave out.
  [[nodiscard]] constexpr bool has_marker(std::string_view token) const noexcept {
    const auto in = [&](std::string_view text) { return !token.empty() && text.find(token) != text.npos; };
    return in(open) || in(to_answer()) || (shape == Shape::harmony && in("<|constrain|><|call|><|return|>"));
  }
};

/// The formats that are known. Where a text has the markers of several, the first one counts.
inline constexpr ReasoningFormat reasoning_formats[] = {
    {"<|channel|>analysis<|message|>", "<|end|>", "<|end|><|start|>assistant<|channel|>final<|message|>",
     ReasoningFormat::Shape::harmony},           // gpt-oss
    {"<|START_THINKING|>", "<|END_THINKING|>"},  // Command-R7B, Command-A
    {"<seed:think>", "</seed:think>"},           // Seed-OSS
    {"[THINK]", "[/THINK]"},                     // Magistral
    {"<|channel>thought\n", "<channel|>"},       // Gemma 4
    {"<think>", "</think>"},                     // DeepSeek-R1, Qwen3, GLM-4.6, MiniMax-M2, Nemotron, SmolLM3, Granite, ...
};

/// The format of a model whose chat template (its source) or whose vocabulary has the markers; none if it does not think.
/// `has_token`: whether a text is one token of the vocabulary.
template <class HasToken>
[[nodiscard]] std::optional<ReasoningFormat> find_reasoning_format(std::string_view chat_template, HasToken&& has_token) {
  for (const ReasoningFormat& format : reasoning_formats) {
    const bool harmony = format.shape == ReasoningFormat::Shape::harmony;
    const std::string_view open = format.open.substr(0, format.open.find_first_of(">]") + 1);  // the token it begins with
    const std::string_view close = harmony ? "<|message|>" : format.close;
    const bool in_template = chat_template.find(open) != chat_template.npos || chat_template.find(close) != chat_template.npos;
    if (in_template || (has_token(open) && has_token(close))) return format;
  }
  return std::nullopt;
}

/// Whether the model's text begins inside the thinking: the prompt ends with the opening marker, and perhaps white space.
[[nodiscard]] inline bool opens_thinking(const ReasoningFormat& format, std::string_view prompt) noexcept {
  constexpr std::string_view space = " \t\n\r";
  const auto trimmed = [&](std::string_view text) { return text.substr(0, text.find_last_not_of(space) + 1); };
  return !format.open.empty() && trimmed(prompt).ends_with(trimmed(format.open));
}

/// Splits a streamed text into thinking and answer. What could still become a marker is held back until it cannot; markers
/// themselves come out nowhere. All that comes out, in a row, is the same however the text was cut into pieces.
///
/// block: if the text begins with the opening marker (after white space, which goes with it), or `inside` says that the prompt
/// did, all up to the first closing marker is thinking. Any other marker is text.
///
/// harmony: channel `analysis` is thinking, the others are the answer; a message to a recipient is neither, but a call of a
/// tool (see messages()). Text where a header should be is answer, so that no text of a model is lost.
class ReasoningSplitter {
 public:
  /// A message of a harmony text.
  struct Message {
    std::string channel;
    std::string recipient;  ///< whom it calls: "functions.get_weather"; empty: nobody
    std::string text;
    std::string end;  ///< the marker that ended it; empty as long as there is none
  };
  struct Delta {
    std::string_view reasoning, content;
  };

  /// A text that is all answer.
  ReasoningSplitter() = default;
  /// `inside`: the prompt has opened the thinking; see opens_thinking().
  explicit ReasoningSplitter(const ReasoningFormat& format, bool inside = false) : format_(format) {
    if (format.shape == ReasoningFormat::Shape::harmony) inside ? begin_message("analysis", {}) : begin_gap();
    else inside ? begin_thinking() : enter(State::start);
  }

  /// The text that is now certain; valid until the next call.
  Delta push(std::string_view text) {
    clear();
    while (!text.empty()) text.remove_prefix(step(text));
    return {reasoning_, content_};
  }

  /// The end of the text, after a last piece: what is still held back is no marker. A header that was never completed is left
  /// out.
  Delta finish(std::string_view text = {}) {
    push(text);
    switch (state_) {
      case State::start: content_ += held_ + std::string(format_.open.substr(0, matched_)); break;
      case State::thinking: reasoning_ += matcher_.flush(); break;
      case State::answer: break;
      case State::gap: content_ += held_, content_ += matcher_.flush(); break;
      case State::header: break;
      case State::message: to_message(matcher_.flush()); break;
    }
    held_.clear();
    enter(State::answer);
    return {reasoning_, content_};
  }

  /// Whether the next byte would be thinking, as far as is known.
  [[nodiscard]] bool thinking() const noexcept {
    return state_ == State::thinking || (state_ == State::message && is_thinking(messages_.back()));
  }
  [[nodiscard]] bool opened() const noexcept { return opened_; }
  [[nodiscard]] bool closed() const noexcept { return closed_; }
  /// The messages of a harmony text so far, the last one perhaps unfinished.
  [[nodiscard]] std::span<const Message> messages() const noexcept { return messages_; }

 private:
  enum class State : std::uint8_t { start, thinking, answer, gap, header, message };
  static constexpr std::size_t longest_header = 1024;  // of bytes: a longer one is text

  void enter(State state, std::vector<std::string> markers = {}) {
    state_ = state;
    matcher_ = StopMatcher(std::move(markers));
  }
  void begin_thinking() {
    opened_ = true;
    enter(State::thinking, {std::string(format_.close)});
  }
  void begin_gap() {
    held_.clear();
    stray_ = false;
    enter(State::gap, {"<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|call|>", "<|return|>"});
  }
  void begin_message(std::string_view channel, std::string_view recipient) {
    messages_.push_back({std::string(channel), std::string(recipient), {}, {}});
    opened_ = opened_ || is_thinking(messages_.back());
    enter(State::message, {"<|end|>", "<|call|>", "<|return|>"});
  }
  static bool is_thinking(const Message& m) noexcept { return m.recipient.empty() && m.channel == "analysis"; }

  // Reads a part of `text`, at least a byte; says how much.
  std::size_t step(std::string_view text) {
    switch (state_) {
      case State::start: return step_start(text);
      case State::answer: content_ += text; return text.size();
      default: break;
    }
    // A header's length is bounded, so that it is looked at byte by byte.
    const std::string_view out = matcher_.push(state_ == State::header ? text.substr(0, 1) : text);
    const std::size_t consumed = matcher_.consumed();
    switch (state_) {
      case State::thinking: step_thinking(out); break;
      case State::gap: step_gap(out); break;
      case State::header: step_header(out); break;
      default: step_message(out); break;
    }
    return consumed;
  }

  // Before the block: white space, then the marker or anything else.
  std::size_t step_start(std::string_view text) {
    const char byte = text.front();
    if (byte == format_.open[matched_]) {
      if (++matched_ == format_.open.size()) held_.clear(), begin_thinking();
    } else if (matched_ == 0 && (byte == ' ' || (byte >= '\t' && byte <= '\r'))) {
      held_ += byte;
    } else {
      content_ += held_, content_ += format_.open.substr(0, matched_);
      content_ += byte;
      held_.clear();
      enter(State::answer);
    }
    return 1;
  }

  void step_thinking(std::string_view out) {
    reasoning_ += out;
    if (!matcher_.matched()) return;
    closed_ = true;
    enter(State::answer);
  }

  // Between messages: nothing, or a recipient ("to=functions.f", for the role stands in the prompt), then a header's marker.
  void step_gap(std::string_view out) {
    if (!stray_) {
      held_ += out;
      stray_ = !may_be_recipient(held_);
      if (stray_) content_ += std::exchange(held_, {});
    } else {
      content_ += out;
    }
    if (!matcher_.matched()) return;
    const std::string marker(matcher_.hit());
    if (marker == "<|start|>" || marker == "<|channel|>") {
      held_ = marker == "<|start|>" ? marker : held_ + marker;
      enter(State::header, {"<|message|>"});
    } else if (marker == "<|message|>") {
      begin_message({}, recipient_of(held_));
    } else {
      begin_gap();
    }
  }

  void step_header(std::string_view out) {
    held_ += out;
    if (held_.size() > longest_header) {
      content_ += held_, content_ += matcher_.flush();
      begin_gap();
      stray_ = true;
    } else if (matcher_.matched()) {
      const std::string header = held_.substr(last(held_, "<|start|>"));
      const std::size_t channel = last(header, "<|channel|>");
      begin_message(channel == 0 ? "" : word(std::string_view(header).substr(channel)), recipient_of(header));
    }
  }

  void step_message(std::string_view out) {
    to_message(out);
    if (!matcher_.matched()) return;
    closed_ = closed_ || is_thinking(messages_.back());
    messages_.back().end = matcher_.hit();
    begin_gap();
  }
  void to_message(std::string_view out) {
    Message& m = messages_.back();
    m.text += out;
    if (m.recipient.empty()) (is_thinking(m) ? reasoning_ : content_) += out;
  }

  // Past the last `marker` of a text; 0 without one.
  static std::size_t last(std::string_view text, std::string_view marker) noexcept {
    const std::size_t at = text.rfind(marker);
    return at == text.npos ? 0 : at + marker.size();
  }
  static std::string_view word(std::string_view text) noexcept { return text.substr(0, text.find_first_of(" \t\r\n<")); }
  static std::string_view recipient_of(std::string_view header) noexcept {
    const std::size_t at = last(header, "to=");
    return at == 0 ? std::string_view() : word(header.substr(at));
  }
  static bool may_be_recipient(std::string_view text) noexcept {
    if (text.size() > longest_header) return false;
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    return text.substr(0, 3) == std::string_view("to=").substr(0, text.size());
  }
  void clear() { reasoning_.clear(), content_.clear(); }

  ReasoningFormat format_ = {};
  StopMatcher matcher_;
  std::string held_, reasoning_, content_;
  std::vector<Message> messages_;
  std::size_t matched_ = 0;  // of format_.open, at the start
  State state_ = State::answer;
  bool stray_ = false;  // the gap holds text
  bool opened_ = false, closed_ = false;
};

}  // namespace nihao
