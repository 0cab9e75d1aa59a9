// A prompt in which what people wrote cannot act: "<|im_end|>" in a message stays these ten characters, while the template's own
// is the token.
#pragma once

#include "chat_template.hpp"
#include "tokenizer.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace nihao {

/// A rendered prompt, and where encoding it must not see special tokens (EncodeOptions::breaks).
struct UntrustedPrompt {
  std::string text;
  std::vector<std::size_t> breaks;  ///< offsets in `text`, rising
};

namespace detail {
// One of the 32 noncharacters U+FDD0.. (never text: Unicode 16, 23.7) that nobody uses; empty if all are used.
[[nodiscard]] inline std::string unused_mark(std::string_view source, std::span<const Message> messages) {
  for (int i = 0; i < 32; ++i) {
    const std::string mark{'\xEF', '\xB7', static_cast<char>(0x90 + i)};
    const auto has = [&](std::string_view text) { return text.find(mark) != text.npos; };
    if (!has(source) && std::none_of(messages.begin(), messages.end(), [&](const Message& m) { return has(m.content); }))
      return mark;
  }
  return {};
}

// The contents with a mark after the first character of every special token's text; false: there is none.
[[nodiscard]] inline bool put_marks(std::vector<Message>& messages, const Tokenizer& tokenizer, std::string_view mark) {
  bool any = false;
  for (Message& m : messages) {
    const std::vector<std::size_t> starts = tokenizer.special_starts(m.content);
    for (auto start = starts.rbegin(); start != starts.rend(); ++start) {
      std::size_t at = *start + 1;
      while (at < m.content.size() && (static_cast<unsigned char>(m.content[at]) & 0xC0) == 0x80) ++at;
      m.content.insert(at, mark);
      any = true;
    }
  }
  return any;
}

[[nodiscard]] inline UntrustedPrompt take_marks(std::string_view marked, std::string_view mark) {
  UntrustedPrompt out;
  for (;;) {
    const std::size_t at = marked.find(mark);
    out.text += marked.substr(0, at);
    if (at == marked.npos) return out;
    out.breaks.push_back(out.text.size());
    marked.remove_prefix(at + mark.size());
  }
}
}  // namespace detail

/// Renders a plain conversation, and marks the texts of control tokens in the messages' contents: encode the result with its
/// breaks, and none of them becomes a token. The text is what ChatTemplate::render gives. Only a conversation that has such texts
/// costs more: it is rendered a second time, with a mark inside each of them.
///
/// Errors: those of ChatTemplate::render; template_error, if the template reads or changes such a text in a message,
/// so that it cannot be followed to its place in the prompt.
[[nodiscard]] inline Expected<UntrustedPrompt> render_untrusted(const ChatTemplate& chat, std::span<const Message> messages,
                                                                bool add_generation_prompt, const Tokenizer& tokenizer,
                                                                const RenderOptions& options = {}) {
  const auto name = [&](std::optional<TokenId> id) { return id ? tokenizer.piece(*id) : std::string_view(); };
  const auto render = [&](std::span<const Message> of) {
    return chat.render(of, add_generation_prompt, name(tokenizer.bos()), name(tokenizer.eos()), options);
  };
  NIHAO_TRY(std::string text, render(messages));
  const std::string mark = detail::unused_mark(chat.source(), messages);
  std::vector<Message> marked(messages.begin(), messages.end());
  if (!mark.empty() && !detail::put_marks(marked, tokenizer, mark)) return UntrustedPrompt{std::move(text), {}};
  const Expected<std::string> with_marks = render(marked);
  if (with_marks && !mark.empty()) {
    UntrustedPrompt out = detail::take_marks(*with_marks, mark);
    if (out.text == text) return out;
  }
  return Error{ErrorCode::template_error, "a message holds the text of a special token, and the template changes it",
               "chat template"};
}

}  // namespace nihao
