// C11, multi-head latent attention: what is kept of a token is one latent that all heads' keys and values are made from. Three
// ways to multiply that out give one result. Read: layers/mla.hpp, docs/models.md.
#include "made_up.hpp"

#include <nihao/models/presets.hpp>
#include <nihao/trace/recorder.hpp>

namespace {

using nihao::MlaMode;

// Heads of 32 + 16 that turn, values of 32, from latents of 64; queries from latents of 96.
nihao::Config shape() {
  nihao::Config c;
  c.architecture = "deepseek_v2";
  c.vocab = 256, c.d_model = 256, c.heads = c.kv_heads = 8, c.d_ff = 512, c.context = 64;
  c.mla = {.q_rank = 96, .kv_rank = 64, .nope = 32, .rope = 16};
  c.head_dim = 48, c.value_dim = 32, c.rotated = 16;
  c.rope_style = nihao::RopeStyle::neighbours;
  c.attention_scale = static_cast<float>(1 / std::sqrt(48.0));
  c.ropes.emplace_back();
  c.layers.resize(2);
  return c;
}
station::MadeUp weights(const nihao::Config& c) {
  station::MadeUp made(11);
  made.ends(c);
  for (std::size_t i = 0; i < c.layers.size(); ++i) made.norms(c, i).latent_attention(c, i).dense(c, i);
  return made;
}

struct Ran {
  std::vector<float> logits;
  nihao::Recorder recorder;
  std::size_t cache_bytes;  // of a token, all layers
};
nihao::Expected<Ran> run(const station::MadeUp& made, MlaMode mode, std::span<const nihao::TokenId> ids) {
  nihao::Config config = shape();
  config.mla.mode = mode;
  NIHAO_TRY(const nihao::AnyModel model, station::load(config, made));
  NIHAO_TRY(const auto context, model.context({.positions = 32, .kv = nihao::KvType::f32}));
  Ran ran{{}, nihao::Recorder(), 0};
  const nihao::SequenceTokens all{0, ids};
  const nihao::ObserverRef observer(ran.recorder);
  NIHAO_TRY(const auto logits, context->step(std::span(&all, 1), &observer));
  ran.logits.assign(logits.row(0).begin(), logits.row(0).end());
  for (std::size_t i = 0; i < 2; ++i) ran.cache_bytes += context->cache().layout(i).block_bytes() / nihao::kv_block;
  return ran;
}
nihao::MatrixView<const float> station_of(const Ran& ran, std::string_view name) {
  for (const nihao::Record& r : ran.recorder.records())
    if (r.name == name && r.layer == 0) return {r.values.data(), r.rows, r.cols};
  return {};
}

nihao::Expected<void> tell() {
  const nihao::Config c = shape();
  const station::MadeUp made = weights(c);
  const std::vector<nihao::TokenId> ids{228, 189, 160, 229, 165, 189, 44, 108};
  fmt::print("C11 latent attention: {} heads of {} + {} (turned), from latents of {}; made-up weights\n\n", c.heads, c.mla.nope,
             c.mla.rope, c.mla.kv_rank);

  // Layer 0, the last token's query against the first token's key, head 0.
  NIHAO_TRY(const Ran naive, run(made, MlaMode::naive, ids));
  const auto q = station_of(naive, "q_b_proj"), latent = station_of(naive, "kv_a_layernorm");
  const std::span<const float> up =
      made.values("model.layers.0.self_attn.kv_b_proj.weight");  // W_uk of head 0 is its first rows, [nope, kv_rank]
  const std::size_t t = ids.size() - 1, nope = c.mla.nope, rank = c.mla.kv_rank;
  double expanded = 0, absorbed = 0;
  for (std::size_t n = 0; n < nope; ++n) {
    double key = 0;
    for (std::size_t r = 0; r < rank; ++r) key += static_cast<double>(up[n * rank + r]) * static_cast<double>(latent(0, r));
    expanded += static_cast<double>(q(t, n)) * key;
  }
  for (std::size_t r = 0; r < rank; ++r) {
    double into = 0;
    for (std::size_t n = 0; n < nope; ++n) into += static_cast<double>(up[n * rank + r]) * static_cast<double>(q(t, n));
    absorbed += into * static_cast<double>(latent(0, r));
  }
  fmt::print("1. One score, without its turned part, head 0, query {} and key 0:\n", t);
  fmt::print("    expand the key:      q . (W_uk c)   = {:.6f}    {} numbers kept of the key\n", expanded, nope);
  fmt::print("    absorb into query:  (W_uk^T q) . c  = {:.6f}    the latent's {} are kept, for all {} heads\n\n", absorbed, rank,
             c.heads);

  NIHAO_TRY(const Ran in, run(made, MlaMode::absorbed, ids));
  NIHAO_TRY(const Ran merged, run(made, MlaMode::merged, ids));
  fmt::print("2. The whole model, {} tokens, three ways:\n    {:<10}{:>24}{:>20}\n", ids.size(), "", "bytes kept of a token",
             "first logits");
  double apart = 0;
  for (const auto& [name, ran] : {std::pair("naive", &naive), std::pair("absorbed", &in), std::pair("merged", &merged)}) {
    fmt::print("    {:<10}{:>24}    {:9.4f} {:9.4f} {:9.4f}\n", name, ran->cache_bytes, ran->logits[0], ran->logits[1],
               ran->logits[2]);
    for (std::size_t i = 0; i < ran->logits.size(); ++i)
      apart = std::max(apart, std::abs(static_cast<double>(ran->logits[i] - naive.logits[i])));
  }
  fmt::print("    no logit differs by more than 1e-5: {}\n\n", apart < 1e-5 ? "true" : "false");

  nihao::Config v3 = nihao::find_preset("deepseek-v3")->config;
  fmt::print("3. DeepSeek-V3, bytes of a token in bf16, and GiB for 131072 of them:\n");
  for (const auto& [name, mode] : {std::pair("naive", MlaMode::naive), std::pair("absorbed, merged", MlaMode::absorbed)}) {
    v3.mla.mode = mode;
    const std::uint64_t bytes = nihao::cache_bytes_per_token(v3, nihao::KvType::bf16);
    fmt::print("    {:<18}{:>10}{:>10.1f}\n", name, bytes, static_cast<double>(bytes) * 131072 / (1u << 30));
  }
  if (!(apart < 1e-5)) return nihao::Error{nihao::ErrorCode::mismatch, "the three ways differ"};
  return {};
}

}  // namespace

int main() { return station::run_alone(tell); }
