// One family with stated sizes and one weight format, loaded and run: SmolLM2-135M's shape.
#include <nihao/models/llama.hpp>
#include <nihao/models/load.hpp>
using Model = nihao::Llama<nihao::Sizes{.d_model = 576, .heads = 9, .kv_heads = 3, .head_dim = 64}, nihao::Quant<nihao::Q4_1>>;
float unit(const char* path, std::span<const nihao::TokenId> prompt) {
  auto model = nihao::load<Model>(path);
  if (!model) return 0;
  auto context = nihao::Context<Model>::create(*model, {});
  if (!context) return 0;
  const auto logits = context->prefill(0, prompt, {});
  return logits ? logits->row(0)[0] : 0;
}
