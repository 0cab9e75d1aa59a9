// Layers put together as a type: latent attention, then a dense feed-forward in the first layer and a mixture of experts in the
// second. Sizes and weight formats are known to the compiler, which makes this one decoder and nothing else.
#include "made_up.hpp"

#include <nihao/models/context.hpp>
#include <nihao/sampling/sampler.hpp>

#include <fmt/ranges.h>

using namespace nihao;

constexpr Sizes sizes{.d_model = 128, .layers = 2, .heads = 8, .head_dim = 48, .d_ff = 256, .vocab = 256};

template <class FeedForward>
using Latent = Block<PreNorm<RmsNorm>, Attention<MLA<MlaChoice::absorbed>>, FFN<FeedForward>>;
using Composed = Decoder<sizes, Layers<Latent<Dense<SiLU>>, Latent<MoE<SigmoidGroups, SiLU>>>, Quant<Q8_0, F32>, Cpu>;

// What a type does not say: widths of latents and experts, how the router chooses, which layer is of which kind.
Config config() {
  Config c;
  c.architecture = "composed";
  c.vocab = sizes.vocab, c.d_model = sizes.d_model, c.heads = c.kv_heads = sizes.heads, c.d_ff = sizes.d_ff, c.context = 64;
  c.mla = {.q_rank = 96, .kv_rank = 64, .nope = 32, .rope = 16};
  c.head_dim = 48, c.value_dim = 32, c.rotated = 16;
  c.attention_scale = 1 / std::sqrt(48.0f);
  c.ropes.emplace_back();
  c.layers = {{.kind = 0}, {.kind = 1}};
  c.expert_ff = c.shared_ff = 64;
  c.router = {.experts = 8, .chosen = 2, .groups = 4, .groups_kept = 2, .normalize = true};
  return c;
}

Expected<void> run() {
  const Config c = config();
  station::MadeUp made(1, FormatId::Q8_0);
  made.ends(c).norms(c, 0).latent_attention(c, 0).dense(c, 0).norms(c, 1).latent_attention(c, 1).experts(c, 1);
  NIHAO_TRY(const Cpu cpu, Cpu::create());
  NIHAO_TRY(const Composed model, Composed::load(c, made.source(), cpu));
  fmt::print("layer 0: latent attention, dense\nlayer 1: latent attention, {} of {} experts and a shared one\n", c.router.chosen,
             c.router.experts);

  NIHAO_TRY(auto context, Context<Composed>::create(model, {.positions = 32}));
  const std::size_t kept = context.cache().layout(0).block_bytes() / kv_block * c.layers.size();
  fmt::print("{} bytes of a token are kept: in each layer a latent of {} and a turned key of {}, for all {} heads\n", kept,
             c.mla.kv_rank, c.mla.rope, c.heads);

  NIHAO_TRY(auto greedy, Chain<Greedy>::make(c.vocab, /*seed*/ 0, {}));
  std::vector<TokenId> ids{228, 189, 160, 229, 165, 189};
  NIHAO_TRY(auto logits, context.prefill(0, ids));
  for (int i = 0; i < 8; ++i) {
    NIHAO_TRY(const TokenId id, greedy.sample(logits.row(0), ids));
    ids.push_back(id);
    const SequenceTokens next{0, std::span(&ids.back(), 1)};
    NIHAO_TRY(logits, context.step(std::span(&next, 1)));
  }
  fmt::print("greedy: {}\n", fmt::join(ids, " "));

  Config other = c;
  other.heads = other.kv_heads = 4;
  const auto refused = Composed::load(other, made.source(), cpu);
  fmt::print("with four heads: {}\n", refused ? "it was taken, which it should not be" : refused.error().message());
  return {};
}

int main() {
  const auto done = run();
  if (!done) fmt::print(stderr, "{}\n", done.error().message());
  return done ? 0 : 1;
}
