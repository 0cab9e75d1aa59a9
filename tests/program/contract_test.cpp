// The fields that each command promises with --json: tests hold to them, so that scripts may.
#include "nihao/files/json.hpp"
#include "nihao/files/safetensors.hpp"
#include "program/documents.hpp"
#include "support/data.hpp"
#include "support/temp_folder.hpp"

#include <fstream>
#include <set>

using namespace nihao;
using test::json_of, test::model;

namespace {

// The keys of an object, in any order.
std::set<std::string> keys(const Json& json) {
  std::set<std::string> out;
  for (const auto& [key, value] : json.items()) out.insert(key);
  return out;
}
bool has_keys(const Json& json, const std::set<std::string>& wanted) {
  const auto there = keys(json);
  return std::includes(there.begin(), there.end(), wanted.begin(), wanted.end());
}

void write(const std::string& path, std::string_view text) { std::ofstream(path, std::ios::binary) << text; }

}  // namespace

TEST_CASE("inspect tells architecture, parameters, tensors and metadata") {
  if (model().empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const Json json = json_of({"inspect", model("Q4_K")});
  CHECK(has_keys(json, {"architecture", "parameters", "tensors", "metadata", "memory"}));
  CHECK(json["architecture"] == "llama");
  CHECK(json["metadata"]["llama.embedding_length"] == 256);
  CHECK(json["metadata"]["tokenizer.ggml.tokens"]["count"] == 272);
  CHECK(json_of({"inspect", model("Q4_K"), "--arrays"})["metadata"]["tokenizer.ggml.tokens"].size() == 272);
  std::uint64_t parameters = 0, bytes = 0;
  for (const Json& tensor : json["tensors"]) {
    REQUIRE(has_keys(tensor, {"name", "format", "shape", "offset"}));
    std::uint64_t product = 1;
    for (const Json& size : tensor["shape"]) product *= size.get<std::uint64_t>();
    parameters += product;
    bytes += tensor["bytes"].get<std::uint64_t>();
  }
  CHECK(json["parameters"] == parameters);
  CHECK(json["memory"]["weights_bytes"] == bytes);
  // 1 layer, keys and values of 4 heads of 16, f16.
  const auto& metadata = json["metadata"];
  const auto kv_heads = metadata["llama.attention.head_count_kv"].get<std::uint64_t>(),
             head = metadata["llama.embedding_length"].get<std::uint64_t>() /
                    metadata["llama.attention.head_count"].get<std::uint64_t>(),
             layers = metadata["llama.block_count"].get<std::uint64_t>();
  CHECK(json["memory"]["kv_bytes_per_token"] == layers * kv_heads * head * 2 * 2);
  const auto text = test::run({"inspect", model("Q4_K")});
  CHECK(text.status == 0);
  CHECK(text.out.find("general.architecture = \"llama\"") != std::string::npos);
  CHECK(text.out.find("blk.0.attn_q.weight") != std::string::npos);
}

TEST_CASE("inspect shows well-known shapes without a file, one or side by side") {
  const Json v3 = json_of({"inspect", "--preset", "deepseek-v3", "--kv", "bf16"});
  CHECK(v3["kv_bytes_per_token"] == 70272);
  CHECK(v3["mla"]["kv_bytes_per_token_naive"] == 4997120);
  CHECK(v3["moe"]["experts"] == 256);
  CHECK(v3["moe"]["chosen"] == 8);
  const Json moe = json_of({"inspect", "--families", "moe"});
  CHECK(moe.size() == 12);
  for (const Json& preset : moe)
    CHECK((preset["announced"].get<bool>() || preset["active_parameters"].get<double>() < preset["parameters"].get<double>()));
  CHECK(json_of({"inspect", "--families", "dense"}).size() == 3);
  const auto text = test::run({"inspect", "--families", "all"}).out;
  CHECK(text.find("llama-4-behemoth") != std::string::npos);
  CHECK(text.find("announced, not released") != std::string::npos);
  const auto unknown = test::run({"inspect", "--preset", "gpt-5"});
  CHECK(unknown.status == 2);
  CHECK(unknown.err.find("deepseek-v3") != std::string::npos);
  CHECK(test::run({"inspect"}).status == 2);
  CHECK(test::run({"inspect", "--preset", "dbrx", "--families", "moe"}).status == 2);
}

TEST_CASE("an adapter changes what a folder's model says, and each way of latent attention says the same") {
  const auto models = test::data("golden/models");
  if (!models) NIHAO_SKIP("golden/models");
  const std::string folder = (*models / "llama_gqa").string();
  const auto top = [&](std::vector<std::string> more) {
    std::vector<std::string> command{"logits", "--ids", "106,169,70", "--exact"};
    command.insert(command.end(), more.begin(), more.end());
    return json_of(command)["top"];
  };
  CHECK(top({"--model", folder}) != top({"--model", folder, "--lora", (*models / "lora").string()}));
  const auto refused = test::run({"logits", "--model", folder, "--ids", "1", "--lora", folder});
  CHECK(refused.status == 1);
  CHECK(refused.err.find("adapter_config.json") != std::string::npos);
  const std::string latents = (*models / "deepseek_v2").string();
  const Json expected = top({"--model", latents});
  for (const std::string mode : {"naive", "merged"}) {
    const Json found = top({"--model", latents, "--mla", mode});
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(found[i]["id"] == expected[i]["id"]);
  }
}

TEST_CASE("inspect lists tensors of types that are not computed with, and what computes names them") {
  if (model().empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  // The model with the type of one tensor turned from F32 to another that takes no more room: Q8_1, number 9.
  std::string bytes = test::read_text(model());
  const std::string name = "blk.0.ffn_up.weight";
  const std::size_t at = bytes.find(name);
  REQUIRE(at != std::string::npos);
  REQUIRE(bytes[at + name.size()] == 2);  // the rank; then two sizes, and the type
  bytes[at + name.size() + 4 + 16] = 9;
  const test::TempFolder folder;
  write(folder.path("m"), bytes);
  const Json whole = json_of({"inspect", model()}), json = json_of({"inspect", folder.path("m")});
  REQUIRE(json["tensors"].size() == whole["tensors"].size());
  CHECK(json["parameters"] == whole["parameters"]);
  for (std::size_t i = 0; i < json["tensors"].size(); ++i) {
    const Json &tensor = json["tensors"][i], &original = whole["tensors"][i];
    if (tensor["name"] != name) {
      CHECK(tensor == original);
      continue;
    }
    CHECK(tensor["format"] == "Q8_1");
    CHECK(tensor["shape"] == original["shape"]);
    CHECK(tensor["offset"] == original["offset"]);
    CHECK(tensor["bytes"].get<std::uint64_t>() == original["bytes"].get<std::uint64_t>() / 4 / 32 * 36);
  }
  CHECK(test::run({"inspect", folder.path("m")}).out.find("Q8_1") != std::string::npos);
  CHECK(json_of({"tokenize", "--model", folder.path("m"), "hi"}) == json_of({"tokenize", "--model", model(), "hi"}));
  const auto refused = test::run({"run", "--model", folder.path("m"), "hi"});
  CHECK(refused.status == 1);
  CHECK(refused.err == "nihao: " + folder.path("m") + ": tensor \"" + name + "\": tensors of type Q8_1 are not supported\n");
}

TEST_CASE("inspect reads a Hugging Face folder too") {
  const auto folder = test::data("golden/models/llama_gqa");
  if (!folder) NIHAO_SKIP("golden/models/llama_gqa");
  const Json json = json_of({"inspect", folder->string()});
  CHECK(json["architecture"] == "llama");
  CHECK(json["metadata"]["num_key_value_heads"].is_number());
  CHECK(json["tensors"].size() > 10);
}

TEST_CASE("tokenize gives ids and pieces, and detokenize takes them back") {
  if (model().empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const Json json = json_of({"tokenize", "--model", model(), "hi, 你好"});
  CHECK(keys(json) == std::set<std::string>{"ids", "pieces"});
  CHECK(json["ids"].size() == json["pieces"].size());
  CHECK(json["ids"][0] == 1);
  CHECK(json_of({"tokenize", "--model", model(), "--no-bos", "hi"})["ids"].size() + 1 ==
        json_of({"tokenize", "--model", model(), "hi"})["ids"].size());
  CHECK(json_of({"tokenize", "--model", model(), "--no-bos", "</s>"})["ids"].back() == 2);
  CHECK(json_of({"tokenize", "--model", model(), "--no-bos", "--no-special", "</s>"})["ids"].size() > 3);
  CHECK(json_of({"tokenize", "--model", model(), "-"}, "hi, 你好") == json);
  const test::TempFolder folder;
  write(folder.path("text"), "hi, 你好");
  CHECK(json_of({"tokenize", "--model", model(), "--file", folder.path("text")}) == json);

  std::vector<std::string> arguments{"detokenize", "--model", model()};
  for (const Json& id : json["ids"])
    if (id != 1) arguments.push_back(id.dump());
  const Json text = json_of(arguments);
  CHECK(keys(text) == std::set<std::string>{"text", "bytes_base64"});
  CHECK(text["text"] == "hi, 你好");
  CHECK(text["bytes_base64"] == "aGksIOS9oOWlvQ==");
}

TEST_CASE("detokenize shows bytes that are no text as U+FFFD, and gives them exactly in base64") {
  if (model().empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const Json ids = json_of({"tokenize", "--model", model(), "--no-bos", "你"})["ids"];
  const Json text = json_of({"detokenize", "--model", model(), ids.back().dump()});
  CHECK(text["text"] == "\xEF\xBF\xBD");
  CHECK(text["bytes_base64"] == "oA==");
}

TEST_CASE("render puts a conversation, or a whole context, through a template") {
  const test::TempFolder folder;
  write(folder.path("t"),
        "{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}{% if add_generation_prompt "
        "%}[assistant]{% endif %}");
  write(folder.path("m"), R"([{"role": "user", "content": "你好"}])");
  const Json json = json_of({"render", "--template", folder.path("t"), "--messages", folder.path("m")});
  CHECK(keys(json) == std::set<std::string>{"text"});
  CHECK(json["text"] == "[user] 你好\n[assistant]");
  CHECK(test::run({"render", "--template", folder.path("t"), "--messages", folder.path("m"), "--no-generation-prompt"}).out ==
        "[user] 你好\n");
  write(folder.path("c"), R"({"messages": [{"role": "user", "content": "x"}], "bos_token": "<s>"})");
  CHECK(test::run({"render", "--template", folder.path("t"), "--context", folder.path("c")}).out == "<s>[user] x\n");
  CHECK(test::run({"render", "--template", folder.path("t"), "--context", "-"}, R"({"messages": []})").out == "");
  write(folder.path("now"), "{{ strftime_now('%Y-%m-%d %H:%M') }}");
  CHECK(test::run({"render", "--template", folder.path("now"), "--messages", folder.path("m"), "--now", "2026-10-05T12:30:00"})
            .out == "2026-10-05 12:30");
  CHECK(test::run({"render", "--template", folder.path("now"), "--messages", folder.path("m"), "--now", "2026-10-05"}).out ==
        "2026-10-05 00:00");
  CHECK(test::run({"render", "--template", folder.path("now"), "--messages", folder.path("m"), "--now", "today"}).status == 2);
  write(folder.path("bad"), "{{ raise_exception('two\nlines') }}");
  const auto bad = test::run({"render", "--template", folder.path("bad"), "--messages", folder.path("m")});
  CHECK(bad.status == 1);
  CHECK(bad.err.find("two\\nlines") != std::string::npos);
  write(folder.path("m"), "[{");
  CHECK(test::run({"render", "--template", folder.path("t"), "--messages", folder.path("m")}).err.find(folder.path("m")) !=
        std::string::npos);
}

TEST_CASE("inspect --block shows a matrix of a quantized folder as what it becomes") {
  const auto folders = test::data("golden/quant/hf");
  if (!folders) NIHAO_SKIP("golden/quant/hf");
  for (const auto& [name, format] : {std::pair("fp8_block128", "FP8_E4M3"), std::pair("awq_gemm_4bit", "INT4"),
                                     std::pair("w8a8_int8_channel", "INT8"), std::pair("bnb_nf4", "NF4")}) {
    const Json json =
        json_of({"inspect", (*folders / name).string(), "--block", "model.layers.0.self_attn.q_proj.weight:1:0", "--json"});
    CHECK(json["format"] == format);
    CHECK(json["values"].size() == 32);
  }
}

TEST_CASE("logits gives the likeliest tokens, and writes all of them to a file") {
  if (model().empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const test::TempFolder folder;
  const Json json = json_of({"logits", "--model", model(), "--top", "3", "--out", folder.path("last"), "hello"});
  CHECK(keys(json) == std::set<std::string>{"ids", "top"});
  REQUIRE(json["top"].size() == 3);
  CHECK(json["top"][0]["logit"] >= json["top"][1]["logit"]);
  CHECK(keys(json["top"][0]) == std::set<std::string>{"id", "logit"});
  const auto last = Safetensors::open(folder.path("last"));
  REQUIRE(last.has_value());
  CHECK(last->find("logits")->shape == std::vector<std::uint64_t>{1, 272});
  const auto values = *last->values<float>("logits");
  CHECK(values[json["top"][0]["id"].get<std::size_t>()] == json["top"][0]["logit"].get<float>());

  std::string ids;
  for (const Json& id : json["ids"]) ids += concat(ids.empty() ? "" : ",", id.dump());
  CHECK(json_of({"logits", "--model", model(), "--top", "3", "--ids", ids}) == json);
  // Every position; the last is the same to the bit, however the prompt is cut.
  REQUIRE(
      test::run({"logits", "--model", model(), "--all", "--chunk", "2", "--threads", "1", "--out", folder.path("all"), "hello"})
          .status == 0);
  const auto all = Safetensors::open(folder.path("all"));
  REQUIRE(all.has_value());
  CHECK(all->find("logits")->shape == std::vector<std::uint64_t>{json["ids"].size(), 272});
  const auto rows = *all->values<float>("logits");
  CHECK(std::equal(values.begin(), values.end(), rows.end() - 272));
  // Without a file every position is printed.
  const Json printed = json_of({"logits", "--model", model(), "--all", "--top", "3", "hello"});
  CHECK(printed["top"] == json["top"]);
  REQUIRE(printed["positions"].size() == json["ids"].size());
  for (std::size_t i = 0; i < printed["positions"].size(); ++i)
    for (const Json& token : printed["positions"][i])
      CHECK(rows[i * 272 + token["id"].get<std::size_t>()] == token["logit"].get<float>());
}

TEST_CASE("logits of the golden prompts are the golden logits, exactly computed") {
  const auto golden = test::data("golden/quant/gguf/golden.safetensors");
  if (!golden) NIHAO_SKIP("golden/quant/gguf/golden.safetensors");
  const auto reference = Safetensors::open(golden->string());
  REQUIRE(reference.has_value());
  const test::TempFolder folder;
  for (const char* format : {"F32", "Q8_0", "Q4_K"}) {
    CAPTURE(format);
    std::string ids;
    const auto golden_ids = reference->values<std::int64_t>("short.input_ids");
    REQUIRE(golden_ids.has_value());
    for (const std::int64_t id : *golden_ids) ids += concat(ids.empty() ? "" : ",", id);
    REQUIRE(test::run({"logits", "--model", model(format), "--exact", "--all", "--ids", ids, "--out", folder.path("l")}).status ==
            0);
    const auto got = *Safetensors::open(folder.path("l"))->values<float>("logits");
    const auto expected = *reference->values<float>(std::string(format) + ".short.logits");
    REQUIRE(got.size() == expected.size());
    float worst = 0;
    for (std::size_t i = 0; i < got.size(); ++i) worst = std::max(worst, std::abs(got[i] - expected[i]));
    CHECK(worst < 1e-4f);
  }
}

TEST_CASE("--states writes every station's tensors by the reference's names, however the prompt is cut") {
  const auto folder = test::data("golden/models/llama_gqa");
  if (!folder) NIHAO_SKIP("golden/models/llama_gqa");
  const auto reference = Safetensors::open((*folder / "golden.safetensors").string());
  REQUIRE(reference.has_value());
  std::string ids;
  const auto golden_ids = reference->values<std::int64_t>("long.input_ids");
  REQUIRE(golden_ids.has_value());
  for (const std::int64_t id : *golden_ids) ids += concat(ids.empty() ? "" : ",", id);
  const test::TempFolder out;
  for (const char* chunk : {"512", "5"}) {
    REQUIRE(test::run({"logits", "--model", folder->string(), "--exact", "--ids", ids, "--all", "--chunk", chunk, "--states",
                       out.path("s")})
                .status == 0);
    const auto states = Safetensors::open(out.path("s"));
    REQUIRE(states.has_value());
    for (const char* name : {"hidden.embed", "hidden.layer0", "hidden.final_norm", "layer0.attn_out", "layer0.q_after_rope",
                             "layer0.attn_probs", "layer0.ffn_out", "logits"}) {
      CAPTURE(name);
      const auto* got = states->find(name);
      const auto* wanted = reference->find(std::string("long.") + name);
      REQUIRE(got != nullptr);
      REQUIRE(wanted != nullptr);
      CHECK(got->shape == wanted->shape);
      const auto a = *states->values<float>(name), b = *reference->values<float>(wanted->name);
      float worst = 0;
      for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
      CHECK(worst < 1e-4f);
    }
  }
}

TEST_CASE("run tells ids, text, finish reason, timings and memory") {
  if (model().empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const Json json = json_of({"run", "--model", model("Q4_K"), "-n", "12", "--temp", "0", "--ignore-eos", "hello"});
  CHECK(keys(json) == std::set<std::string>{"prompt_ids", "ids", "text", "finish_reason", "timings", "peak_rss_bytes"});
  CHECK(json["prompt_ids"] == json_of({"tokenize", "--model", model("Q4_K"), "hello"})["ids"]);
  CHECK(json["ids"].size() == 12);
  CHECK(json["finish_reason"] == "length");
  const Json& timings = json["timings"];
  CHECK(keys(timings) == std::set<std::string>{"load_ms", "prompt_tokens", "prompt_per_s", "decode_tokens", "decode_per_s",
                                               "first_token_ms", "bound", "prefill", "decode"});
  CHECK(timings["prompt_tokens"] == json["prompt_ids"].size());
  CHECK(timings["decode_tokens"] == 12);
  for (const char* positive : {"load_ms", "prompt_per_s", "decode_per_s", "first_token_ms"})
    CHECK(timings[positive].get<double>() > 0);
  CHECK(timings["first_token_ms"].get<double>() > timings["load_ms"].get<double>());
  CHECK((timings["bound"] == "compute" || timings["bound"] == "memory"));
  for (const char* phase : {"prefill", "decode"}) {
    const Json& told = timings[phase];
    CHECK(keys(told) == std::set<std::string>{"flops_fraction", "bandwidth_fraction", "arithmetic_intensity", "bound"});
    for (const char* positive : {"flops_fraction", "bandwidth_fraction", "arithmetic_intensity"})
      CHECK(told[positive].get<double>() > 0);
    CHECK((told["bound"] == "compute" || told["bound"] == "memory"));
  }
  // Tokens that are read together share the weights.
  CHECK(timings["prefill"]["arithmetic_intensity"].get<double>() > timings["decode"]["arithmetic_intensity"].get<double>());
  const Json none = json_of({"run", "--model", model("Q4_K"), "-n", "0", "hello"})["timings"];
  CHECK(none["decode"].is_null());
  CHECK(none["prefill"]["bound"] == none["bound"]);
  CHECK(json["peak_rss_bytes"].get<std::uint64_t>() > 1'000'000);
}

TEST_CASE("perplexity tells its figure and, against exact, the distance") {
  if (model().empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const test::TempFolder folder;
  std::string text;
  for (int i = 0; i < 30; ++i) text += "The llama looked at the river, and the river looked back. ";
  write(folder.path("text"), text);
  const Json json = json_of({"perplexity", "--model", model("Q4_0"), "--file", folder.path("text"), "--ctx", "64"});
  CHECK(has_keys(json, {"perplexity", "tokens"}));
  CHECK(json["perplexity"].get<double>() > 1);
  CHECK(json["tokens"].get<int>() % 31 == 0);
  const Json compared =
      json_of({"perplexity", "--model", model("Q4_0"), "--file", folder.path("text"), "--ctx", "64", "--against-exact"});
  CHECK(has_keys(compared, {"perplexity", "tokens", "kl_mean", "kl_p99", "top1_agreement"}));
  CHECK(compared["perplexity"] == json["perplexity"]);
  CHECK(compared["kl_mean"].get<double>() > 0);
  CHECK(compared["top1_agreement"].get<double>() > 0.5);
  const Json same = json_of(
      {"perplexity", "--model", model("Q4_0"), "--file", folder.path("text"), "--ctx", "64", "--against-exact", "--exact"});
  CHECK(same["kl_mean"].get<double>() < 1e-12);
  CHECK(same["top1_agreement"] == 1.0);
}

TEST_CASE("bench tells each test's speed and where the machine's limits are") {
  if (model().empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const Json json =
      json_of({"bench", "--model", model("Q4_K"), "-p", "16", "-n", "4", "-t", "1,2", "-r", "2", "-d", "0,8", "-b", "1,2"});
  REQUIRE(json.is_array());
  std::vector<std::string> names;
  for (const Json& test : json) {
    REQUIRE(has_keys(test, {"test", "threads", "tokens_per_s", "bytes_per_token", "bandwidth_fraction", "flops_fraction",
                            "arithmetic_intensity", "bound"}));
    CHECK(has_keys(test["tokens_per_s"], {"median", "min", "max"}));
    CHECK(test["tokens_per_s"]["min"] <= test["tokens_per_s"]["median"]);
    CHECK(test["tokens_per_s"]["median"] <= test["tokens_per_s"]["max"]);
    CHECK(test["bytes_per_token"].get<double>() > 0);
    CHECK(test["arithmetic_intensity"].get<double>() > 0);
    if (test["threads"] == 1) names.push_back(test["test"].get<std::string>());
  }
  CHECK(names == std::vector<std::string>{"pp16", "tg4", "tg4@b2", "pp16@d8", "tg4@d8", "tg4@d8@b2"});
  CHECK(json.size() == 12);
  // Two sequences share one reading of the weights.
  CHECK(json[2]["bytes_per_token"].get<double>() < 0.75 * json[1]["bytes_per_token"].get<double>());
}

TEST_CASE("bench --why tells the three costliest stations of a step, what bounds each and what would cut it") {
  if (model().empty()) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const std::vector<std::string> arguments{"bench", "--model", model("Q4_K"), "-p", "64", "--chunk", "32", "-n",
                                           "4",     "-b",      "1,2",         "-t", "1",  "-r",      "2",  "--why"};
  const Json json = json_of(arguments);
  REQUIRE(json.size() == 3);
  for (const Json& test : json) {
    const Json& why = test["why"];
    REQUIRE(keys(why) ==
            std::set<std::string>{"bound", "rows", "step_ms", "observed_step_ms", "stations_ms", "share_by_bound", "stations"});
    CHECK(why["bound"] == test["bound"]);
    CHECK(why["rows"] == (test["test"] == "pp64" ? 32 : test["batch"].get<int>()));
    CHECK(why["step_ms"].get<double>() > 0);
    // All of a step is some station's, but for what lies around the forward pass.
    CHECK(why["stations_ms"] <= why["observed_step_ms"]);
    CHECK(why["stations_ms"].get<double>() > 0.5 * why["observed_step_ms"].get<double>());
    double shares = 0;
    for (const Json& share : why["share_by_bound"]) shares += share.get<double>();
    CHECK(shares == doctest::Approx(1));
    REQUIRE(why["stations"].size() == 3);
    double share = 1;
    for (const Json& station : why["stations"]) {
      REQUIRE(keys(station) == std::set<std::string>{"station", "share", "ms", "calls", "bytes", "ops", "gb_per_s", "gop_per_s",
                                                     "bandwidth_fraction", "flops_fraction", "peak", "bound", "cut"});
      CHECK(station["share"] <= share);
      share = station["share"].get<double>();
      CHECK(station["ms"].get<double>() == doctest::Approx(share * why["stations_ms"].get<double>()));
      CHECK(std::set<std::string>{"compute", "memory", "overhead"}.contains(station["bound"].get<std::string>()));
      CHECK(station["cut"].get<std::string>().size() > 20);
    }
  }
  CHECK(!json_of({"bench", "--model", model("Q4_K"), "-p", "4", "-n", "0", "-t", "1", "-r", "1"})[0].contains("why"));

  const auto text = test::run(arguments);
  CHECK(text.status == 0);
  CHECK(text.err == "");
  CHECK(text.out.find("bound by ") != std::string::npos);
  CHECK(text.out.find("A step of 32 rows takes ") != std::string::npos);
  CHECK(text.out.find("A step of 1 row takes ") != std::string::npos);
  CHECK(text.out.find("The costliest, and what would cut each:\n") != std::string::npos);
}
