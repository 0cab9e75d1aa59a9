// Multi-head latent attention (MLA): DeepSeek-AI 2024, arXiv:2405.04434, section 2.1.
//
// What a token leaves in the cache is not a key and a value for each head but the latent c (kv_rank numbers) they are all made
// from, k_h = W_uk,h c and v_h = W_uv,h c, and one turned key k^R (rope numbers) that all heads share. Three ways to compute one
// and the same thing:
//
//   naive     makes k_h and v_h of every token when it comes, and keeps those: heads * (nope + rope + v) numbers a token.
//   absorbed  keeps c and k^R. q_h . k_h = q_h . (W_uk,h c) = (W_uk,h^T q_h) . c: the query goes into the latent's space, where
//             one key serves all heads; and sum p v_h = W_uv,h (sum p c): what comes back is a latent, made a value once a query.
//   merged    is absorbed with W_uk,h^T W_q,h multiplied at load: one matmul less a token, more numbers to read.
//
// The turned part cannot be absorbed: between q and W_uk would stand the rotation by the distance of the two positions, which is
// another matrix for every pair. So it travels beside the latent.
#pragma once

#include "attention.hpp"

namespace nihao {

/// Any: the config says which mode.
enum class MlaChoice : std::uint8_t { any, naive, absorbed, merged };
template <MlaChoice Choice = MlaChoice::any>
struct MLA {};

template <MlaChoice Choice>
struct Attention<MLA<Choice>> {
  template <class D>
  struct Weights {
    Linear<D> q_a;                 ///< [q_rank, d_model], where queries have a latent
    std::vector<float> q_a_norm;   ///< [q_rank]
    Linear<D> q;                   ///< [heads * (nope + rope), q_rank or d_model]; merged: the nope part is [heads * kv_rank]
    Linear<D> q_rope;              ///< merged: [heads * rope, q_rank or d_model]
    Linear<D> kv_a;                ///< [kv_rank + rope, d_model]
    std::vector<float> kv_a_norm;  ///< [kv_rank]
    Linear<D> kv_b;                ///< naive: [heads * (nope + v), kv_rank]
    std::vector<typename Ops<D>::Weight> k_up, v_up;  ///< of each head: absorbed: [kv_rank, nope]; absorbed, merged: [v, kv_rank]
    Linear<D> o;
  };

  [[nodiscard]] static MlaMode mode(const Config& c) noexcept {
    if constexpr (Choice == MlaChoice::any) return c.mla.mode;
    else return static_cast<MlaMode>(static_cast<std::uint8_t>(Choice) - 1);
  }

  [[nodiscard]] static CacheSpec cache_spec(const Config& c) noexcept {
    if (mode(c) == MlaMode::naive) return {c.heads, c.mla.nope + c.mla.rope, c.value_width()};
    return {1, c.mla.kv_rank + c.mla.rope, c.mla.kv_rank, true};
  }

  [[nodiscard]] static std::size_t area(const Config& c) noexcept {
    const MlaConfig& m = c.mla;
    const std::size_t h = c.heads, v = c.value_width(), latent = m.kv_rank + m.rope;
    const std::size_t all = Area::floats({m.q_rank, h * (m.nope + m.rope), latent, h * v, h * m.rope});
    if (mode(c) == MlaMode::naive) return all + Area::floats({h * (m.nope + v), h * (m.nope + m.rope), h * v});
    return all + Area::floats({h * m.kv_rank, h * latent, h * m.kv_rank});
  }
  [[nodiscard]] static std::size_t widest(const Config& c) noexcept {
    const std::size_t h = c.heads;
    return std::max({h * c.value_width(), std::size_t{c.mla.q_rank}, std::size_t{c.mla.kv_rank}});
  }

  template <class D, class L>
  [[nodiscard]] static Expected<Weights<D>> load(L& loader, const Config& c, std::size_t i) {
    const MlaConfig& m = c.mla;
    const std::size_t d = c.d_model, h = c.heads, v = c.value_width(), head = m.nope + m.rope, q_in = m.q_rank > 0 ? m.q_rank : d;
    Weights<D> w;
    if (m.q_rank > 0) {
      NIHAO_TRY(w.q_a, loader.linear(Role::q_a, i, m.q_rank, d, c.qkv_bias));
      NIHAO_TRY(w.q_a_norm, loader.floats(Role::q_a_norm, i, m.q_rank));
    }
    const Role q = m.q_rank > 0 ? Role::q_b : Role::q;
    NIHAO_TRY(w.kv_a, loader.linear(Role::kv_a, i, m.kv_rank + m.rope, d, c.qkv_bias));
    NIHAO_TRY(w.kv_a_norm, loader.floats(Role::kv_a_norm, i, m.kv_rank));
    NIHAO_TRY(w.o, loader.linear(Role::o, i, d, h * v, c.o_bias));
    if (mode(c) == MlaMode::naive && loader.has(Role::kv_b, i)) {
      NIHAO_TRY(w.kv_b, loader.linear(Role::kv_b, i, h * (m.nope + v), m.kv_rank, false));
      NIHAO_TRY(w.q, loader.linear(q, i, h * head, q_in, false));
      return w;
    }
    NIHAO_TRY(const Up up, (up_projections(loader, c, i)));
    const Role k_from = loader.has(Role::kv_b, i) ? Role::kv_b : Role::k_b, v_from = k_from == Role::kv_b ? k_from : Role::v_b;
    if (mode(c) == MlaMode::naive) {
      std::vector<float> both;
      for (std::size_t x = 0; x < h; ++x) {
        const std::vector<float> k = transposed(up.k.data() + x * m.kv_rank * m.nope, m.kv_rank, m.nope);
        both.insert(both.end(), k.begin(), k.end());
        const auto from = up.v.begin() + static_cast<std::ptrdiff_t>(x * v * m.kv_rank);
        both.insert(both.end(), from, from + static_cast<std::ptrdiff_t>(v * m.kv_rank));
      }
      NIHAO_TRY(w.kv_b.weight, loader.moved(Role::k_b, i, both, h * (m.nope + v), m.kv_rank));
      NIHAO_TRY(w.q, loader.linear(q, i, h * head, q_in, false));
      return w;
    }
    for (std::size_t x = 0; x < h; ++x) {
      NIHAO_TRY(w.v_up.emplace_back(),
                loader.moved(v_from, i, std::span(up.v).subspan(x * v * m.kv_rank, v * m.kv_rank), v, m.kv_rank));
      if (mode(c) == MlaMode::merged) continue;
      NIHAO_TRY(w.k_up.emplace_back(),
                loader.moved(k_from, i, std::span(up.k).subspan(x * m.kv_rank * m.nope, m.kv_rank * m.nope), m.kv_rank, m.nope));
    }
    if (mode(c) == MlaMode::absorbed) {
      NIHAO_TRY(w.q, loader.linear(q, i, h * head, q_in, false));
      return w;
    }
    NIHAO_TRY(const std::vector<float> wq, loader.tensor_floats(q, i, {h * head, q_in, 0}));
    std::vector<float> merged(h * m.kv_rank * q_in), rope(h * m.rope * q_in);
    std::vector<double> row(q_in);
    for (std::size_t x = 0; x < h; ++x) {
      const float* const from = wq.data() + x * head * q_in;  // [nope + rope, q_in]
      for (std::size_t r = 0; r < m.kv_rank; ++r) {
        std::fill(row.begin(), row.end(), 0.0);
        for (std::size_t n = 0; n < m.nope; ++n) {
          const auto factor = static_cast<double>(up.k[(x * m.kv_rank + r) * m.nope + n]);
          for (std::size_t j = 0; j < q_in; ++j) row[j] += factor * static_cast<double>(from[n * q_in + j]);
        }
        for (std::size_t j = 0; j < q_in; ++j) merged[(x * m.kv_rank + r) * q_in + j] = static_cast<float>(row[j]);
      }
      std::copy_n(from + m.nope * q_in, m.rope * q_in, rope.data() + x * m.rope * q_in);
    }
    NIHAO_TRY(w.q.weight, loader.computed(q, i, merged, h * m.kv_rank, q_in));
    NIHAO_TRY(w.q_rope.weight, loader.moved(q, i, rope, h * m.rope, q_in));
    return w;
  }

  template <Sizes S, class Q, class D, Observer O>
  static void forward(const Projector<D>& project, const Weights<D>& w, const Config& config, const AttentionStep& step,
                      const Activations& a, MatrixView<const float> h, MatrixView<float> out, bool accumulate,
                      O& observer) noexcept {
    const D& device = project.device;
    const typename Ops<D>::Scratch& scratch = project.scratch;
    using Made = Quant<F32, F16, BF16>;  // of what the loader makes
    const MlaConfig& m = config.mla;
    const MlaMode how = mode(config);
    const std::size_t rows = h.rows(), heads = config.heads, v_dim = config.value_width(), latent_width = m.kv_rank + m.rope;
    const int layer = static_cast<int>(step.layer);
    const LayerConfig& here = config.layers[step.layer];
    const MatrixView<const float> cos = a.cos(rows, here.rope), sin = a.sin(rows, here.rope);
    Area area = a.area(rows);
    const MatrixView<float> q_a = area.take(m.q_rank), q = area.take(heads * (m.nope + m.rope)), latent = area.take(latent_width),
                            concat = area.take(heads * v_dim);
    [[maybe_unused]] const MatrixView<float> turning = area.take(heads * m.rope);  // for who watches

    // The latents.
    if (m.q_rank > 0) {
      project.template operator()<Q>(h, std::array<Projection<D>, 2>{{{w.q_a, q_a}, {w.kv_a, latent}}});
      if constexpr (O::active) observer.see({"q_a_proj", layer, q_a, w.q_a.work(rows)});
      Ops<D>::rms_norm(device, q_a, w.q_a_norm, m.norm_eps, q_a);
      if constexpr (O::active) observer.see({"q_a_layernorm", layer, q_a});
    } else {
      project.template operator()<Q>(h, std::array<Projection<D>, 1>{{{w.kv_a, latent}}});
    }
    if constexpr (O::active) observer.see({"kv_a_proj_with_mqa", layer, latent, w.kv_a.work(rows)});
    const MatrixView<float> c = latent.slice_cols(0, m.kv_rank), k_rope = latent.slice_cols(m.kv_rank, m.rope);
    Ops<D>::rms_norm(device, c, w.kv_a_norm, m.norm_eps, c);
    if constexpr (O::active) observer.see({"kv_a_layernorm", layer, c});

    // Queries; then keys and values as the mode has them.
    const MatrixView<const float> q_in = m.q_rank > 0 ? MatrixView<const float>(q_a) : h;
    AttentionShape shape{config.heads,           1,           static_cast<std::uint32_t>(latent_width),
                         config.attention_scale, here.window, m.kv_rank};
    if (how != MlaMode::merged) {
      project.template operator()<Q>(q_in, std::array<Projection<D>, 1>{{{w.q, q}}});
      if constexpr (O::active) observer.see({m.q_rank > 0 ? "q_b_proj" : "q_proj", layer, q, w.q.work(rows)});
    }
    if constexpr (O::active) {
      if (how != MlaMode::merged) {
        Ops<D>::copy_heads(device, q, m.nope, turning, 0, m.rope, heads);
        observer.see({"q_before_rope", layer, turning});
      }
      observer.see({"k_before_rope", layer, k_rope});
    }
    if (how != MlaMode::merged) Ops<D>::rope(device, q, m.nope + m.rope, cos, sin, config.rope_style, m.nope);
    Ops<D>::rope(device, k_rope, m.rope, cos, sin, config.rope_style);
    if constexpr (O::active) {
      observer.see({"rope.cos", layer, cos});
      observer.see({"rope.sin", layer, sin});
      if (how != MlaMode::merged) {
        Ops<D>::copy_heads(device, q, m.nope, turning, 0, m.rope, heads);
        observer.see({"q_after_rope", layer, turning});
      }
      observer.see({"k_after_rope", layer, k_rope});
    }
    if (how == MlaMode::naive) {
      const MatrixView<float> kv = area.take(heads * (m.nope + v_dim)), k = area.take(heads * (m.nope + m.rope)),
                              v = area.take(heads * v_dim);
      if (Made::admits(w.kv_b.weight.format)) project.template operator()<Made>(c, std::array<Projection<D>, 1>{{{w.kv_b, kv}}});
      else project.template operator()<Q>(c, std::array<Projection<D>, 1>{{{w.kv_b, kv}}});
      if constexpr (O::active) observer.see({"kv_b_proj", layer, kv, w.kv_b.work(rows)});
      Ops<D>::copy_heads(device, kv, 0, k, 0, m.nope, heads);
      Ops<D>::copy_heads(device, k_rope, 0, k, m.nope, m.rope, heads);
      Ops<D>::copy_heads(device, kv, m.nope, v, 0, v_dim, heads);
      shape.kv_heads = config.heads, shape.head_dim = m.nope + m.rope, shape.value_dim = static_cast<std::uint32_t>(v_dim);
      detail::attend(device, scratch, shape, step, q, k, v, concat, "attn_heads_concat", observer);
    } else {
      const MatrixView<float> q_c = area.take(heads * m.kv_rank), q_all = area.take(heads * latent_width),
                              mixed = area.take(heads * m.kv_rank);
      if (how == MlaMode::absorbed) {
        Ops<D>::linear_heads(device, scratch, q, m.nope + m.rope, w.k_up, q_all, latent_width);
        Ops<D>::copy_heads(device, q, m.nope, q_all, m.kv_rank, m.rope, heads);
      } else {
        const MatrixView<float> q_r = q.slice_cols(0, heads * m.rope);
        project.template operator()<Made>(q_in, std::array<Projection<D>, 2>{{{w.q, q_c}, {w.q_rope, q_r}}});
        if constexpr (O::active) observer.see({"q_latent", layer, q_c, w.q.work(rows)});
        Ops<D>::rope(device, q_r, m.rope, cos, sin, config.rope_style);
        Ops<D>::copy_heads(device, q_c, 0, q_all, 0, m.kv_rank, heads);
        Ops<D>::copy_heads(device, q_r, 0, q_all, m.kv_rank, m.rope, heads);
      }
      detail::attend(device, scratch, shape, step, q_all, latent, MatrixView<const float>(), mixed, "attn_latents_concat",
                     observer);
      Ops<D>::linear_heads(device, scratch, mixed, m.kv_rank, w.v_up, concat, v_dim);
      if constexpr (O::active) observer.see({"attn_heads_concat", layer, concat});
    }

    project.template operator()<Q>(concat, std::array<Projection<D>, 1>{{{w.o, out, accumulate}}});
    if constexpr (O::active) observer.see({"attn_out", layer, out, w.o.work(rows)});
  }

 private:
  // W_uk^T [kv_rank, nope] and W_uv [v, kv_rank] of every head, from either way that files have them.
  struct Up {
    std::vector<float> k, v;
  };
  template <class L>
  [[nodiscard]] static Expected<Up> up_projections(L& loader, const Config& c, std::size_t i) {
    const std::uint64_t h = c.heads, rank = c.mla.kv_rank, nope = c.mla.nope, v = c.value_width();
    Up up;
    if (!loader.has(Role::kv_b, i)) {
      NIHAO_TRY(up.k, loader.tensor_floats(Role::k_b, i, {h, rank, nope}));
      NIHAO_TRY(up.v, loader.tensor_floats(Role::v_b, i, {h, v, rank}));
      return up;
    }
    NIHAO_TRY(const std::vector<float> both, loader.tensor_floats(Role::kv_b, i, {h * (nope + v), rank, 0}));
    for (std::size_t x = 0; x < h; ++x) {
      const float* const head = both.data() + x * (nope + v) * rank;  // nope rows of W_uk, then v of W_uv
      const std::vector<float> k = transposed(head, nope, rank);
      up.k.insert(up.k.end(), k.begin(), k.end());
      up.v.insert(up.v.end(), head + nope * rank, head + (nope + v) * rank);
    }
    return up;
  }
  // The columns of a [rows, cols] matrix as rows.
  [[nodiscard]] static std::vector<float> transposed(const float* from, std::size_t rows, std::size_t cols) {
    std::vector<float> to(rows * cols);
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < cols; ++c) to[c * rows + r] = from[r * cols + c];
    return to;
  }
};

}  // namespace nihao
