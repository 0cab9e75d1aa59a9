// nihao sample, and run's logprobs.
#include "nihao/files/safetensors_writer.hpp"
#include "program/documents.hpp"
#include "support/temp_folder.hpp"

#include <cmath>

using namespace nihao;
using test::json_of, test::model;

namespace {

void write_rows(const std::string& path, const std::vector<float>& rows, std::vector<std::uint64_t> shape) {
  const SafetensorsTensor tensor{"logits", SafetensorsType::F32, std::move(shape), std::as_bytes(std::span(rows))};
  REQUIRE(write_safetensors(path, std::span(&tensor, 1)).has_value());
}

}  // namespace

TEST_CASE("sample gives what a chain leaves of the last row of a file, and one token of it") {
  const test::TempFolder folder;
  const std::string path = folder.path("l.safetensors");
  // The second row is p = .1 .2 .3 .4.
  const std::vector<float> rows{9, 0, 0, 0, std::log(.1f), std::log(.2f), std::log(.3f), std::log(.4f)};
  write_rows(path, rows, {2, 4});
  const Json json = json_of({"sample", "--logits", path, "--chain", "top_k=2;top_p=0.99", "--seed", "3"});
  REQUIRE(json["probabilities"].size() == 2);
  CHECK(json["probabilities"][0]["id"] == 3);
  CHECK(json["probabilities"][0]["p"].get<double>() == doctest::Approx(4. / 7));
  CHECK(json["probabilities"][1]["p"].get<double>() == doctest::Approx(3. / 7));
  CHECK((json["id"] == 3 || json["id"] == 2));
  const auto chosen = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{"sample", "--logits", path, "--chain"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return json_of(arguments)["id"].get<int>();
  };
  CHECK(chosen({"penalties=1,presence=9;greedy", "--history", "3,2"}) == 1);
  CHECK(chosen({"penalties=1,presence=9,of=output;greedy", "--history", "3,2", "--prompt", "1"}) == 3);
  CHECK(chosen({"min_tokens=1;greedy", "--ends", "3"}) == 2);
  write_rows(path, {1, 5}, {2});
  CHECK(chosen({"greedy"}) == 1);
  const auto text = test::run({"sample", "--logits", path, "--chain", "greedy"});
  CHECK(text.out == "      1  1.000000  chosen\n");
}

TEST_CASE("sample refuses a file without logits, and a chain that is none") {
  const test::TempFolder folder;
  const std::string path = folder.path("l.safetensors");
  write_rows(path, {1, 2}, {1, 1, 2});
  const auto shape = test::run({"sample", "--logits", path, "--chain", "greedy"});
  CHECK(shape.status == 1);
  CHECK(shape.err.find("is not [vocabulary] or [positions, vocabulary]") != std::string::npos);
  const auto chain = test::run({"sample", "--logits", path, "--chain", "top_k=40;topp=1"});
  CHECK(chain.status == 2);
  CHECK(chain.err.find("topp: is not a stage") != std::string::npos);
  write_rows(path, {NAN, 2}, {2});
  const auto broken = test::run({"sample", "--logits", path, "--chain", "greedy"});
  CHECK(broken.status == 1);
  CHECK(broken.err.find("the logit of token 0 is NaN") != std::string::npos);
}

TEST_CASE("run --logprobs gives each token's, raw or of what the chain left; of no likeliest an empty list") {
  if (model().empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const auto run = [](std::vector<std::string> more) {
    std::vector<std::string> arguments{"run", "--model", model(), "-n", "5", "--ignore-eos", "hello"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return json_of(arguments);
  };
  const Json raw = run({"--logprobs", "3", "--temp", "0"});
  CHECK(raw["logprobs_of"] == "raw");
  REQUIRE(raw["logprobs"].size() == 5);
  for (std::size_t i = 0; i < 5; ++i) {
    const Json& one = raw["logprobs"][i];
    CHECK(one["id"] == raw["ids"][i]);
    REQUIRE(one["top"].size() == 3);
    CHECK(one["top"][0] == Json{{"id", one["id"]}, {"logprob", one["logprob"]}});  // greedy
    CHECK(one["logprob"].get<double>() < 0);
  }
  const Json none = run({"--logprobs", "0"});
  CHECK(none["logprobs"][0]["top"] == Json::array());
  const Json chain = run({"--logprobs", "9", "--logprobs-of", "chain", "--chain", "top_k=2"});
  double sum = 0;
  REQUIRE(chain["logprobs"][0]["top"].size() == 2);
  for (const Json& t : chain["logprobs"][0]["top"]) sum += std::exp(t["logprob"].get<double>());
  CHECK(sum == doctest::Approx(1).epsilon(1e-6));
  CHECK(!run({})["logprobs"].is_array());
}
