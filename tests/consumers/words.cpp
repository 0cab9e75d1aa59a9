// A host that wants words and no decoder: consumer [model.gguf]. Exits 0 if the library did what it says.
#include <nihao/files/gguf.hpp>
#include <nihao/sampling/sampler.hpp>
#include <nihao/text/tokenizer.hpp>

#include <array>
#include <cstdio>

int main(int argc, char** argv) {
  auto sampler = nihao::SamplerChain::parse("top_k=2;temperature=0", 3);
  if (!sampler) return std::puts(sampler.error().message().c_str()), 1;
  const std::array logits{0.5f, 2.0f, 1.0f};
  const auto id = sampler->sample(logits, {});
  if (!id || *id != 1) return 2;
  if (argc < 2) return 0;

  const auto file = nihao::Gguf::open(argv[1]);
  if (!file) return std::puts(file.error().message().c_str()), 3;
  const auto tokenizer = nihao::Tokenizer::from_gguf(*file);
  if (!tokenizer) return std::puts(tokenizer.error().message().c_str()), 4;
  const auto ids = tokenizer->encode("你好,llama");
  return ids && tokenizer->decode(*ids) == "你好,llama" ? 0 : 5;
}
