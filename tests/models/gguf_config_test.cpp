// What a GGUF file's metadata may not say: a small model's file with one entry changed.
#include "nihao/models/gguf_config.hpp"
#include "golden_models.hpp"
#include "nihao/files/gguf_writer.hpp"
#include "nihao/models/load.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

using namespace nihao;
using namespace nihao::test;

namespace {

/// The bytes of a file, at an address that from_bytes takes.
struct FileBytes {
  std::vector<std::uint64_t> words;
  std::size_t size;
  [[nodiscard]] std::span<const std::byte> bytes() const { return std::as_bytes(std::span(words)).first(size); }
};

/// The tiny llama's file after `change(writer)` has added entries; none of the file's own with the same key is left.
template <class F>
FileBytes file_with(const std::vector<std::string>& keys, const F& change) {
  const Gguf file = require(Gguf::open((*data("golden/quant/gguf/F32.gguf")).string()));
  GgufWriter writer;
  for (const GgufEntry& entry : file.metadata())
    if (std::find(keys.begin(), keys.end(), entry.key) == keys.end() && entry.key != "general.alignment") writer.add(entry);
  for (const TensorInfo& t : file.tensors().tensors())
    REQUIRE(writer.add_tensor(t.name, t.format, std::span(t.shape).first(t.rank), t.bytes).has_value());
  change(writer);
  const std::vector<std::byte> bytes = writer.bytes();
  FileBytes result{std::vector<std::uint64_t>(bytes.size() / 8 + 1), bytes.size()};
  std::memcpy(result.words.data(), bytes.data(), bytes.size());
  return result;
}

/// What the file says of its rotary embedding, with `key` set to `value` and so on.
template <class... Entries>
RopeParams rope_with(const Entries&... entries) {
  const FileBytes file = file_with({entries.first...}, [&](GgufWriter& w) { (w.add(entries.first, entries.second), ...); });
  const Config config = require(config_from_gguf(require(Gguf::from_bytes(file.bytes()))));
  REQUIRE(config.ropes.size() == 1);
  return config.ropes[0];
}
template <class T>
std::pair<std::string, T> entry(const char* name, T value) {
  return {std::string("llama.rope.") + name, value};
}

/// The tiny llama's file with `key` set to `value`.
template <class T>
Expected<AnyModel> load_with(std::string_view key, T value) {
  const FileBytes file = file_with({std::string(key)}, [&](GgufWriter& writer) { writer.add(key, value); });
  auto model = load(file.bytes());
  if (!model) return std::move(model).error();
  REQUIRE(model->context({.positions = 16}).has_value());
  return Error{ErrorCode::cancelled, "it loads"};  // the model would outlive its bytes
}

template <class T>
void refused(std::string_view key, T value, ErrorCode code, std::string_view what) {
  CAPTURE(key);
  CAPTURE(value);
  const auto model = load_with(key, value);
  REQUIRE(!model);
  CAPTURE(model.error().message());
  CHECK(to_string(model.error().code) == to_string(code));
  CHECK(model.error().message().find(what) != std::string::npos);
}

template <class T>
void accepted(std::string_view key, T value) {
  refused(key, value, ErrorCode::cancelled, "it loads");
}

}  // namespace

TEST_CASE("a vocab_size that contradicts the list of tokens is refused") {
  if (!data("golden/quant/gguf/F32.gguf")) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  accepted("llama.vocab_size", std::uint32_t{272});
  for (const std::uint32_t wrong : {0u, 271u, 273u, UINT32_MAX})
    refused("llama.vocab_size", wrong, ErrorCode::mismatch, "llama.vocab_size: it is ");
  refused("llama.vocab_size", std::uint32_t{300}, ErrorCode::mismatch, "the file has 272 tokens, and an embedding of 272 rows");
}

TEST_CASE("special tokens outside the vocabulary are refused, and -1 is none") {
  if (!data("golden/quant/gguf/F32.gguf")) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  for (const std::string name : {"bos", "eos", "eot", "eom", "unknown", "padding"}) {
    const std::string key = "tokenizer.ggml." + name + "_token_id";
    accepted(key, std::uint32_t{271});
    accepted(key, UINT32_MAX);
    accepted(key, std::int32_t{-1});
    refused(key, std::uint32_t{272}, ErrorCode::malformed, key + ": token 272 is not one of the 272 in the list");
    refused(key, std::uint32_t{1u << 31}, ErrorCode::malformed, key);
    refused(key, std::int32_t{-2}, ErrorCode::malformed, key);
  }
}

TEST_CASE("a norm's eps that is no finite number is refused") {
  if (!data("golden/quant/gguf/F32.gguf")) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  using Limits = std::numeric_limits<float>;
  for (const float wrong : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(), -1e-5f})
    refused("llama.attention.layer_norm_rms_epsilon", wrong, ErrorCode::malformed, "eps");
  accepted("llama.attention.layer_norm_rms_epsilon", 1e-6f);
}

TEST_CASE("a context of no positions is refused") {
  if (!data("golden/quant/gguf/F32.gguf")) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  refused("llama.context_length", std::uint32_t{0}, ErrorCode::malformed, "the context length is 0");
}

TEST_CASE("keys that would change what a model computes are refused, where they ask for what is not done") {
  if (!data("golden/quant/gguf/F32.gguf")) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  for (const char* name :
       {"attention.clamp_kqv", "attention.max_alibi_bias", "attn_logit_softcapping", "expert_shared_count",
        "leading_dense_block_count", "interleave_moe_layer_step", "nextn_predict_layers", "swiglu_clamp_exp",
        "rope.dimension_sections", "attention.temperature_scale", "attention.kv_lora_rank", "rope.scaling.yarn_log_multiplier"}) {
    accepted(concat("llama.", name), 0.0f);
    refused(concat("llama.", name), 8.0f, ErrorCode::unsupported, "it is 8, which the llama family here does not do");
  }
  for (const char* name : {"logit_scale", "embedding_scale", "residual_scale", "rope.scaling.yarn_ext_factor"}) {
    accepted(concat("llama.", name), 1.0f);
    refused(concat("llama.", name), 0.5f, ErrorCode::unsupported, name);
  }
  accepted("llama.expert_group_count", std::uint32_t{1});
  refused("llama.expert_group_count", std::uint32_t{4}, ErrorCode::unsupported, "it is 4");
  refused("llama.rope.freq_base_swa", 1234.0f, ErrorCode::unsupported, "it is 1234");
  accepted("llama.attention.causal", true);
  refused("llama.attention.causal", false, ErrorCode::unsupported, "it is false");
  accepted("llama.use_parallel_residual", false);
  refused("llama.use_parallel_residual", true, ErrorCode::unsupported, "it is true");
}

TEST_CASE("a list of limits, one for each layer, is refused where one is not 0") {
  if (!data("golden/quant/gguf/F32.gguf")) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  for (const float last : {0.0f, -7.0f}) {
    const std::array<float, 2> limits{0.0f, last};
    const FileBytes file =
        file_with({}, [&](GgufWriter& w) { w.add_array("llama.swiglu_clamp_exp", std::span<const float>(limits)); });
    CHECK(load(file.bytes()).has_value() == (last == 0));
  }
}

TEST_CASE("which layers slide may be said by a number, or by a flag for each layer") {
  if (!data("golden/quant/gguf/F32.gguf")) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const auto windows = [](auto&& say) {
    const FileBytes file = file_with({}, [&](GgufWriter& w) {
      w.add("llama.attention.sliding_window", std::uint32_t{8});
      say(w);
    });
    auto config = config_from_gguf(require(Gguf::from_bytes(file.bytes())));
    std::vector<std::uint32_t> result;
    if (!config) return result;
    for (const LayerConfig& layer : config->layers) result.push_back(layer.window);
    return result;
  };
  constexpr std::string_view key = "llama.attention.sliding_window_pattern";
  using Windows = std::vector<std::uint32_t>;  // of the one layer
  constexpr bool no[] = {false}, yes[] = {true}, two[] = {true, true};
  CHECK(windows([](GgufWriter&) {}) == Windows{8});
  CHECK(windows([&](GgufWriter& w) { w.add(key, std::uint32_t{2}); }) == Windows{8});
  CHECK(windows([&](GgufWriter& w) { w.add(key, std::uint32_t{1}); }) == Windows{0});
  CHECK(windows([&](GgufWriter& w) { w.add_bools(key, no); }) == Windows{0});
  CHECK(windows([&](GgufWriter& w) { w.add_bools(key, yes); }) == Windows{8});
  CHECK(windows([&](GgufWriter& w) { w.add_bools(key, two); }).empty());
}

TEST_CASE("an architecture that is none of the families is said so, whatever else its file lacks") {
  if (!data("golden/quant/gguf/F32.gguf")) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  refused("general.architecture", "falcon", ErrorCode::unsupported, "general.architecture: \"falcon\" is none of: llama,");
}

TEST_CASE("a model whose tokenizer or chat template cannot be used computes, and says why when text is asked of it") {
  if (!data("golden/quant/gguf/F32.gguf")) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const FileBytes file = file_with({"tokenizer.ggml.model", "tokenizer.chat_template"}, [](GgufWriter& writer) {
    writer.add("tokenizer.ggml.model", "of-tomorrow");
    writer.add("tokenizer.chat_template", "{% for");
  });
  const AnyModel model = require(load(file.bytes()));
  CHECK(model.tokenizer() == nullptr);
  CHECK(model.chat_template() == nullptr);
  CHECK(model.require_tokenizer().error().message() == "tokenizer.ggml.model: tokenizer model \"of-tomorrow\" is not known");
  CHECK(model.require_chat_template().error().where == "chat template: line 1");
  const std::array<TokenId, 2> ids{1, 2};
  CHECK(require(require(model.context({.positions = 4}))->prefill(0, ids)).rows() == 1);
}

TEST_CASE("rotary scaling is read as llama.cpp reads it: linear unless a type is stated, none if that is none") {
  if (!data("golden/quant/gguf/F32.gguf")) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const RopeParams plain = rope_with();
  RopeParams linear = plain;
  linear.scaling = RopeScaling::linear, linear.factor = 4;
  CHECK(rope_with(entry("scaling.type", "linear"), entry("scaling.factor", 4.0f)) == linear);
  CHECK(rope_with(entry("scaling.factor", 4.0f)) == linear);
  CHECK(rope_with(entry("scale_linear", 4.0f)) == linear);
  CHECK(rope_with(entry("scaling.factor", 4.0f), entry("scale_linear", 2.0f)) == linear);
  for (const float nothing : {0.0f, 1.0f}) CHECK(rope_with(entry("scaling.factor", nothing)) == plain);
  CHECK(rope_with(entry("scaling.type", "none"), entry("scaling.factor", 4.0f)).scaling == RopeScaling::none);
  refused("llama.rope.scaling.type", "longrope", ErrorCode::unsupported, "unknown rope scaling \"longrope\"");
}

TEST_CASE("an attention factor scales cos and sin whatever the kind of scaling, as in llama.cpp") {
  if (!data("golden/quant/gguf/F32.gguf")) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  for (const char* kind : {"none", "linear"}) {
    const RopeParams rope = rope_with(entry("scaling.type", kind), entry("scaling.attn_factor", 1.5f));
    CHECK(rope_frequencies(rope, 8).magnitude == 1.5);
    CHECK(rope_frequencies(rope_with(entry("scaling.type", kind)), 8).magnitude == 1);
  }
  refused("llama.rope.scaling.attn_factor", 0.0f, ErrorCode::malformed, "an attention factor of 0");
}

TEST_CASE("a factor multiplies yarn's magnitude, which may be stated, and its original context is the file's unless stated") {
  if (!data("golden/quant/gguf/F32.gguf")) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const auto yarn = [](const auto&... more) {
    return rope_with(entry("scaling.type", "yarn"), entry("scaling.factor", 4.0f), more...);
  };
  const double own = 0.1 * std::log(4.0) + 1;
  const Config config = require(config_from_gguf(require(Gguf::open((*data("golden/quant/gguf/F32.gguf")).string()))));
  CHECK(yarn().scaling == RopeScaling::yarn);
  CHECK(yarn().original_context == config.context);
  CHECK(yarn().attention_factor == doctest::Approx(own));
  CHECK(yarn(entry("scaling.attn_factor", 1.0f)) == yarn());
  CHECK(yarn(entry("scaling.attn_factor", 0.5f)).attention_factor == doctest::Approx(own / 2));
  // Hugging Face's attention_factor stands in the magnitude's place.
  CHECK(yarn(entry("scaling.yarn_attn_factor", 1.25f)).attention_factor == doctest::Approx(1.25));
  CHECK(yarn(entry("scaling.attn_factor", 0.5f), entry("scaling.yarn_attn_factor", 1.25f)).attention_factor ==
        doctest::Approx(0.625));
  CHECK(yarn(entry("scaling.original_context_length", std::uint32_t{32})).original_context == 32);
  CHECK(yarn(entry("scaling.yarn_beta_fast", 16.0f)).beta_fast == 16);
}

TEST_CASE("rope_freqs.weight divides the frequencies: factors that are all 4 are linear scaling by 4, to the bit") {
  if (!data("golden/quant/gguf/F32.gguf")) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const auto logits = [](const FileBytes& file) {
    const AnyModel model = require(load(file.bytes()));
    std::vector<TokenId> ids(64);
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<TokenId>(i);
    const auto context = require(model.context({.positions = 64}));
    return copy(require(context->prefill(0, ids)));
  };
  const FileBytes plain = file_with({}, [](GgufWriter&) {});
  const std::size_t pairs = require(config_from_gguf(require(Gguf::from_bytes(plain.bytes())))).head_dim / 2;
  const std::vector<float> fours(pairs, 4.0f);
  const std::array<std::uint64_t, 1> shape{pairs};
  const auto linear = logits(file_with({}, [](GgufWriter& w) { w.add("llama.rope.scaling.factor", 4.0f); }));
  CHECK(logits(file_with({}, [&](GgufWriter& w) {
          REQUIRE(w.add_tensor("rope_freqs.weight", FormatId::F32, shape, std::as_bytes(std::span(fours))).has_value());
        })) == linear);
  CHECK(logits(plain) != linear);
}
