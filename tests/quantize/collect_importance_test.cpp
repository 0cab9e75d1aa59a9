// What the collector sums for experts, for the heads' own matrices of latent attention, and where no norm stands before a layer:
// against the golden checkpoints' float64 results.
#include "nihao/quantize/collect_importance.hpp"
#include "models/golden_models.hpp"
#include "nihao/models/load.hpp"
#include "nihao/quantize/hf_tensors.hpp"
#include "nihao/quantize/quantize_model.hpp"

using namespace nihao;
using namespace nihao::test;

namespace {

using Matrix = std::vector<std::vector<double>>;

/// A golden checkpoint as a GGUF file, run over one of its prompts in the exact mode.
struct Collected {
  Safetensors golden;
  std::string prompt;
  AnyModel model;
  ImportanceMatrix matrix;

  [[nodiscard]] Matrix seen(const std::string& name) const {
    const TensorInfo* const info = golden.tensors().find(concat(prompt, ".", name));
    REQUIRE_MESSAGE(info != nullptr, name);
    return rows_of(require(golden.values<float>(info->name)), static_cast<std::size_t>(info->cols()));
  }
  [[nodiscard]] Matrix weight(const std::string& name) const {
    const TensorInfo* const info = model.tensors().find(concat(name, ".weight"));
    REQUIRE_MESSAGE(info != nullptr, name);
    std::vector<float> values(static_cast<std::size_t>(info->elements()));
    dequantize_row(info->format, info->bytes, values);
    return rows_of(values, static_cast<std::size_t>(info->cols()));
  }
  /// [layer]'s input, plus what its attention adds.
  [[nodiscard]] Matrix after_attention(std::size_t layer, const Matrix& added) const {
    Matrix x = seen(layer == 0 ? "hidden.embed" : concat("hidden.layer", layer - 1));
    for (std::size_t r = 0; r < x.size(); ++r)
      for (std::size_t i = 0; i < x[r].size(); ++i) x[r][i] += added[r][i];
    return x;
  }
  [[nodiscard]] Matrix normed_by(const std::string& norm, Matrix x) const {
    const Matrix w = weight(norm);
    for (auto& row : x) {
      double squares = 0;
      for (const double v : row) squares += v * v;
      const double factor =
          1 / std::sqrt(squares / static_cast<double>(row.size()) + static_cast<double>(model.config().norm_eps));
      for (std::size_t i = 0; i < row.size(); ++i) row[i] *= factor * w[0][i];
    }
    return x;
  }
  void has(const std::string& tensor, const std::vector<double>& sums, const std::vector<float>& counts) const {
    CAPTURE(tensor);
    const ImportanceEntry* const entry = matrix.find(concat(tensor, ".weight"));
    REQUIRE(entry != nullptr);
    CHECK(entry->rows == counts);
    REQUIRE(entry->sums.size() == sums.size());
    for (std::size_t i = 0; i < sums.size(); ++i)
      CHECK(static_cast<double>(entry->sums[i]) == doctest::Approx(sums[i]).epsilon(1e-4));
    const TensorInfo* const info = model.tensors().find(entry->tensor);
    const auto matrices = info->rank > 2 ? static_cast<std::size_t>(info->shape[0]) : 1;
    CHECK(matrix.weights(entry->tensor, matrices, static_cast<std::size_t>(info->cols())).has_value());
  }

 private:
  static Matrix rows_of(std::span<const float> values, std::size_t cols) {
    Matrix rows(values.size() / cols);
    for (std::size_t r = 0; r < rows.size(); ++r)
      rows[r].assign(values.begin() + static_cast<std::ptrdiff_t>(r * cols),
                     values.begin() + static_cast<std::ptrdiff_t>((r + 1) * cols));
    return rows;
  }
};

Collected collected_over(const std::string& name, const std::string& prompt, MlaMode mla = MlaMode::absorbed) {
  const std::filesystem::path from = *data("golden/models") / name;
  const Safetensors file = require(Safetensors::open(from.string()));
  Json config = require(parse_json(read_text(from / "config.json")));
  if (name == "llama4_text") {  // as its GGUF files are: a prompt of 7 does not see chunks of 8
    config["attention_chunk_size"] = config["floor_scale"] = 8192;
    config.erase("no_rope_layers");
  }
  const TempFolder folder;
  const Cpu cpu = require(Cpu::create({.threads = 2}));
  require(quantize_model(require(tensors_of_folder(file, config, "")), *recipe_from_name("F32"), folder.path("m"), cpu));
  Safetensors golden = require(Safetensors::open((from / "golden.safetensors").string()));
  AnyModel model = require(load(folder.path("m"), {.cpu = {.threads = 2, .exact = true}, .mla = mla}));
  const auto ids = token_ids(golden, prompt + ".input_ids");
  const auto context = require(model.context({.positions = ids.size(), .chunk = 5, .kv = KvType::f32}));
  ImportanceMatrix matrix = require(collect_importance(*context, model.config(), model.tensors(), ids, {.window = ids.size()}));
  return {std::move(golden), prompt, std::move(model), std::move(matrix)};
}

void add_squares(std::vector<double>& sums, std::size_t matrix, const std::vector<double>& x) {
  for (std::size_t i = 0; i < x.size(); ++i) sums[matrix * x.size() + i] += x[i] * x[i];
}
double product(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Experts of `layer`, each with the sums of its own tokens; `factor(token, expert)`: what a token is multiplied by before, 0 if
/// it does not go there.
template <class F>
void has_experts(const Collected& c, std::size_t layer, F&& factor) {
  const std::string blk = concat("blk.", layer, ".");
  const Matrix x = c.normed_by(blk + "ffn_norm", c.after_attention(layer, c.seen(concat("layer", layer, ".attn_out"))));
  const Matrix gate = c.weight(blk + "ffn_gate_exps"), up = c.weight(blk + "ffn_up_exps");
  const std::size_t experts = c.model.config().router.experts, d = x[0].size(), ff = gate.size() / experts;
  std::vector<double> in(experts * d), gated(experts * ff);
  std::vector<float> counts(experts);
  for (std::size_t t = 0; t < x.size(); ++t)
    for (std::size_t e = 0; e < experts; ++e) {
      const double by = factor(t, e);
      if (by == 0) continue;
      std::vector<double> h = x[t], act(ff);
      for (double& v : h) v *= by;
      for (std::size_t i = 0; i < ff; ++i) {
        const double g = product(gate[e * ff + i], h);
        act[i] = g / (1 + std::exp(-g)) * product(up[e * ff + i], h);
      }
      add_squares(in, e, h), add_squares(gated, e, act);
      ++counts[e];
    }
  c.has(blk + "ffn_gate_exps", in, counts);
  c.has(blk + "ffn_up_exps", in, counts);
  c.has(blk + "ffn_down_exps", gated, counts);
}

}  // namespace

TEST_CASE("every expert's matrices have the sums of the tokens that were sent to it, the way back too") {
  if (!data("golden/models")) NIHAO_SKIP("golden/models");
  for (const auto& [name, layer] : {std::pair<std::string, std::size_t>{"mixtral", 0}, {"deepseek_v3", 1}}) {
    const Collected c = collected_over(name, "short");
    const auto chosen = *c.golden.values<std::int32_t>(concat("short.layer", layer, ".router.experts"));
    const std::size_t each = c.model.config().router.chosen;
    has_experts(c, layer, [&](std::size_t t, std::size_t e) {
      const auto first = chosen.begin() + static_cast<std::ptrdiff_t>(t * each), last = first + static_cast<std::ptrdiff_t>(each);
      return std::find(first, last, static_cast<std::int32_t>(e)) != last ? 1.0 : 0.0;
    });
  }
}

TEST_CASE("experts that weigh their inputs have the sums of weighed ones") {
  if (!data("golden/models")) NIHAO_SKIP("golden/models");
  const Collected c = collected_over("llama4_text", "short");
  const Matrix scores = c.seen("layer1.router.scores_all");
  has_experts(c, 1, [&](std::size_t t, std::size_t e) { return scores[t][e]; });
}

TEST_CASE("the heads' own matrices of latent attention have sums for each head, and one count for all") {
  if (!data("golden/models")) NIHAO_SKIP("golden/models");
  const Collected c = collected_over("deepseek_v3", "long");
  const Matrix q = c.seen("layer0.q_b_proj"), latent = c.seen("layer0.kv_a_layernorm"), probs = c.seen("layer0.attn_probs");
  const std::size_t tokens = q.size(), heads = c.model.config().heads, nope = c.model.config().mla.nope, rank = latent[0].size(),
                    head = q[0].size() / heads;
  std::vector<double> queries(heads * nope), mixed(heads * rank);
  for (std::size_t t = 0; t < tokens; ++t)
    for (std::size_t h = 0; h < heads; ++h) {
      const auto from = q[t].begin() + static_cast<std::ptrdiff_t>(h * head);
      add_squares(queries, h, {from, from + static_cast<std::ptrdiff_t>(nope)});
      std::vector<double> sum(rank);
      for (std::size_t p = 0; p <= t; ++p)
        for (std::size_t i = 0; i < rank; ++i) sum[i] += probs[h * tokens + t][p] * latent[p][i];
      add_squares(mixed, h, sum);
    }
  const std::vector<float> counts{static_cast<float>(tokens)};
  c.has("blk.0.attn_k_b", queries, counts);
  c.has("blk.0.attn_v_b", mixed, counts);

  // Each way of computing multiplies with other matrices.
  for (const auto& [mla, k, v] : {std::tuple{MlaMode::naive, true, false}, {MlaMode::merged, false, true}}) {
    const Collected other = collected_over("deepseek_v3", "short", mla);
    CHECK((other.matrix.find("blk.0.attn_k_b.weight") != nullptr) == k);
    CHECK((other.matrix.find("blk.0.attn_v_b.weight") != nullptr) == v);
  }
}

TEST_CASE("where norms come after the layers, matrices have the sums of the residual stream") {
  if (!data("golden/models")) NIHAO_SKIP("golden/models");
  const Collected c = collected_over("olmo2", "long");
  for (std::size_t layer = 0; layer < 2; ++layer) {
    const std::string blk = concat("blk.", layer, ".");
    const Matrix in = c.seen(layer == 0 ? "hidden.embed" : "hidden.layer0");
    const Matrix between =
        c.after_attention(layer, c.normed_by(blk + "post_attention_norm", c.seen(concat("layer", layer, ".attn_out"))));
    std::vector<double> attention(in[0].size()), ffn(in[0].size());
    for (const auto& x : in) add_squares(attention, 0, x);
    for (const auto& x : between) add_squares(ffn, 0, x);
    const std::vector<float> counts{static_cast<float>(in.size())};
    for (const char* const name : {"attn_q", "attn_k", "attn_v"}) c.has(blk + name, attention, counts);
    for (const char* const name : {"ffn_gate", "ffn_up"}) c.has(blk + name, ffn, counts);
  }
}
