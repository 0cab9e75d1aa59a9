// Prints a hash of what the kernels compute, per instruction set. tests/bits/run.sh compiles it with different compilers and
// flags: all must print the same.
#include "nihao/kernels/cpu/ops.hpp"

#include "../kernels/random_weights.hpp"

#include <cstdio>
#include <numeric>

using namespace nihao;

namespace {

std::uint64_t hash(std::uint64_t h, std::span<const float> values) {
  for (const float v : values) h = (h ^ std::bit_cast<std::uint32_t>(v)) * 0x100000001b3u;
  return h;
}

// Of every format: few tokens and so many that tiles are expanded, with activations in blocks of 32 and, as for a head, of 16.
std::uint64_t matmuls(const Cpu& cpu, std::uint64_t h) {
  constexpr std::size_t n = 40, k = 512, tokens = few_rows + 6;
  const auto x = test::random_floats(tokens * k, 1);
  for (const FormatId format : all_formats) {
    const auto stored = test::random_weights(format, n, k, 2);
    Arena arena;
    const CpuWeight weight = *pack_weight(cpu, format, n, k, stored, arena);
    const CpuScratch scratch = *CpuScratch::create(cpu, {tokens, k, 64, 4, 16});
    std::vector<float> y(tokens * n);
    for (const std::size_t count : {std::size_t{9}, tokens})
      for (const InputPrecision precision : {InputPrecision::usual, InputPrecision::fine}) {
        const Ops<Cpu>::Job job{&weight, MatrixView<float>(y.data(), count, n)};
        Ops<Cpu>::linear<Quant<Any>>(cpu, scratch, MatrixView<const float>(x.data(), count, k), std::span(&job, 1), precision);
        h = hash(h, std::span(y).first(count * n));
      }
  }
  return h;
}

std::uint64_t attention(const Cpu& cpu, std::uint64_t h) {
  constexpr std::size_t d = 48, kv_heads = 2, heads = 6, tokens = 600;
  for (const KvType type : {KvType::f32, KvType::f16, KvType::bf16, KvType::q8_0}) {
    const KvLayout layout{type, kv_heads, d};
    std::vector<std::byte> cache((tokens / kv_block + 1) * layout.block_bytes());
    std::vector<std::int32_t> blocks(tokens / kv_block + 1), position(tokens);
    std::iota(blocks.begin(), blocks.end(), 0);
    std::iota(position.begin(), position.end(), 0);
    const auto q = test::random_floats(tokens * heads * d, 3), k = test::random_floats(tokens * kv_heads * d, 4),
               v = test::random_floats(tokens * kv_heads * d, 5);
    std::vector<float> out(tokens * heads * d);
    const SequenceRows rows{0, tokens, blocks};
    const BatchView batch{position, std::span(&rows, 1)};
    const CpuScratch scratch = *CpuScratch::create(cpu, {tokens, heads * d, d, heads, tokens});
    Ops<Cpu>::append(cpu, layout, cache.data(), batch, {k.data(), tokens, kv_heads * d}, {v.data(), tokens, kv_heads * d});
    Ops<Cpu>::attention(cpu, scratch, {heads, kv_heads, d, 0.144f, 300}, layout, cache.data(), batch,
                        {q.data(), tokens, heads * d}, {out.data(), tokens, heads * d});
    h = hash(h, out);
  }
  return h;
}

std::uint64_t elementwise(Isa isa, std::uint64_t h) {
  const auto x = test::random_floats(1003, 6), w = test::random_floats(1003, 7);
  std::vector<float> y(1003);
  rms_norm(isa, x, w, 1e-5f, y);
  h = hash(h, y);
  gated<SiLU>(isa, x, w, y);
  h = hash(h, y);
  gated<GeluTanh>(isa, x, w, y);
  h = hash(h, y);
  const auto rope_of = rope_frequencies({.base = 10000.0}, 500);
  std::vector<float> cos(250), sin(250);
  rope_angles(rope_of, 1234, cos, sin);
  for (const RopeStyle style : {RopeStyle::halves, RopeStyle::neighbours}) {
    rope(isa, std::span(y).first(500), cos, sin, style);
    h = hash(h, y);
  }
  return h;
}

}  // namespace

int main() {
  for (const Isa isa : all_isas) {
    const auto cpu = Cpu::create({.threads = 2, .isa = isa});
    if (!cpu) continue;  // this machine lacks it
    std::printf("%016llx\n",
                static_cast<unsigned long long>(elementwise(isa, attention(*cpu, matmuls(*cpu, 0xcbf29ce484222325u)))));
  }
}
