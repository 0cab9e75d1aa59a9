// Checkpoints as they are on the hub, tiny ones, against float64 results of the reference implementation.
#include "golden_models.hpp"
#include "nihao/models/load_hf.hpp"
#include "nihao/trace/reference_tensors.hpp"

using namespace nihao;
using namespace nihao::test;

namespace {

// Observed: at most 7e-6 for logits, 1.8e-5 for the states of gemma3_text (whose norms scale them up), 9e-6 for the rest.
double tolerance(const std::string& station) { return station == "logits" || station.find("hidden.") == 0 ? 1e-4 : 2e-5; }

// Whether a golden tensor of `prompt` is one that the forward pass makes.
bool is_station(const std::string& name, const std::string& prompt) {
  return name.find(prompt + ".") == 0 && name.find("greedy") == std::string::npos && name.find("input_ids") == std::string::npos;
}

}  // namespace

TEST_CASE("every golden checkpoint computes its reference's logits, states and activations, from either form of its config") {
  const auto models = data("golden/models");
  if (!models) NIHAO_SKIP("golden/models");
  for (const std::string name : golden_cases) {
    CAPTURE(name);
    const auto golden = require(Safetensors::open((*models / name / "golden.safetensors").string()));
    for (const std::string config : {"config.json", "config_v5.json"}) {
      CAPTURE(config);
      const CheckpointFolder folder(*models / name, config);
      const AnyModel model = require(load_hf(folder.path(), {.cpu = {.threads = 2, .exact = true}}));
      for (const std::string prompt : {"short", "long"}) {
        const auto ids = token_ids(golden, prompt + ".input_ids");
        const auto context = require(model.context({.positions = 64, .kv = KvType::f32}));
        Recorder recorder({.attention_probabilities = true});
        const ObserverRef observer(recorder);
        const SequenceTokens all{0, ids, Wanted::all};
        require(context->step(std::span(&all, 1), &observer));
        const auto recorded = reference_tensors(recorder.records(), model.config());

        int compared = 0;
        for (const SafetensorsEntry& entry : golden.entries()) {
          if (!is_station(entry.name, prompt)) continue;
          const std::string station = entry.name.substr(prompt.size() + 1);
          const auto found = std::find_if(recorded.begin(), recorded.end(), [&](const auto& t) { return t.name == station; });
          REQUIRE_MESSAGE(found != recorded.end(), entry.name);
          CHECK_MESSAGE(found->shape == entry.shape, entry.name);
          CHECK_MESSAGE(most_apart(found->values, *golden.values<float>(entry.name)) <= tolerance(station), entry.name);
          ++compared;
        }
        CHECK(compared >= (name == "llama_gqa" && prompt == "long" ? 27 : 9));

        const auto fresh = require(model.context({.positions = 64, .kv = KvType::f32}));
        CHECK(continue_greedily(*fresh, ids, 12) == token_ids(golden, prompt + ".greedy_ids"));
      }
    }
  }
}

TEST_CASE("the fast mode stays close to the reference for float weights, with keys and values in any type") {
  const auto models = data("golden/models");
  if (!models) NIHAO_SKIP("golden/models");
  for (const std::string name : golden_cases) {
    CAPTURE(name);
    const auto golden = require(Safetensors::open((*models / name / "golden.safetensors").string()));
    const AnyModel model = require(load_hf((*models / name).string(), {.cpu = {.threads = 1}}));
    // What is left is the rounding of keys and values. Observed: 7e-6, 0.008, 0.04, 0.16 (of logits whose spread is 2).
    const struct {
      KvType kv;
      double most_apart;
    } bands[] = {{KvType::f32, 1e-4}, {KvType::f16, 0.02}, {KvType::bf16, 0.1}, {KvType::q8_0, 0.2}};
    for (const auto& band : bands) {
      CAPTURE(to_string(band.kv));
      const auto context = require(model.context({.positions = 64, .kv = band.kv}));
      const auto logits = logits_of(*context, token_ids(golden, "long.input_ids"), 64);
      CHECK(most_apart(logits, *golden.values<float>("long.logits")) <= band.most_apart);
    }
  }
}

TEST_CASE("observing a step changes no bit of its logits") {
  const auto models = data("golden/models");
  if (!models) NIHAO_SKIP("golden/models");
  for (const std::string name : golden_cases) {
    const auto golden = require(Safetensors::open((*models / name / "golden.safetensors").string()));
    const auto ids = token_ids(golden, "long.input_ids");
    const AnyModel model = require(load_hf((*models / name).string()));
    const auto plain = require(model.context({.positions = 64})), observed = require(model.context({.positions = 64}));
    Recorder recorder;
    const ObserverRef observer(recorder);
    const SequenceTokens all{0, ids, Wanted::all};
    const auto expected = copy(require(plain->step(std::span(&all, 1))));
    CHECK_MESSAGE(copy(require(observed->step(std::span(&all, 1), &observer))) == expected, name);
  }
}

TEST_CASE("a folder that lacks its head, or has another than its config says, is refused") {
  const auto models = data("golden/models");
  if (!models) NIHAO_SKIP("golden/models");
  const CheckpointFolder tied(*models / "llama_tied_mqa", "config.json");
  CHECK(load_hf(tied.path()).has_value());
  // A config of another checkpoint over these weights.
  std::filesystem::remove(tied.path() + "/config.json");
  auto text = read_text(*models / "llama_tied_mqa" / "config.json");
  const auto at = text.find("\"tie_word_embeddings\": true");
  REQUIRE(at != std::string::npos);
  text.replace(at, 27, "\"tie_word_embeddings\": false");
  std::ofstream(tied.path() + "/config.json") << text;
  const auto untied = load_hf(tied.path());
  REQUIRE(!untied);
  CHECK(untied.error().code == ErrorCode::missing);
  CHECK(untied.error().where == tied.path() + ": tensor lm_head.weight");
  CHECK(load_hf(tied.path() + "/nowhere").error().code == ErrorCode::io);
}
