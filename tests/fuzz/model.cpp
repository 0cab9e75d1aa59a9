// Fuzzes what stands between a file and its logits: a small model's file of one of the families, with bytes of its head (entries,
// names, shapes, offsets) or of its weights replaced. load() may refuse it; what it takes must read a prompt.
#include <nihao/files/gguf_writer.hpp>
#include <nihao/models/context.hpp>
#include <nihao/models/gemma3.hpp>
#include <nihao/models/llama.hpp>
#include <nihao/models/load.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace nihao;

constexpr std::uint32_t d_model = 32, d_ff = 64, layers = 2, vocab = 24;

/// The bytes of a file that loads: two layers, two heads of 16 with one of keys and values.
std::vector<std::byte> small_file(std::string_view family) {
  GgufWriter file;
  const auto key = [&](std::string_view name) { return concat(family, ".", name); };
  file.add("general.architecture", family);
  file.add(key("block_count"), layers);
  file.add(key("embedding_length"), d_model);
  file.add(key("feed_forward_length"), d_ff);
  file.add(key("attention.head_count"), std::uint32_t{2});
  file.add(key("attention.head_count_kv"), std::uint32_t{1});
  file.add(key("attention.key_length"), std::uint32_t{16});
  file.add(key("attention.value_length"), std::uint32_t{16});
  file.add(key("attention.layer_norm_rms_epsilon"), 1e-5f);
  file.add(key("context_length"), std::uint32_t{64});
  file.add(key("rope.freq_base"), 10000.0f);
  file.add(key("rope.scaling.type"), "yarn");
  file.add(key("rope.scaling.factor"), 4.0f);
  file.add(key("rope.scaling.original_context_length"), std::uint32_t{16});
  file.add(key("attention.sliding_window"), std::uint32_t{8});
  file.add("tokenizer.ggml.model", "llama");
  std::array<std::string, vocab> names;
  std::array<std::string_view, vocab> tokens;
  std::array<std::int32_t, vocab> types;
  std::array<float, vocab> scores;
  for (std::size_t i = 0; i < vocab; ++i) {
    names[i].assign(1 + i / 12, static_cast<char>('a' + i % 12));
    tokens[i] = names[i];
    types[i] = i < 2 ? 3 : 1;
    scores[i] = -static_cast<float>(i);
  }
  file.add_strings("tokenizer.ggml.tokens", tokens);
  file.add_array("tokenizer.ggml.token_type", std::span<const std::int32_t>(types));
  file.add_array("tokenizer.ggml.scores", std::span<const float>(scores));
  file.add("tokenizer.ggml.bos_token_id", std::uint32_t{1});
  file.add("tokenizer.chat_template", "{% for m in messages %}{{ m.content }}{% endfor %}");

  std::uint64_t made = 0;  // weights: small integers, in no order
  std::vector<std::vector<std::byte>> kept;
  const auto tensor = [&](std::string_view name, FormatId format, std::initializer_list<std::uint64_t> shape) {
    std::size_t size = 1;
    for (const std::uint64_t n : shape) size *= n;
    auto& bytes = kept.emplace_back(size / format_info(format).block_size * format_info(format).block_bytes);
    if (format == FormatId::F32) {
      for (std::size_t i = 0; i < size; ++i) {
        const float value = static_cast<float>(++made * 37 % 17) / 16.0f;
        std::memcpy(bytes.data() + 4 * i, &value, 4);
      }
    } else {
      for (std::byte& b : bytes) b = static_cast<std::byte>(++made * 37 % 29);
    }
    if (!file.add_tensor(name, format, std::span(shape.begin(), shape.size()), bytes)) __builtin_trap();
  };
  kept.reserve(64);
  tensor("token_embd.weight", FormatId::Q8_0, {vocab, d_model});
  tensor("output_norm.weight", FormatId::F32, {d_model});
  tensor("output.weight", FormatId::F32, {vocab, d_model});
  for (std::size_t n = 0; n < layers; ++n) {
    const auto name = [&](std::string_view part) { return concat("blk.", n, ".", part); };
    for (const char* norm : {"attn_norm", "ffn_norm"}) tensor(name(concat(norm, ".weight")), FormatId::F32, {d_model});
    if (family == "gemma3") {
      for (const char* norm : {"post_attention_norm", "post_ffw_norm"})
        tensor(name(concat(norm, ".weight")), FormatId::F32, {d_model});
      for (const char* norm : {"attn_q_norm", "attn_k_norm"}) tensor(name(concat(norm, ".weight")), FormatId::F32, {16});
    }
    if (family == "qwen2") {
      tensor(name("attn_q.bias"), FormatId::F32, {32});
      for (const char* bias : {"attn_k.bias", "attn_v.bias"}) tensor(name(bias), FormatId::F32, {16});
    }
    tensor(name("attn_q.weight"), FormatId::Q4_0, {32, d_model});
    tensor(name("attn_k.weight"), FormatId::F16, {16, d_model});
    tensor(name("attn_v.weight"), FormatId::Q5_1, {16, d_model});
    tensor(name("attn_output.weight"), FormatId::Q4_1, {d_model, 32});
    tensor(name("ffn_gate.weight"), FormatId::Q8_0, {d_ff, d_model});
    tensor(name("ffn_up.weight"), FormatId::BF16, {d_ff, d_model});
    tensor(name("ffn_down.weight"), FormatId::Q5_0, {d_model, d_ff});
  }
  return file.bytes();
}

/// The formats that the files have: to compile all families and formats with these checks takes ten minutes.
using Formats = Quant<F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1>;

/// Loads the changed file as a model of type M, and reads a prompt with it.
template <class M>
void run(std::span<const std::byte> file, bool changed) {
  const auto model = load<M>(file, {.cpu = {.threads = 1}});
  if (!model && !changed) __builtin_trap();
  if (!model) return;
  auto context = Context<M>::create(*model, {.positions = 12, .chunk = 5});
  if (!context) return;
  const std::array<TokenId, 8> prompt{1, 2, 3, 4, 5, 0, 2, 1};
  const auto logits = context->prefill(0, prompt);
  if (logits && logits->cols() != model->config().vocab) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const std::array files{small_file("llama"), small_file("qwen2"), small_file("gemma3")};
  if (size == 0) return 0;
  const std::size_t which = bytes[0] % files.size();
  const auto& file = files[which];
  std::vector<std::uint64_t> aligned(file.size() / 8 + 1);
  auto* copy = reinterpret_cast<std::byte*>(aligned.data());
  std::memcpy(copy, file.data(), file.size());
  std::size_t changes = 0;
  for (std::size_t i = 1; i + 3 <= size; i += 3, ++changes)  // a place and a byte
    copy[(bytes[i] | std::size_t{bytes[i + 1]} << 8) % file.size()] = static_cast<std::byte>(bytes[i + 2]);
  const std::span<const std::byte> changed(copy, file.size());
  if (which == 2) run<Gemma3<Sizes{}, Formats>>(changed, changes > 0);
  else run<Llama<Sizes{}, Formats>>(changed, changes > 0);
  return 0;
}
