#include "program/child.hpp"
#include "support/data.hpp"
#include "support/temp_folder.hpp"

#include <algorithm>

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
  for (const char* command : {"inspect", "tokenize", "detokenize", "render", "logits", "run", "chat", "perplexity", "bench"}) {
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
  check_failure(test::run({}), 2, "subcommand is required");
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

TEST_CASE("what cannot be done leaves with 1 and one line that names the place") {
  const test::TempFolder folder;
  const std::string missing = folder.path("missing.gguf");
  check_failure(test::run({"inspect", missing}), 1, missing + ": No such file or directory");
  check_failure(test::run({"run", "--model", missing, "hi"}), 1, missing);
  check_failure(test::run({"tokenize", "--model", missing, "hi"}), 1, missing);
  check_failure(test::run({"run", "--model", missing, "--file", folder.path("text")}), 1, folder.path("text"));
  check_failure(test::run({"inspect", test::program()}), 1, "not a GGUF file");
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
  check_failure(test::run({"run", "--model", model->string(), "--chain", "top_q=1", "hi"}), 1, "top_q");
  check_failure(test::run({"run", "--model", model->string(), "--ctx", "3", "a longer prompt"}), 1, "the context holds 3 tokens");
  check_failure(test::run({"perplexity", "--model", model->string(), "too short"}), 1, "a window takes 512");
}

TEST_CASE("a full disk under standard output is an error") {
  const auto model = test::data("golden/quant/gguf/F32.gguf");
  if (!model || ::access("/dev/full", W_OK) != 0) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const std::string command = test::program() + " inspect " + model->string() + " > /dev/full 2> /dev/null";
  CHECK(WEXITSTATUS(std::system(command.c_str())) == 1);
}
