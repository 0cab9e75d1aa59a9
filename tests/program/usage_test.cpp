#include "program/child.hpp"
#include "support/data.hpp"
#include "support/temp_folder.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>

using namespace nihao;

namespace {

// One line, and nothing on standard output.
void check_failure(const test::Finished& result, int status, const std::string& says) {
  CAPTURE(result.err);
  CHECK(result.status == status);
  CHECK(result.out == "");
  CHECK(result.err.starts_with("nihao: "));
  CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
  CHECK(result.err.find(says) != std::string::npos);
}

}  // namespace

TEST_CASE("every command has --help, which says what it is for and leaves with 0") {
  const auto all = test::run({"--help"});
  CHECK(all.status == 0);
  for (const char* command : {"inspect", "tokenize", "detokenize", "render", "logits", "run", "chat", "perplexity", "bench",
                              "sample", "quantize", "imatrix"}) {
    CAPTURE(command);
    CHECK(all.out.find(command) != std::string::npos);
    const auto help = test::run({command, "--help"});
    CHECK(help.status == 0);
    CHECK(help.err == "");
    CHECK(help.out.find("Usage: nihao ") != std::string::npos);
    CHECK(help.out.find(command) != std::string::npos);
  }
  CHECK(test::run({"--version"}).out.starts_with("nihao "));
}

TEST_CASE("bad usage leaves with 2 and one line that names what is wrong") {
  check_failure(test::run({}), 2, "a command is required");
  check_failure(test::run({"--bogus"}), 2, "--bogus");
  check_failure(test::run({"--bogus", "run"}), 2, "--bogus");
  check_failure(test::run({"frobnicate"}), 2, "there is no command frobnicate");
  check_failure(test::run({"run"}), 2, "--model");
  check_failure(test::run({"run", "--model", "m"}), 2, "TEXT or --file is required");
  check_failure(test::run({"run", "--model", "m", "--no-such-flag", "hi"}), 2, "--no-such-flag");
  check_failure(test::run({"run", "--model", "m", "--threads", "many", "hi"}), 2, "many");
  check_failure(test::run({"run", "--model", "m", "--threads", "0", "hi"}), 2, "--threads");
  check_failure(test::run({"run", "--model", "m", "--chunk", "0", "hi"}), 2, "--chunk");
  check_failure(test::run({"run", "--model", "m", "--kv", "f17", "hi"}), 2, "f17");
  check_failure(test::run({"run", "--model", "m", "--isa", "mmx", "hi"}), 2, "mmx");
  check_failure(test::run({"run", "--model", "m", "--device", "abacus", "hi"}), 2, "abacus");
  check_failure(test::run({"run", "--model", "m", "--temp", "-1", "hi"}), 2, "--temp");
  check_failure(test::run({"run", "--model", "m", "one", "two"}), 2, "two");
  check_failure(test::run({"run", "--model", "m", "hi", "--file", "f"}), 2, "--file");
  check_failure(test::run({"logits", "--model", "m"}), 2, "--ids, TEXT or --file is required");
  check_failure(test::run({"logits", "--model", "m", "--ids", "1,x"}), 2, "--ids");
  check_failure(test::run({"render", "--model", "m"}), 2, "--messages or --context is required");
  check_failure(test::run({"render", "--messages", "m"}), 2, "--model or --template is required");
  check_failure(test::run({"detokenize", "--model", "m", "x"}), 2, "x");
}

TEST_CASE("a number is all of a number, and in range, or the usage is bad") {
  const std::vector<std::string> run{"run", "--model", "m", "hi"}, bench{"bench", "--model", "m"};
  const auto refused = [](std::vector<std::string> command, const char* flag, const char* value) {
    CAPTURE(flag);
    CAPTURE(value);
    command.insert(command.end(), {flag, value});
    check_failure(test::run(command), 2, std::string(flag) + ": '" + value + "' is no ");
  };
  for (const char* flag : {"--threads", "--chunk", "--ctx", "-n", "--top-k", "--seed"})
    for (const char* value : {"", " ", "-1", "1x", "0x10", "1.5", "nan", "18446744073709551616"}) refused(run, flag, value);
  for (const char* flag : {"--temp", "--top-p", "--min-p", "--repeat-penalty"})
    for (const char* value : {"", "-1", "nan", "inf", "1x", "1e999"}) refused(run, flag, value);
  for (const char* value : {"", "-1", "x"})
    for (const char* flag : {"-p", "-n", "--batch", "-r"}) refused(bench, flag, value);
  for (const char* value : {"-1", "x", "99999999999"}) {
    check_failure(test::run({"bench", "--model", "m", "-d", value}), 2, "--depth");
    check_failure(test::run({"bench", "--model", "m", "-t", value}), 2, "--threads");
  }
  check_failure(test::run({"bench", "--model", "m", "-t", "0"}), 2, "'0' is no integer from 1 to 1024");
  check_failure(test::run({"bench", "--model", "m", "-t", "1,0"}), 2, "'0' is no integer from 1 to 1024");
  check_failure(test::run({"bench", "--model", "m", "-b", "0"}), 2, "--batch");
  check_failure(test::run({"perplexity", "--model", "m", "--ctx", "3", "hi"}), 2, "--ctx: '3' is no integer from 4");
  check_failure(test::run({"logits", "--model", "m", "--ids", ""}), 2, "--ids");
  check_failure(test::run({"logits", "--model", "m", "--ids", ","}), 2, "--ids");
  for (const char* list : {"1,-5", "1,,2", ",1", "1,"}) {
    check_failure(test::run({"logits", "--model", "m", "--ids", list}), 2, "--ids: '");
    check_failure(test::run({"bench", "--model", "m", "-p", list}), 2, "-p: '");
  }
  check_failure(test::run({"logits", "--model", "m", "--ids", "2147483648"}), 2, "--ids");
  check_failure(test::run({"detokenize", "--model", "m", ""}), 2, "ID: '' is no integer");
  check_failure(test::run({"detokenize", "--model", "m", "1", ""}), 2, "ID: '' is no integer");

  const auto model = test::data("golden/quant/gguf/F32.gguf");
  if (!model) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  // Decimal, whatever it begins with.
  CHECK(test::run({"detokenize", "--model", model->string(), "070"}).out ==
        test::run({"detokenize", "--model", model->string(), "70"}).out);
}

TEST_CASE("NIHAO_ISA is what --isa is, for those commands that have it") {
  const auto model = test::data("golden/quant/gguf/F32.gguf");
  if (!model) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  ::setenv("NIHAO_ISA", "abacus", 1);
  check_failure(test::run({"run", "--model", model->string(), "hi"}), 2, "NIHAO_ISA is abacus");
  CHECK(test::run({"run", "--model", model->string(), "--isa", "portable", "-n", "1", "hi"}).status == 0);
  CHECK(test::run({"tokenize", "--model", model->string(), "hi"}).status == 0);
  ::unsetenv("NIHAO_ISA");
}

TEST_CASE("an output does not overwrite the model or another output") {
  const test::TempFolder folder;
  const auto model = test::data("golden/quant/gguf/F32.gguf");
  if (!model) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  std::filesystem::copy_file(*model, folder.path("m.gguf"));
  std::filesystem::create_symlink(folder.path("m.gguf"), folder.path("link"));
  const auto logits = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"logits", "--model", folder.path("m.gguf"), "--ids", "1"});
    return test::run(more);
  };
  check_failure(logits({"--out", folder.path("m.gguf")}), 2, "--out would overwrite the model");
  check_failure(logits({"--states", folder.path("link")}), 2, "--states would overwrite the model");
  check_failure(logits({"--out", folder.path("new"), "--states", folder.path("./new")}), 2, "--states would overwrite --out");
  std::filesystem::create_symlink("new", folder.path("dangling"));
  check_failure(logits({"--out", folder.path("new"), "--states", folder.path("dangling")}), 2, "--states would overwrite --out");
  // Every file of a model is one that must stay: the shards of a GGUF file, and what is in a folder.
  std::ofstream(folder.path("s-00002-of-00002.gguf")) << "weights";
  std::filesystem::create_directory(folder.path("hf"));
  std::ofstream(folder.path("hf/model.safetensors")) << "weights";
  const auto run = [&](const std::string& of, const std::string& out) {
    return test::run({"logits", "--model", folder.path(of), "--ids", "1", "--out", folder.path(out)});
  };
  check_failure(run("s-00001-of-00002.gguf", "s-00002-of-00002.gguf"), 2, "--out would overwrite the model");
  check_failure(run("hf", "hf/model.safetensors"), 2, "--out would overwrite the model");
  CHECK(logits({"--out", folder.path("new"), "--states", folder.path("other")}).status == 0);
  CHECK(std::filesystem::file_size(folder.path("m.gguf")) == std::filesystem::file_size(*model));
}

TEST_CASE("logits that are not numbers are an error, and not a list") {
  const test::TempFolder folder;
  const auto model = test::data("golden/quant/gguf/F32.gguf");
  if (!model) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  std::string bytes = test::read_text(*model);
  const float nan = NAN;
  std::memcpy(bytes.data() + bytes.size() - 64, &nan, 4);  // in the last tensor
  std::ofstream(folder.path("nan.gguf"), std::ios::binary) << bytes;
  check_failure(test::run({"logits", "--model", folder.path("nan.gguf"), "hello"}), 1, "is not a number");
}

TEST_CASE("flags that would have no effect are bad usage") {
  const std::vector<std::string> run{"run", "--model", "m", "hi"};
  const auto refused = [](std::vector<std::string> command, const std::vector<std::string>& more, const std::string& says) {
    command.insert(command.end(), more.begin(), more.end());
    check_failure(test::run(command), 2, says);
  };
  refused(run, {"--system", "s"}, "--system requires --chat");
  refused(run, {"--template", "t"}, "--template requires --chat");
  for (const char* flag : {"--temp", "--top-k", "--top-p", "--min-p", "--repeat-penalty"}) {
    refused(run, {"--chain", "greedy", flag, "1"}, flag);
    refused({"chat", "--model", "m"}, {flag, "1", "--chain", "greedy"}, "--chain");
  }
  refused(run, {"--chain", "foo"}, "--chain: sampler chain, foo: is not a stage");
  refused(run, {"--chain", "top_k"}, "--chain: sampler chain, top_k: needs a value");
  refused(run, {"--chain", "temperature=nan"}, "--chain: temperature: a temperature is 0 or more");
  refused(run, {"--chain", ""}, "--chain: it is empty");
  refused(run, {"--stop", ""}, "--stop: it is empty");
  refused({"inspect", "m"}, {"--arrays"}, "--arrays requires --json");
  refused({"render", "--model", "m", "--context", "c"}, {"--tools", "t"}, "--tools");
  refused({"render", "--model", "m", "--context", "c"}, {"--no-generation-prompt"}, "--no-generation-prompt");
  refused({"bench", "--model", "m"}, {"-p", "0", "-n", "0"}, "there is nothing to measure");
  refused({"run", "--model", "m", "--json", "hi"}, {"--why"}, "--why");  // --json tells it anyway
  refused({"bench", "--model", "m"}, {"--ctx", "100"}, "--ctx");         // a test has as many positions as it needs
}

TEST_CASE("an empty name of a file is bad usage that says whose") {
  check_failure(test::run({"inspect", ""}), 2, "MODEL: it is empty");
  check_failure(test::run({"run", "--model", "", "hi"}), 2, "--model: it is empty");
  check_failure(test::run({"run", "--model", "m", "--file", ""}), 2, "--file: it is empty");
  check_failure(test::run({"run", "--model", "m", "--chat", "--template", "", "hi"}), 2, "--template: it is empty");
  check_failure(test::run({"chat", "--model", "m", "--template", ""}), 2, "--template: it is empty");
  for (const char* flag : {"--out", "--states"})
    check_failure(test::run({"logits", "--model", "m", "hi", flag, ""}), 2, std::string(flag) + ": it is empty");
  for (const char* flag : {"--model", "--template", "--messages", "--tools", "--context", "--now"})
    check_failure(test::run({"render", flag, ""}), 2, std::string(flag) + ": it is empty");
}

TEST_CASE("--ctx says what it is by itself in each command") {
  CHECK(test::run({"run", "--help"}).out.find("default: the model's, at most 4096") != std::string::npos);
  CHECK(test::run({"perplexity", "--help"}).out.find("default: 512;") != std::string::npos);
  CHECK(test::run({"logits", "--help"}).out.find("default: as many as") != std::string::npos);
  CHECK(test::run({"bench", "--help"}).out.find("--ctx") == std::string::npos);
}

TEST_CASE("what cannot be done leaves with 1 and one line that names the place") {
  const test::TempFolder folder;
  const std::string missing = folder.path("missing.gguf");
  check_failure(test::run({"inspect", missing}), 1, missing + ": No such file or directory");
  check_failure(test::run({"run", "--model", missing, "hi"}), 1, missing);
  check_failure(test::run({"tokenize", "--model", missing, "hi"}), 1, missing);
  check_failure(test::run({"run", "--model", missing, "--file", folder.path("text")}), 1, folder.path("text"));
  check_failure(test::run({"inspect", test::program()}), 1, "not a GGUF file");
  REQUIRE(::mkfifo(folder.path("fifo").c_str(), 0600) == 0);
  check_failure(test::run({"inspect", folder.path("fifo")}), 1, folder.path("fifo") + ": not a regular file");
  check_failure(test::run({"run", "--model", folder.path("fifo"), "hi"}), 1, folder.path("fifo") + ": not a regular file");
  check_failure(test::run({"tokenize", "--model", "m", "-"}, "", {.attached = test::Attached::no_input}), 1,
                "standard input: Bad file descriptor");
  check_failure(test::run({"run", "--model", "/dev/null", "hi"}), 1, "/dev/null");
  check_failure(test::run({"chat", "--model", missing}), 1, missing);
  check_failure(test::run({"bench", "--model", missing}), 1, missing);
  check_failure(test::run({"perplexity", "--model", missing, "text"}), 1, missing);

  const auto model = test::data("golden/quant/gguf/F32.gguf");
  if (!model) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  check_failure(test::run({"detokenize", "--model", model->string(), "5", "100000"}), 1,
                "token id 100000 is outside the vocabulary of 272");
  check_failure(test::run({"logits", "--model", model->string(), "--ids", "5,100000"}), 1,
                "token id 100000 is outside the vocabulary of 272");
  check_failure(test::run({"logits", "--model", model->string(), "--ids", "5", "--out", folder.path("no/such/folder")}), 1,
                "no/such/folder");
  check_failure(test::run({"chat", "--model", model->string()}), 1, "no chat template");
  check_failure(test::run({"run", "--model", model->string(), "--chat", "hi"}), 1, "no chat template");
  check_failure(test::run({"render", "--model", model->string(), "--messages", "-"}), 1, "no chat template");
  check_failure(test::run({"run", "--model", model->string(), "--ctx", "3", "a longer prompt"}), 1, "the context holds 3 tokens");
  check_failure(test::run({"perplexity", "--model", model->string(), "too short"}), 1, "a window takes 512");
}

TEST_CASE("a full disk under standard output is an error") {
  const auto model = test::data("golden/quant/gguf/F32.gguf");
  if (!model || ::access("/dev/full", W_OK) != 0) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const std::string command = test::program() + " inspect " + model->string() + " > /dev/full 2> /dev/null";
  CHECK(WEXITSTATUS(std::system(command.c_str())) == 1);
  const std::string closed = test::program() + " inspect " + model->string() + " >&- 2> /dev/null";
  CHECK(WEXITSTATUS(std::system(closed.c_str())) == 1);
}
