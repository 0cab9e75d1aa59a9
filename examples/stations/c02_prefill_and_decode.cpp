// C02, prefill and decode: a prompt's tokens go through the model together, the answer's one by one. The arithmetic is the same,
// to the bit; what differs is how many operations a byte of weights is read for. Read: models/model_context.hpp (prefill, step),
// device/observer.hpp (Work), plan/roofline.hpp.
#include "station.hpp"

#include <nihao/plan/roofline.hpp>

#include <algorithm>

namespace {

// The machine of the text. `nihao bench` measures a real one.
constexpr double peak_bytes = 25e9, peak_ops = 400e9;

// What a step of `rows` tokens after `depth` others reads and computes: the stations' own account. The cache may hold anything.
nihao::Expected<nihao::Work> work_of(const station::Model& m, std::size_t depth, std::size_t rows, nihao::KvType kv) {
  NIHAO_TRY(const auto context, m.model.context({.positions = depth + rows, .chunk = rows, .kv = kv}));
  if (depth > 0) { NIHAO_CHECK(context->cache().extend(0, depth)); }
  std::vector<nihao::TokenId> ids(rows);
  for (std::size_t i = 0; i < rows; ++i) ids[i] = m.ids[i % m.ids.size()];
  nihao::WorkCounter counter;
  const nihao::ObserverRef observer(counter);
  const nihao::SequenceTokens step{0, ids};
  if (auto done = context->step(std::span(&step, 1), &observer); !done) return std::move(done).error();
  return counter.total;
}

void line(const std::string& what, std::size_t rows, const nihao::Work& work) {
  const auto bytes = static_cast<double>(work.bytes), ops = static_cast<double>(work.flops), n = static_cast<double>(rows);
  const nihao::Roofline roof{work, 1, peak_bytes, peak_ops};
  fmt::print("    {:<22}{:>9.1f}{:>9.1f}{:>13.3f}{:>12.1f}{:>10.1f}  {:<8}{:>10.0f}\n", what, bytes / 1e6, ops / 1e6,
             bytes / n / 1e6, ops / n / 1e6, roof.arithmetic_intensity(), to_string(roof.bound()),
             n / std::max(bytes / peak_bytes, ops / peak_ops));
}

// The logits after `ids`, read in steps of `chunk`.
nihao::Expected<std::vector<float>> read_in(const station::Model& m, std::span<const nihao::TokenId> ids, std::size_t chunk) {
  NIHAO_TRY(const auto context, m.model.context({.positions = ids.size(), .chunk = chunk}));
  NIHAO_TRY(const auto logits, context->prefill(0, ids));
  return std::vector<float>(logits.row(0).begin(), logits.row(0).end());
}

nihao::Expected<void> tell(const station::Model& m) {
  const double ridge = peak_ops / peak_bytes;
  fmt::print(
      "C02 prefill and decode: {} layers; the weights of {} matrices are read once a step, however many tokens it has\n\n"
      "The machine of this page reads {:.0f} GB/s and computes {:.0f} Gop/s (a multiply-add is two operations): its ridge is at "
      "{:.0f}\n"
      "operations a byte. Work of fewer waits for memory, work of more for arithmetic.\n\n",
      m.config().layers.size(), m.config().layers.size() * 7 + 1, peak_bytes / 1e9, peak_ops / 1e9, ridge);
  const char* header = "    {:<22}{:>9}{:>9}{:>13}{:>12}{:>10}  {:<8}{:>10}\n";
  fmt::print("1. Prefill: a step that reads n tokens of a prompt, and makes the logits of the last.\n");
  fmt::print(fmt::runtime(header), "", "MB read", "Mop", "MB a token", "Mop a token", "ops/byte", "bound", "tokens/s");
  for (const std::size_t rows : std::initializer_list<std::size_t>{1, 8, 64, 512}) {
    NIHAO_TRY(const nihao::Work work, work_of(m, 0, rows, nihao::KvType::f16));
    line(fmt::format("n = {}", rows), rows, work);
  }
  fmt::print(
      "   tokens/s: no more than that, on this machine. A token's bytes fall with n. Its operations first fall a little\n"
      "   (logits are made once a step), then rise (in attention a later token sees more before it).\n\n"
      "2. Decode: a step of one token, with d others in the cache. It shares the weights with none, and reads keys and\n"
      "   values as well.\n");
  fmt::print(fmt::runtime(header), "", "MB read", "Mop", "MB a token", "Mop a token", "ops/byte", "bound", "tokens/s");
  for (const std::size_t depth : std::initializer_list<std::size_t>{0, 512, 2048, 8191})
    for (const nihao::KvType kv : {nihao::KvType::f16, nihao::KvType::q8_0}) {
      NIHAO_TRY(const nihao::Work work, work_of(m, depth, 1, kv));
      line(fmt::format("d = {:<5} cache {}", depth, to_string(kv)), 1, work);
    }

  std::vector<nihao::TokenId> ids;
  while (ids.size() < 64) ids.insert(ids.end(), m.ids.begin(), m.ids.end());
  fmt::print("\n3. The same arithmetic: {} tokens (the prompt, again and again), read in steps of\n", ids.size());
  NIHAO_TRY(const auto together, read_in(m, ids, ids.size()));
  bool all_equal = true;
  for (const std::size_t chunk : {ids.size(), std::size_t{16}, std::size_t{7}, std::size_t{1}}) {
    NIHAO_TRY(const auto logits, read_in(m, ids, chunk));
    const bool equal = logits == together;
    all_equal = all_equal && equal;
    fmt::print("    {:>3}  ({:>2} steps)  logits {}  {}\n", chunk, (ids.size() + chunk - 1) / chunk, station::head(logits),
               equal ? "the same to the bit" : "OTHERS");
  }
  if (!all_equal) return nihao::Error{nihao::ErrorCode::mismatch, "how a prompt is cut changed its logits"};
  return {};
}

}  // namespace

int main(int argc, char** argv) { return station::run(argc, argv, tell, false); }
