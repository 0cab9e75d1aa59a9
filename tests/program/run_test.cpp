#include "nihao/files/json.hpp"
#include "program/documents.hpp"
#include "support/data.hpp"
#include "support/temp_folder.hpp"

#include <chrono>
#include <fstream>
#include <thread>

using namespace nihao;
using test::json_of, test::model;

namespace {

std::vector<std::string> with(std::vector<std::string> base, const std::vector<std::string>& more) {
  base.insert(base.end(), more.begin(), more.end());
  return base;
}

}  // namespace

TEST_CASE("what run streams is the text that --json tells, and the speed goes to standard error") {
  if (model().empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const std::vector<std::string> arguments{"run", "--model", model(), "-n", "40", "--temp", "0", "--ignore-eos", "hello"};
  const auto streamed = test::run(arguments);
  CHECK(streamed.status == 0);
  std::string text = json_of(arguments)["text"].get<std::string>();
  if (!text.ends_with('\n')) text += '\n';
  CHECK(streamed.out == text);
  CHECK(streamed.err.find("tokens/s") != std::string::npos);
  CHECK(streamed.err.find("answer 40 tokens") != std::string::npos);
}

TEST_CASE("run --why tells what bounds each phase, on standard error, after the answer") {
  if (model().empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const std::vector<std::string> arguments{"run", "--model", model(), "-n", "9", "--temp", "0", "--ignore-eos", "hello"};
  const auto plain = test::run(arguments), why = test::run(with(arguments, {"--why"}));
  CHECK(why.status == 0);
  CHECK(why.out == plain.out);
  CHECK(plain.err.find("prefill") == std::string::npos);
  CHECK(why.err.find("-bound, ") != std::string::npos);
  CHECK(why.err.find("prefill: ") < why.err.find("decode: "));
  CHECK(why.err.find("decode: ") != std::string::npos);
  // A phase that did not come to pass has no bound.
  const auto none = test::run({"run", "--model", model(), "-n", "0", "--why", "hello"});
  CHECK(none.err.find("prefill: ") != std::string::npos);
  CHECK(none.err.find("decode: ") == std::string::npos);
}

TEST_CASE("run gives the same ids for any threads, chunk and instruction set") {
  if (model().empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const std::vector<std::string> arguments{
      "run", "--model", model(), "-n", "16", "--seed", "7", "--ignore-eos", "the quick brown fox"};
  const Json ids = json_of(arguments)["ids"];
  CHECK(ids.size() == 16);
  CHECK(json_of(with(arguments, {"--threads", "1", "--chunk", "1"}))["ids"] == ids);
  CHECK(json_of(with(arguments, {"--threads", "3", "--chunk", "7"}))["ids"] == ids);
  CHECK(json_of(with(arguments, {"--isa", "portable"}))["ids"] == ids);
  ::setenv("NIHAO_ISA", "portable", 1);
  CHECK(json_of(arguments)["ids"] == ids);
  ::unsetenv("NIHAO_ISA");
}

TEST_CASE("a context that fills up ends the answer with length") {
  if (model().empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const Json json = json_of({"run", "--model", model(), "--ctx", "20", "-n", "1000", "--ignore-eos", "hello"});
  CHECK(json["finish_reason"] == "length");
  CHECK(json["prompt_ids"].size() + json["ids"].size() == 21);
}

TEST_CASE("--stop ends the text, and -n 0 makes none") {
  if (model().empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const std::vector<std::string> arguments{"run", "--model", model(), "-n", "30", "--temp", "0", "--ignore-eos", "hello"};
  const std::string text = json_of(arguments)["text"].get<std::string>();
  // A character of the middle that is plain ASCII.
  std::size_t at = text.size() / 2;
  while (at < text.size() && (text[at] < 0x21 || text[at] > 0x7e || text[at] == '-')) ++at;
  if (at < text.size()) {
    const std::string stop(1, text[at]);
    const Json json = json_of(with(arguments, {"--stop", "never", "--stop", stop}));
    CHECK(json["finish_reason"] == "stop");
    CHECK(json["text"] == text.substr(0, text.find(stop)));
  }
  const Json none = json_of({"run", "--model", model(), "-n", "0", "hello"});
  CHECK(none["ids"].empty());
  CHECK(none["finish_reason"] == "length");
}

TEST_CASE("run --chat goes through the template, with a system message") {
  if (model().empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const test::TempFolder folder;
  std::ofstream(folder.path("t")) << "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}";
  const Json json =
      json_of({"run", "--model", model(), "--chat", "--template", folder.path("t"), "--system", "be brief", "-n", "3", "hi"});
  CHECK(json["prompt_ids"] == json_of({"tokenize", "--model", model(), "system:be brief;user:hi;"})["ids"]);
}

TEST_CASE("where no token came, no time to the first is told") {
  if (model().empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const auto none = test::run({"run", "--model", model(), "-n", "0", "hello"});
  CHECK(none.err.find("; no answer") != std::string::npos);
  CHECK(none.err.find("first token") == std::string::npos);
  CHECK(json_of({"run", "--model", model(), "-n", "0", "hello"})["timings"]["first_token_ms"].is_null());
  // A prompt that would take many minutes, stopped.
  const test::TempFolder folder;
  std::ofstream(folder.path("text")) << std::string(490000, 'x');
  test::Child child({"run", "--model", model(), "--ctx", "500000", "--chunk", "64", "--file", folder.path("text")});
  std::this_thread::sleep_for(std::chrono::seconds(1));
  child.interrupt();
  CHECK(child.finish() == 130);
  CHECK(child.out() == "");
  CHECK(child.err().find("stopped") != std::string::npos);  // while loading, on a slow machine
  CHECK(child.err().find("first token") == std::string::npos);
}

TEST_CASE("Ctrl-C while the model is loaded ends run with status 130") {
  if (model().empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const auto result = test::run({"run", "--model", model(), "hello"}, "", {.interrupted = true});
  CHECK(result.status == 130);
  CHECK(result.out == "");
  CHECK(result.err == "nihao: " + model() + ": stopped while loading\n");
}

TEST_CASE("run --json takes no more memory than it says") {
  if (model().empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  test::Child child({"run", "--model", model(), "-n", "4", "--json", "hello"});
  REQUIRE(child.finish() == 0);
  const auto stated = (*parse_json(child.out()))["peak_rss_bytes"].get<std::uint64_t>();
  CHECK(child.peak_rss_bytes() >= stated);
  CHECK(child.peak_rss_bytes() < stated + (std::uint64_t{32} << 20));
}

TEST_CASE("an error of the chat template says that it is one") {
  if (model().empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const test::TempFolder folder;
  std::ofstream(folder.path("t")) << "\n{{ messages.nothing.here }}";
  const auto raised = test::run({"run", "--model", model(), "--chat", "--template", folder.path("t"), "hi"});
  CHECK(raised.status == 1);
  CHECK(raised.err.starts_with("nihao: chat template: line 2: "));
  std::ofstream(folder.path("t")) << "\n\n{% if %}";
  const auto parsed = test::run({"run", "--model", model(), "--chat", "--template", folder.path("t"), "hi"});
  CHECK(parsed.err.starts_with("nihao: " + folder.path("t") + ": chat template: line 3: "));
}

TEST_CASE("Ctrl-C ends an answer cleanly: what there is of it, the speed, and status 130") {
  if (model().empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  test::Child child({"run", "--model", model(), "--ctx", "500000", "-n", "499000", "--ignore-eos", "--temp", "0", "hello"});
  while (child.out().size() < 20) REQUIRE(child.wait_for("", false, child.out().size() + 1));
  child.interrupt();
  CHECK(child.finish() == 130);
  CHECK(child.out().ends_with('\n'));
  CHECK(child.err().find("tokens/s") != std::string::npos);
}

TEST_CASE("run keeps the thinking to its budget, and shows of it what --thinking says") {
  if (model().empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const test::TempFolder folder;
  std::ofstream(folder.path("t")) << "{% for m in messages %}[{{ m.role }}]{{ m.content }}\n{% endfor %}[assistant]<think>\n";
  const std::vector<std::string> arguments{"run", "--chat", "--model",      model(),  "--template", folder.path("t"),
                                           "-n",  "20",     "--ignore-eos", "--temp", "0",          "--think-budget",
                                           "5",   "hello"};
  const Json json = json_of(arguments);
  CHECK(json["thinking_tokens"] == 5);
  const std::string thinking = json["thinking"].get<std::string>();
  std::string answer = json["text"].get<std::string>();
  CHECK_FALSE(thinking.empty());
  CHECK_FALSE(answer.empty());
  CHECK_FALSE(json_of(with(arguments, {"--thinking", "hidden"})).contains("thinking_tokens"));
  const Json counted = json_of(with(arguments, {"--thinking", "count"}));
  CHECK(counted["thinking_tokens"] == 5);
  CHECK_FALSE(counted.contains("thinking"));
  if (!answer.ends_with('\n')) answer += '\n';
  const auto hidden = test::run(with(arguments, {"--thinking", "hidden"})),
             count = test::run(with(arguments, {"--thinking", "count"})),
             stream = test::run(with(arguments, {"--thinking", "stream"}));
  for (const auto& result : {hidden, count, stream}) {
    CHECK(result.status == 0);
    CHECK(result.out == answer);
  }
  CHECK(stream.err.find(thinking) != std::string::npos);
  CHECK(hidden.err.find("thinking") == std::string::npos);
  CHECK(count.err.find("thinking 5 tokens") != std::string::npos);
  // Without a marker in template and vocabulary there is nothing to end.
  const auto unknown = test::run({"run", "--model", model(), "--think-budget", "5", "hello"});
  CHECK(unknown.status == 1);
  CHECK(unknown.err.find("how it marks its thinking") != std::string::npos);
  CHECK(test::run({"run", "--model", model(), "--thinking", "loud", "hello"}).status == 2);
}
