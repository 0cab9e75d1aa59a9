#include "program/child.hpp"
#include "support/data.hpp"
#include "support/temp_folder.hpp"

#include <fstream>

using namespace nihao;

namespace {

// A chat with the tiny model, through a template of its own.
struct Setup {
  test::TempFolder folder;
  std::string model;

  Setup() {
    const auto path = test::data("golden/quant/gguf/F32.gguf");
    if (path) model = path->string();
    std::ofstream(folder.path("t")) << "{% for m in messages %}[{{ m.role }}]{{ m.content }}\n{% endfor %}[assistant]";
  }
  [[nodiscard]] std::vector<std::string> arguments(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all{"chat", "--model", model, "--template", folder.path("t"), "--temp", "0"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) ++n;
  return n;
}

}  // namespace

TEST_CASE("chat answers each line, tells the speed, and leaves at the end of the input") {
  const Setup setup;
  if (setup.model.empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const auto result = test::run(setup.arguments({"-n", "8"}), "hello\nand now?\n");
  CHECK(result.status == 0);
  CHECK(count(result.err, " tokens/s") == 2);
  CHECK(result.out.size() > 2);
}

TEST_CASE("chat's commands are told by /help, and an unknown one is no message") {
  const Setup setup;
  if (setup.model.empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const auto result =
      test::run(setup.arguments({"-n", "8"}), "/help\n/nope\n/save\n/load\n/load /no/such/file\n/quit\nnever read\n");
  CHECK(result.status == 0);
  CHECK(result.out == "");
  for (const char* command : {"/save F", "/load F", "/clear", "/system", "/quit"})
    CHECK(result.err.find(command) != std::string::npos);
  CHECK(result.err.find("there is no /nope") != std::string::npos);
  CHECK(result.err.find("/save needs the name of a file") != std::string::npos);
  CHECK(result.err.find("error: /no/such/file: No such file or directory") != std::string::npos);
  CHECK(count(result.err, "tokens/s") == 0);
}

TEST_CASE("a saved conversation goes on in another process as it does in its own") {
  const Setup setup;
  if (setup.model.empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const std::string file = setup.folder.path("session");
  const auto whole = test::run(setup.arguments({"-n", "12", "--ctx", "400"}), "hello\n/save " + file + "\nand then?\n/quit\n");
  CHECK(whole.err.find("saved 2 messages") != std::string::npos);
  const auto first = test::run(setup.arguments({"-n", "12", "--ctx", "400"}), "hello\n");
  const auto rest = test::run(setup.arguments({"-n", "12", "--ctx", "400"}), "/load " + file + "\nand then?\n");
  CHECK(rest.err.find("loaded 2 messages") != std::string::npos);
  CHECK(first.out + rest.out == whole.out);
}

TEST_CASE("a loaded conversation draws what it would have drawn, and a question that is asked again draws anew") {
  const Setup setup;
  if (setup.model.empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const std::string file = setup.folder.path("session");
  const auto answers = [&](const std::string& input) {
    return test::run({"chat", "--model", setup.model, "--template", setup.folder.path("t"), "-n", "12", "--ctx", "400", "--temp",
                      "1.5", "--top-k", "0", "--top-p", "1", "--min-p", "0", "--seed", "5"},
                     input)
        .out;
  };
  const std::string whole = answers("hello\n/save " + file + "\nand then?\nand then?\n"), first = answers("hello\n");
  CHECK(first + answers("/load " + file + "\nand then?\nand then?\n") == whole);
  CHECK(whole.starts_with(first));
  CHECK(answers("hello\n/clear\nhello\n") == first + first);  // the same conversation, and the same seed
}

TEST_CASE("/clear forgets the conversation and keeps the system message, and /system changes it") {
  const Setup setup;
  if (setup.model.empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const auto answers = [&](const std::string& input, const std::vector<std::string>& more = {}) {
    std::vector<std::string> flags{"-n", "12", "--seed", "1", "--ctx", "400"};
    flags.insert(flags.end(), more.begin(), more.end());
    return test::run(setup.arguments(flags), input).out;
  };
  const std::string plain = answers("hello\n"), with_system = answers("hello\n", {"--system", "be brief"});
  CHECK(plain != with_system);
  CHECK(answers("/system be brief\nhello\n") == with_system);
  CHECK(answers("/system be brief\n/system\nhello\n") == plain);
  CHECK(answers("hello\n/clear\nhello\n", {"--system", "be brief"}) == with_system + with_system);
}

TEST_CASE("a line that ends in a backslash goes on in the next, and // begins a message with /") {
  const Setup setup;
  if (setup.model.empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const std::string file = setup.folder.path("session");
  const auto result = test::run(setup.arguments({"-n", "2", "--ctx", "400"}), "one\\\ntwo\n//help\n/save " + file + "\n");
  CHECK(result.err.find("saved 4 messages") != std::string::npos);
  const std::string saved = test::read_text(file);
  CHECK(saved.find("one\ntwo") != std::string::npos);
  CHECK(saved.find("/help") != std::string::npos);
}

TEST_CASE("a backslash at the end of the input ends the message, which is answered") {
  const Setup setup;
  if (setup.model.empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const auto plain = test::run(setup.arguments({"-n", "8", "--ctx", "400"}), "one\\\ntwo\n");
  for (const char* input : {"one\\\ntwo\\", "one\\\ntwo\\\n"}) {
    const auto result = test::run(setup.arguments({"-n", "8", "--ctx", "400"}), input);
    CHECK(result.status == 0);
    CHECK(count(result.err, " tokens/s") == 1);
    CHECK(result.out == plain.out);
  }
  CHECK(test::run(setup.arguments(), "/help\\").err.find("/save F") != std::string::npos);
}

TEST_CASE("chat without a standard input leaves, as at the end of one") {
  const Setup setup;
  if (setup.model.empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const auto result = test::run(setup.arguments(), "", {.attached = test::Attached::no_input});
  CHECK(result.status == 0);
  CHECK(result.out == "");
}

TEST_CASE("Ctrl-C while chat loads its model ends it with status 130") {
  const Setup setup;
  if (setup.model.empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const auto result = test::run(setup.arguments(), "hello\n", {.interrupted = true});
  CHECK(result.status == 130);
  CHECK(result.out == "");
  CHECK(result.err.find("stopped while loading") != std::string::npos);
}

TEST_CASE("the bar does not wrap on a narrow terminal") {
  const Setup setup;
  if (setup.model.empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  for (const std::size_t columns : {10u, 20u, 23u, 30u, 50u, 200u}) {
    CAPTURE(columns);
    test::Child child(setup.arguments(), {.attached = test::Attached::terminal, .columns = static_cast<unsigned short>(columns)});
    REQUIRE(child.wait_for("/help"));
    const std::string out = child.out();
    std::size_t lines = 0, bars = 0, longest = 0;
    for (std::size_t at = 0; (at = out.find("\rloading", at)) != std::string::npos; ++lines) {
      const std::size_t end = out.find('\r', ++at);
      bars += out.substr(at, end - at).find('[') != std::string::npos;
      longest = std::max(longest, end - at);
    }
    CHECK(lines > 0);
    CHECK(longest < columns);
    CHECK(bars == (columns > 21 ? lines : 0));
  }
}

TEST_CASE("a full context is told with its finish reason, and the history is kept") {
  const Setup setup;
  if (setup.model.empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const std::string file = setup.folder.path("session");
  const auto result = test::run(setup.arguments({"--ctx", "60", "--stop", "\x01"}),
                                "hello\nthis is too much by now, is it not\n/save " + file + "\n");
  CHECK(result.status == 0);
  CHECK(result.err.find("finish reason length: the context is full") != std::string::npos);
  CHECK(result.err.find("the context of 60 tokens is full; the history is kept") != std::string::npos);
  CHECK(result.err.find("error: the context holds 60 tokens") != std::string::npos);
  CHECK(result.err.find("saved 2 messages") != std::string::npos);
}

TEST_CASE("Ctrl-C stops the answer and not the program; at the prompt it leaves when it comes twice") {
  const Setup setup;
  if (setup.model.empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  test::Child child(setup.arguments({"--ctx", "400000", "--stop", "\x01"}));
  REQUIRE(child.wait_for("/help", true));
  child.write("hello\n");
  while (child.out().size() < 20) REQUIRE(child.wait_for("", false, child.out().size() + 1));
  child.interrupt();
  REQUIRE(child.wait_for("; stopped]", true));
  // It still answers, and the stopped answer is part of the history.
  const std::string file = setup.folder.path("session");
  child.write("/save " + file + "\n");
  REQUIRE(child.wait_for("saved 2 messages", true));
  child.interrupt();
  REQUIRE(child.wait_for("Ctrl-C once more leaves", true));
  child.write("/save " + file + "\n");  // a line in between: the next Ctrl-C is a first one again
  REQUIRE(child.wait_for("saved 2 messages", true, child.err().size()));
  const std::size_t before = child.err().size();
  child.interrupt();
  REQUIRE(child.wait_for("Ctrl-C once more leaves", true, before));
  child.interrupt();
  CHECK(child.wait_for_end() == 0);
}

TEST_CASE("on a terminal chat shows a bar while loading and a prompt, and the terminal's Ctrl-C and Ctrl-D work") {
  const Setup setup;
  if (setup.model.empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  test::Child child(setup.arguments({"--ctx", "400000", "--stop", "\x01"}), {.attached = test::Attached::terminal});
  REQUIRE(child.wait_for("> "));
  CHECK(child.out().find("loading [") < child.out().find("/help"));
  child.write("helx\x7flo\n");  // the terminal's own editing takes the x back
  const std::size_t asked = child.out().size();
  while (child.out().size() < asked + 20) REQUIRE(child.wait_for("", false, child.out().size() + 1));
  child.write("\x03");
  REQUIRE(child.wait_for("; stopped]"));
  REQUIRE(child.wait_for("> ", false, child.out().find("; stopped]")));
  child.write("half a line\x03");
  REQUIRE(child.wait_for("Ctrl-C once more leaves"));
  child.write("\x04");
  CHECK(child.wait_for_end() == 0);
}
