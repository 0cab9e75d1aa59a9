// nihao quantize, imatrix and inspect's close views, as a person meets them.
#include "nihao/files/json.hpp"
#include "program/documents.hpp"
#include "support/data.hpp"
#include "support/temp_folder.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>

using namespace nihao;
using test::json_of, test::model;

namespace {

// A text of enough tokens for a few windows of 64.
std::string text_file(const test::TempFolder& folder) {
  const std::string path = folder.path("text");
  std::ofstream out(path);
  for (int i = 0; i < 60; ++i) out << "The llama number " << i << " says hello to " << i * i << " others. ";
  return path;
}
double perplexity(const std::string& model_path, const std::string& text) {
  return json_of({"perplexity", "--model", model_path, "--file", text, "--ctx", "64", "--exact"})["perplexity"].get<double>();
}

}  // namespace

TEST_CASE("quantize writes a model that predicts a text nearly as well, with an importance matrix and without") {
  if (model().empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const test::TempFolder folder;
  const std::string text = text_file(folder), out = folder.path("q.gguf"), matrix = folder.path("imatrix.gguf");
  const double before = perplexity(model(), text);
  const Json made = json_of({"imatrix", "--model", model(), "--file", text, "--out", matrix, "--ctx", "64", "--chunks", "4"});
  CHECK(made["chunks"] == 4);
  CHECK(made["chunk_size"] == 64);
  CHECK(made["entries"].get<int>() >= 7);
  for (const bool weighted : {false, true}) {
    std::vector<std::string> arguments{"quantize", model(), out, "--type", "Q4_K_M", "--force"};
    if (weighted) arguments.insert(arguments.end(), {"--imatrix", matrix});
    const Json json = json_of(arguments);
    CHECK(json["type"] == "Q4_K_M");
    CHECK(json["bits_per_weight"].get<double>() < 8);
    const double after = perplexity(out, text);
    CHECK(std::abs(std::log(after / before)) < 0.15);  // observed: 0.07; its weights are noise
    const Json inspected = json_of({"inspect", out});
    CHECK(inspected["metadata"]["general.file_type"] == 15);
    CHECK(inspected["metadata"].contains("quantize.imatrix.file") == weighted);
    std::uint64_t bytes = 0;
    for (const Json& t : inspected["tensors"]) bytes += t["bytes"].get<std::uint64_t>();
    CHECK(json["bytes"] == bytes);
  }
}

TEST_CASE("quantize takes a Hugging Face folder, and says where rows are no whole blocks") {
  const auto folder = test::data("golden/models/llama_gqa");
  if (!folder) NIHAO_SKIP("golden/models/llama_gqa");
  const test::TempFolder temp;
  const auto result = test::run({"quantize", folder->string(), temp.path("q"), "--type", "Q4_K_M"});
  CHECK(result.status == 0);
  CHECK(result.out.find(temp.path("q") + ": ") == 0);
  CHECK(result.err.find("rows that are not whole blocks of Q4_K: they are Q5_0\n") != std::string::npos);
  const Json folder_top = json_of({"logits", "--model", folder->string(), "--ids", "1,2,3", "--exact", "--top", "1"});
  CHECK(json_of({"logits", "--model", temp.path("q"), "--ids", "1,2,3", "--exact", "--top", "1"})["top"][0]["id"] ==
        folder_top["top"][0]["id"]);
}

TEST_CASE("quantize refuses what would lose something, in a line") {
  if (model().empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const test::TempFolder folder;
  const std::string copy = folder.path("m.gguf"), out = folder.path("q.gguf");
  std::filesystem::copy_file(model(), copy);
  const auto says = [&](std::vector<std::string> arguments, int status, const std::string& what) {
    arguments.insert(arguments.begin(), "quantize");
    const auto result = test::run(arguments);
    CAPTURE(result.err);
    CHECK(result.status == status);
    CHECK(result.err.starts_with("nihao: "));
    CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
    CHECK(result.err.find(what) != std::string::npos);
  };
  says({copy, out, "--type", "Q4_K_X"}, 2, "Q4_K_X is none of: F32, F16, BF16, Q8_0, Q6_K, Q5_K_M, Q4_K_M, Q4_0, IQ4_XS, MXFP4");
  says({copy, copy, "--type", "Q8_0"}, 2, "the model");
  says({copy, copy, "--type", "Q8_0", "--force"}, 2, "the model");
  says({copy, out}, 2, "--type");
  says({copy, "", "--type", "Q8_0"}, 2, "empty");
  says({folder.path("none"), out, "--type", "Q8_0"}, 1, folder.path("none"));
  says({model("Q4_K"), out, "--type", "Q8_0"}, 1, "--requantize");
  says({copy, out, "--type", "Q8_0", "--imatrix", copy}, 1, "it is no importance matrix");
  CHECK_FALSE(std::filesystem::exists(out));
  CHECK(test::run({"quantize", copy, out, "--type", "Q8_0"}).status == 0);
  says({copy, out, "--type", "Q8_0"}, 2, "--force");
  CHECK(test::run({"quantize", copy, out, "--type", "Q8_0", "--force"}).status == 0);
  CHECK(test::run({"quantize", model("Q4_K"), folder.path("again"), "--to", "Q8_0", "--requantize"}).status == 0);
}

TEST_CASE("quantize draws a bar on a terminal, and clears it") {
  if (model().empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const test::TempFolder folder;
  const auto result = test::run({"quantize", model(), folder.path("q"), "--type", "Q4_0"}, "",
                                {.attached = test::Attached::terminal, .columns = 80});
  CHECK(result.status == 0);
  CHECK(result.out.find("quantizing [") != std::string::npos);
  CHECK(result.out.rfind("\r\033[K") > result.out.rfind("quantizing ["));
}

TEST_CASE("Ctrl-C ends quantize and leaves nothing behind") {
  if (model().empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const test::TempFolder folder;
  const auto result = test::run({"quantize", model(), folder.path("q"), "--type", "Q4_0"}, "", {.interrupted = true});
  CHECK(result.status == 130);
  CHECK(std::filesystem::is_empty(folder.root()));
}

TEST_CASE("imatrix refuses a text that is too short, and files that are there") {
  if (model().empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const test::TempFolder folder;
  const std::string out = folder.path("imatrix.gguf");
  CHECK(test::run({"imatrix", "--model", model(), "-o", out, "hello"}).status == 1);
  CHECK_FALSE(std::filesystem::exists(out));
  std::ofstream(out) << "mine";
  const auto refused = test::run({"imatrix", "--model", model(), "-o", out, "hello"});
  CHECK(refused.status == 2);
  CHECK(refused.err.find("--force") != std::string::npos);
}

TEST_CASE("a block's fields make its values") {
  if (model().empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const Json json = json_of({"inspect", model("Q4_K"), "--block", "blk.0.attn_q.weight:3:0"});
  CHECK(json["bytes"] == 144);
  CHECK(json["values"].size() == 256);
  const Json& f = json["fields"];
  CHECK(f["scale"].size() == 8);
  CHECK(f["min"].size() == 8);
  REQUIRE(f["q"].size() == 256);
  for (std::size_t i = 0; i < 256; ++i) {
    const double value = f["d"].get<double>() * f["scale"][i / 32].get<double>() * f["q"][i].get<double>() -
                         f["dmin"].get<double>() * f["min"][i / 32].get<double>();
    CHECK(value == doctest::Approx(json["values"][i].get<double>()).epsilon(1e-5));
  }
  const Json six = json_of({"inspect", model("Q6_K"), "--block", "blk.0.attn_q.weight:1:0"});
  for (std::size_t i = 0; i < 256; ++i)
    CHECK(six["fields"]["d"].get<double>() * six["fields"]["scale"][i / 16].get<double>() *
              (six["fields"]["q"][i].get<double>() - 32) ==
          doctest::Approx(six["values"][i].get<double>()).epsilon(1e-5));
  const auto text = test::run({"inspect", model("Q4_K"), "--block", "blk.0.attn_q.weight:3:0"});
  CHECK(text.out.find("256 weights in 144 bytes") != std::string::npos);
  for (const char* format :
       {"F32",    "F16",     "BF16",  "Q8_0",    "Q4_0",   "Q4_1",  "Q5_0",  "Q5_1",  "Q2_K",  "Q3_K",  "Q5_K",  "IQ4_NL",
        "IQ4_XS", "IQ3_XXS", "IQ3_S", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ1_S", "IQ1_M", "TQ1_0", "TQ2_0", "MXFP4", "NVFP4"}) {
    CAPTURE(std::string(format));
    const Json block = json_of({"inspect", model(format), "--block", "blk.0.attn_q.weight:0:0"});
    CHECK(block["format"] == format);
    CHECK_FALSE(block["fields"].empty());
  }
  for (const char* wrong : {"blk.0.attn_q.weight", "blk.0.attn_q.weight:1", "blk.0.attn_q.weight:x:0", ":0:0", "a:0:-1"})
    CHECK(test::run({"inspect", model("Q4_K"), "--block", wrong}).status == 2);
  for (const char* wrong : {"none:0:0", "blk.0.attn_q.weight:0:1", "blk.0.attn_q.weight:999999:0"})
    CHECK(test::run({"inspect", model("Q4_K"), "--block", wrong}).status == 1);
}

TEST_CASE("roles are shown with their formats, and what a mix keeps higher") {
  if (model().empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const test::TempFolder folder;
  REQUIRE(test::run({"quantize", model(), folder.path("q"), "--type", "Q4_K_M"}).status == 0);
  const Json written = json_of({"inspect", folder.path("q"), "--roles"});
  CHECK(written["mix"] == "Q4_K_M");
  const Json planned = json_of({"inspect", model(), "--roles", "--type", "Q4_K_M"});
  CHECK(planned["roles"] == written["roles"]);
  const auto format_of = [&](const char* role) -> std::string {
    for (const Json& r : written["roles"])
      if (r["role"] == role) return r["format"];
    return "";
  };
  CHECK(format_of("attn_q") == "Q4_K");
  CHECK(format_of("attn_v") == "Q6_K");
  const auto text = test::run({"inspect", folder.path("q"), "--roles"});
  CHECK(text.out.find("+ attn_v") != std::string::npos);
  CHECK(test::run({"inspect", model(), "--roles", "--type", "Q9"}).status == 2);
  CHECK(test::run({"inspect", model(), "--type", "Q8_0"}).status == 2);
}

// The same file read by another program: the Python package that llama.cpp's project publishes for GGUF.
TEST_CASE("the gguf package of Python reads what quantize writes, and finds the same values") {
  if (model().empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const char* const python = std::getenv("NIHAO_PYTHON");
  const std::string interpreter = python != nullptr ? python : "python3";
  if (std::system((interpreter + " -c 'import gguf, numpy' 2>/dev/null").c_str()) != 0) NIHAO_SKIP("Python's gguf package");
  const test::TempFolder folder;
  const std::string script = (std::filesystem::path(test::source_dir) / "tests" / "quantize" / "read_with_gguf.py").string();
  for (const char* type : {"F16", "BF16", "Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "Q4_0", "IQ4_XS", "MXFP4"}) {
    CAPTURE(std::string(type));
    REQUIRE(test::run({"quantize", model(), folder.path("q"), "--type", type, "--force"}).status == 0);
    CHECK(std::system((interpreter + " " + script + " " + model() + " " + folder.path("q")).c_str()) == 0);
  }
}
