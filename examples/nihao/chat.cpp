// nihao chat: a conversation at the terminal.
#include "commands.hpp"
#include "line_reader.hpp"
#include "model.hpp"
#include "speed.hpp"
#include "thinking.hpp"

#include <nihao/engine/session_file.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <unistd.h>

namespace nihao::program {

namespace {

struct ChatFlags {
  ModelFlags model;
  SamplingFlags sampling;
  ThinkFlags think;
  std::size_t tokens = 0;
  std::vector<std::string> stop;
  std::string system, chat_template;
};

class Chat {
 public:
  Chat(const ChatFlags& flags, Interrupts& interrupts, Session session)
      : flags_(flags), interrupts_(interrupts), session_(std::move(session)), terminal_(::isatty(STDIN_FILENO) != 0) {}

  void talk() {
    LineReader input(interrupts_);
    std::string message, line;
    bool asked_to_leave = false;
    for (;;) {
      if (terminal_) fmt::print("{}", message.empty() ? "> " : "  ");
      std::fflush(stdout);
      switch (input.read(line)) {
        case LineReader::Event::end:
          if (terminal_) fmt::print("\n");
          if (!message.empty()) {  // the last line ended in a backslash, and nothing goes on
            message.pop_back();
            take(message);
          }
          return;
        case LineReader::Event::interrupted:
          if (terminal_) fmt::print("\n");
          if (asked_to_leave) return;
          asked_to_leave = true;
          message.clear();
          note("Ctrl-C once more leaves; so do Ctrl-D and /quit");
          continue;
        case LineReader::Event::line: break;
      }
      asked_to_leave = false;
      if (line.ends_with('\\')) {  // the message goes on
        line.back() = '\n';
        message += line;
        continue;
      }
      message += line;
      if (!take(message)) return;
      message.clear();
    }
  }

 private:
  static constexpr const char* help =
      "/save F       keep the conversation, with all that was computed, in a file\n"
      "/load F       go on with a conversation from a file\n"
      "/clear        forget the conversation; the system message stays\n"
      "/system TEXT  set the system message; without TEXT remove it\n"
      "/quit         leave; so do Ctrl-D, and Ctrl-C twice\n"
      "A line that ends in \\ goes on in the next. A line that begins with // is a message that begins with /.\n"
      "Ctrl-C stops an answer.";

  // A message or a command. False: leave.
  bool take(const std::string& message) {
    if (message.starts_with('/') && !message.starts_with("//")) return command(message);
    if (!message.empty()) answer(message.starts_with("//") ? message.substr(1) : message);
    return true;
  }

  // False: leave.
  bool command(const std::string& line) {
    const auto space = line.find(' ');
    const std::string name = line.substr(0, space);
    std::string rest = space == std::string::npos ? ""
                                                  : line.substr(line.find_first_not_of(' ', space) == std::string::npos
                                                                    ? line.size()
                                                                    : line.find_first_not_of(' ', space));
    if (name == "/quit") return false;
    if (name == "/help") note(help);
    else if (name == "/clear") clear();
    else if (name == "/system") set_system(std::move(rest));
    else if (name == "/save" || name == "/load") save_or_load(name == "/save", rest);
    else note(fmt::format("there is no {}; /help tells what there is", one_line(name)));
    return true;
  }

  void clear() {
    std::vector<Message> kept;
    if (!session_.messages().empty() && session_.messages().front().role == "system") kept.push_back(session_.messages().front());
    session_.set_messages(std::move(kept));
    note("the conversation is forgotten");
  }

  void set_system(std::string text) {
    std::vector<Message> messages(session_.messages().begin(), session_.messages().end());
    const bool has = !messages.empty() && messages.front().role == "system";
    if (has && text.empty()) messages.erase(messages.begin());
    else if (has) messages.front().content = std::move(text);
    else if (!text.empty()) messages.insert(messages.begin(), Message{"system", std::move(text)});
    session_.set_messages(std::move(messages));
  }

  void save_or_load(bool save, const std::string& path) {
    if (path.empty()) return note(save ? "/save needs the name of a file" : "/load needs the name of a file");
    try {
      if (save) keep_apart(path, "/save", flags_.model.path, "the model");
    } catch (const UsageError& error) { return note(error.what()); }
    const Expected<void> done = save ? save_session(session_, path) : load_session(session_, path);
    if (!done) return note(fmt::format("error: {}", one_line(done.error().message())));
    note(fmt::format("{} {} messages, {} tokens", save ? "saved" : "loaded", session_.messages().size(),
                     session_.cached().size()));
  }

  void answer(const std::string& message) {
    GenerateOptions options{.max_tokens = flags_.tokens > 0 ? flags_.tokens : SIZE_MAX,
                            .sampling = flags_.sampling.params,
                            .chain = flags_.sampling.chain,
                            .stop = flags_.stop,
                            .stop_token = interrupts_.work()};
    flags_.think.apply(options);
    // The same question twice is not the same draw twice. Counted in the history, so that a conversation goes on alike where it
    // was loaded from a file.
    options.sampling.seed += static_cast<std::uint64_t>(
        std::ranges::count_if(session_.messages(), [](const Message& m) { return m.role == "assistant"; }));
    bool newline = true;
    for (const std::string_view piece : session_.generate(message, std::move(options))) {
      flags_.think.print(session_, piece);
      if (!session_.thinking()) newline = piece.ends_with('\n');
    }
    interrupts_.idle();
    if (!newline) fmt::print("\n");
    const auto& result = session_.result();
    if (!result) {
      note(fmt::format("error: {}", one_line(result.error().message())));
      if (result.error().code == ErrorCode::context_full) context_is_full();
      return;
    }
    flags_.think.print_count(*result);
    const Speed speed(*result);
    std::string line = fmt::format("[{} tokens, {:.1f} tokens/s", speed.decode_tokens, speed.decode_per_second);
    if (result->finish_reason == FinishReason::cancelled) line += "; stopped";
    const bool full = result->finish_reason == FinishReason::length && (flags_.tokens == 0 || result->ids.size() < flags_.tokens);
    if (result->finish_reason == FinishReason::length)
      line += full ? "; finish reason length: the context is full" : "; finish reason length: -n";
    note(line + "]");
    if (full) context_is_full();
  }

  void context_is_full() {
    const auto context = session_.context();
    note(fmt::format("the context of {} tokens is full; the history is kept: /save F puts it in a file, /clear starts anew",
                     context ? (*context)->cache().capacity() : 0));
  }

  const ChatFlags& flags_;
  Interrupts& interrupts_;
  Session session_;
  bool terminal_;
};

Expected<int> chat(const ChatFlags& flags) {
  SessionOptions options{.context = flags.model.context_options(), .system = flags.system, .now = local_time()};
  if (!flags.chat_template.empty()) { NIHAO_TRY(options.chat_template, load_template(flags.chat_template)); }
  Interrupts interrupts;
  const std::stop_token stop = interrupts.work();
  NIHAO_TRY(const AnyModel model, load_model(flags.model, stop));
  if (stop.stop_requested()) return Error{ErrorCode::cancelled, "stopped while loading", flags.model.path};
  interrupts.idle();
  if (auto tokenizer = model.require_tokenizer(); !tokenizer) return std::move(tokenizer).error().in(flags.model.path);
  if (auto own = model.require_chat_template(); !own && !options.chat_template) {
    own.error().what += ": give one with --template";
    return std::move(own).error().in(flags.model.path);
  }
  note(fmt::format("{}. /help tells the commands; Ctrl-C stops an answer.", describe(model.config(), model.tensors())));
  Chat(flags, interrupts, Session(model, std::move(options))).talk();
  return 0;
}

}  // namespace

void add_chat(Commands& commands) {
  const auto flags = std::make_shared<ChatFlags>();
  CLI::App& app = commands.add("chat", "A conversation at the terminal", [flags] { return chat(*flags); });
  flags->model.add(app);
  app.add_option("--system", flags->system, "the system message")->type_name("TEXT");
  app.add_option("--template", flags->chat_template, "a file with a template, instead of the model's own")
      ->type_name("F")
      ->check(not_empty());
  app.add_option("-n", flags->tokens, "most tokens of an answer (default: to the end of the context)")
      ->type_name("N")
      ->transform(within(1, 1 << 28));
  app.add_option("--stop", flags->stop, "end an answer before this text; may be given several times")
      ->type_name("TEXT")
      ->allow_extra_args(false)
      ->check(not_empty());
  flags->sampling.add(app);
  flags->think.add(app);
}

}  // namespace nihao::program
