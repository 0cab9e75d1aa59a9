// C10, grouped-query attention: several query heads read one key/value head. Queries are made anew for every token and forgotten;
// keys and values are kept, so their number is what a long context costs.
// Read: layers/attention.hpp (GQA), kernels/kv_view.hpp, cache/kv_cache.hpp.
#include "station.hpp"

#include <nihao/kernels/attention.hpp>

#include <algorithm>
#include <cmath>

namespace {

nihao::Expected<void> tell(const station::Model& m) {
  const nihao::Config& c = m.config();
  const std::size_t tokens = m.ids.size(), group = c.heads / c.kv_heads;
  fmt::print("C10 grouped queries: {} query heads, {} key/value heads of {}: {} query heads share one\n\n1. Who reads whom:\n",
             c.heads, c.kv_heads, c.head_dim, group);
  for (std::size_t k = 0; k < c.kv_heads; ++k)
    fmt::print("    query heads {} to {} read key/value head {}\n", k * group, (k + 1) * group - 1, k);

  // One token's keys and values in one layer are 2 * kv_heads * head_dim numbers.
  const std::size_t layers = c.layers.size(), context = 2048;
  const auto bytes = [&](std::size_t heads, nihao::KvType type) {  // of one token, all layers
    const nihao::KvLayout layout{type, static_cast<std::uint32_t>(heads), c.head_dim};
    return static_cast<double>(layout.block_bytes() * layers) / nihao::kv_block;
  };
  fmt::print(
      "\n2. What is kept of a token: 2 (key, value) * {} layers * kv heads * {} values. In bytes, and MiB for {} tokens:\n",
      layers, c.head_dim, context);
  fmt::print("    {:<28}{:>10}{:>10}{:>10}{:>16}\n", "", "f32", "f16", "q8_0", "f16, context");
  const auto line = [&](std::string_view what, std::size_t heads) {
    fmt::print("    {:<28}{:10.0f}{:10.0f}{:10.0f}{:12.2f} MiB\n", what, bytes(heads, nihao::KvType::f32),
               bytes(heads, nihao::KvType::f16), bytes(heads, nihao::KvType::q8_0),
               bytes(heads, nihao::KvType::f16) * static_cast<double>(context) / (1 << 20));
  };
  line(fmt::format("MHA, {} kv heads", c.heads), c.heads);
  line(fmt::format("GQA, {} kv heads (this model)", c.kv_heads), c.kv_heads);
  line("MQA, 1 kv head", 1);

  // Decode: the next token's attention reads all of it, and does the same operations however many query heads share what is read.
  const auto operations = static_cast<double>(layers * context * 4 * c.heads * c.head_dim);
  fmt::print(
      "\n3. What the next token's attention reads, {} tokens being kept, and does: 4 * {} layers * {} tokens * {} query heads * "
      "{}\n"
      "   = {:.1f} Mop, however the heads are grouped. Operations a byte read:\n",
      context, layers, context, c.heads, c.head_dim, operations / 1e6);
  fmt::print("    {:<28}{:>12}{:>10}{:>12}{:>10}\n", "", "f16, MB", "ops/byte", "q8_0, MB", "ops/byte");
  const auto reads = [&](std::string_view what, std::size_t heads) {
    const double f16 = bytes(heads, nihao::KvType::f16) * context, q8_0 = bytes(heads, nihao::KvType::q8_0) * context;
    fmt::print("    {:<28}{:12.1f}{:10.2f}{:12.1f}{:10.2f}\n", what, f16 / 1e6, operations / f16, q8_0 / 1e6, operations / q8_0);
  };
  reads("MHA", c.heads);
  reads("GQA (this model)", c.kv_heads);
  reads("MQA", 1);
  fmt::print(
      "   As f16, a byte is read for as many operations as query heads share it. A machine can do ten or more for each byte "
      "that\n"
      "   it reads: sharing heads makes a long context cheaper to read, not to compute.\n");

  station::Kept kept;
  NIHAO_TRY(const auto room, m.model.context({.positions = context, .kv = nihao::KvType::f16}));
  const nihao::SequenceTokens all{0, m.ids};
  const nihao::ObserverRef observer(kept);
  if (auto step = room->step(std::span(&all, 1), &observer); !step) return std::move(step).error();
  const std::size_t blocks = (tokens + nihao::kv_block - 1) / nihao::kv_block;
  fmt::print(
      "\n4. The cache of this program: {} bytes reserved for {} positions ({:.2f} MiB). What the layers keep of\n"
      "   the same positions lies together, so the system gives memory, 2 MiB at a time, only to what is written:\n"
      "   the {} tokens of \"{}\" lie in {} block(s) of {} positions, {} bytes in each of {} layers.\n",
      room->cache().bytes(), context, static_cast<double>(room->cache().bytes()) / (1 << 20), tokens, station::prompt, blocks,
      nihao::kv_block, room->cache().used_blocks(0) * room->cache().layout(0).block_bytes(), layers);
  fmt::print(
      "   Layout of a block: for each kv head the keys [{} values][{} positions], then the values [{} positions][{} values]:\n"
      "   a SIMD lane of a score is a position, a lane of the output is a value.\n",
      c.head_dim, nihao::kv_block, nihao::kv_block, c.head_dim);

  const std::size_t t = tokens - 1, d = c.head_dim;
  const auto q = kept.at("q_after_rope", 0), k = kept.at("k_after_rope", 0);
  const nihao::KvView view{room->cache().layout(0), room->cache().data(0), room->cache().blocks(0)};
  fmt::print(
      "\n5. One set of keys, {} readers: the shares that the heads of group 0 give to the tokens (layer 0, t = {}), in "
      "percent:\n    {:<8}",
      group, t, "");
  for (const nihao::TokenId id : m.ids) fmt::print("{:>10}", m.shown(id));
  double worst = 0;
  for (std::size_t head = 0; head < group; ++head) {
    std::vector<double> share(tokens);
    std::vector<float> key(d);
    for (std::size_t p = 0; p < tokens; ++p) {
      nihao::read_key(view, 0, static_cast<std::int64_t>(p), key);  // as the cache has it: rounded to f16
      double s = 0;
      for (std::size_t i = 0; i < d; ++i) {
        s += static_cast<double>(q(t, head * d + i)) * static_cast<double>(key[i]);
        worst = std::max(worst, std::abs(static_cast<double>(key[i] - k(p, i))));
      }
      share[p] = s * static_cast<double>(c.attention_scale);
    }
    // Less the largest score, which changes no share: exp of a score as it is may be more than any number.
    const double largest = *std::max_element(share.begin(), share.end());
    double total = 0;
    for (double& s : share) total += s = std::exp(s - largest);
    fmt::print("\n    head {:<3}", head);
    for (const double s : share) fmt::print("{:10.1f}", 100 * s / total);
  }
  fmt::print("\n\n   The keys were read from the cache; storing them as f16 moved no value by more than {:.4f}.\n", worst);
  if (room->cache().bytes() != static_cast<std::size_t>(bytes(c.kv_heads, nihao::KvType::f16)) * context)
    return nihao::Error{nihao::ErrorCode::mismatch, "the cache's size is not what the formula says"};
  return {};
}

}  // namespace

int main(int argc, char** argv) { return station::run(argc, argv, tell); }
