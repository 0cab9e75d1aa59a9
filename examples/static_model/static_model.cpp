// A model as a type: SmolLM2-135M, with every size and weight format stated. The compiler makes this one decoder and nothing
// else, and a file that disagrees is refused with the first difference.
#include <nihao/models/llama.hpp>
#include <nihao/models/load.hpp>
#include <nihao/sampling/sampler.hpp>
#include <nihao/text/stream_decoder.hpp>

#include <fmt/core.h>

using SmolLM2 =
    nihao::Llama<nihao::Sizes{
                     .d_model = 576, .layers = 30, .heads = 9, .kv_heads = 3, .head_dim = 64, .d_ff = 1536, .vocab = 49152},
                 nihao::Quant<nihao::Q4_1, nihao::Q8_0>>;  // the blocks' weights are Q4_1, the embedding is Q8_0

// Two types that are wrong for the file.
using SixteenHeads = nihao::Llama<nihao::Sizes{.heads = 16}>;
using AllQ4K = nihao::Llama<nihao::Sizes{.d_model = 576}, nihao::Quant<nihao::Q4_K>>;

template <class Model>
void show_refusal(const std::string& path, std::string_view what) {
  const auto model = nihao::load<Model>(path);
  fmt::print("with {}: {}\n", what, model ? "the file was taken, which it should not be" : model.error().message());
}

// Greedy: the likeliest token, until the model's end token or `count` tokens. What is shown is whole UTF-8.
nihao::Expected<void> generate(const SmolLM2& model, const nihao::Tokenizer& tokenizer, std::string_view prompt, int count) {
  NIHAO_TRY(auto context, nihao::Context<SmolLM2>::create(model, {.positions = 256}));
  NIHAO_TRY(auto greedy, nihao::Chain<nihao::Greedy>::make(model.config().vocab, /*seed*/ 0, {}));
  NIHAO_TRY(std::vector<nihao::TokenId> ids, tokenizer.encode(prompt));
  nihao::StreamDecoder text(tokenizer);
  for (const nihao::TokenId id : ids) fmt::print("{}", text.push(id));
  fmt::print(" >");
  NIHAO_TRY(auto logits, context.prefill(0, ids));  // [1, vocab]: the last position's
  for (int i = 0; i < count; ++i) {
    NIHAO_TRY(const nihao::TokenId id, greedy.sample(logits.row(0), ids));
    if (tokenizer.is_eog(id)) break;
    ids.push_back(id);
    fmt::print("{}", text.push(id));
    const nihao::SequenceTokens next{0, std::span(&ids.back(), 1)};
    NIHAO_TRY(logits, context.step(std::span(&next, 1)));
  }
  fmt::print("{}\n", text.flush());
  return {};
}

nihao::Expected<void> run(const std::string& path) {
  NIHAO_TRY(const auto file, nihao::Gguf::open(path));
  NIHAO_TRY(const auto tokenizer, nihao::Tokenizer::from_gguf(file));
  NIHAO_TRY(const auto model, nihao::load<SmolLM2>(path));
  return generate(model, tokenizer, "The capital of France is", 24);
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: static_model smollm2-135m-q4_1.gguf\n");
    return 2;
  }
  if (const auto done = run(argv[1]); !done) {
    fmt::print(stderr, "{}\n", done.error().message());
    return 1;
  }
  show_refusal<SixteenHeads>(argv[1], "16 heads");
  show_refusal<AllQ4K>(argv[1], "Q4_K weights");
  return 0;
}
