#include "nihao/cache/kv_cache.hpp"
#include "nihao/kernels/cpu/ops.hpp"

#include "random_weights.hpp"
#include "support/build_kind.hpp"

#include <doctest/doctest.h>
#include <Eigen/Core>

using namespace nihao;

namespace {

constexpr KvType kv_types[] = {KvType::f32, KvType::f16, KvType::bf16, KvType::q8_0};

AttentionShape shape_of(std::uint32_t heads, std::uint32_t kv_heads, std::uint32_t head_dim, std::uint32_t window = 0) {
  return {heads, kv_heads, head_dim, 1.0f / std::sqrt(static_cast<float>(head_dim)), window};
}

/// The queries, keys and values of one sequence, one row a position.
struct Sequence {
  std::size_t length;
  std::vector<float> q, k, v;
  Sequence(const AttentionShape& shape, std::size_t n, unsigned seed)
      : length(n),
        q(test::random_floats(n * shape.heads * shape.head_dim, seed)),
        k(test::random_floats(n * shape.kv_heads * shape.head_dim, seed + 1)),
        v(test::random_floats(n * shape.kv_heads * shape.head_dim, seed + 2)) {
    for (float& x : q) x *= 2;  // sharper than a mean of everything
  }
};

/// Positions [first, first + count) of several sequences, through the cache and the kernel: keys and values of all positions up
/// to these are appended first. Returns their outputs, sequence after sequence.
struct Part {
  const Sequence* sequence;
  std::size_t first, count;
};
class Layer {
 public:
  Layer(const Cpu& cpu, const AttentionShape& shape, KvType type, std::size_t capacity, std::size_t sequences = 1)
      : cpu_(cpu), shape_(shape) {
    const CacheSpec spec{shape.kv_heads, shape.head_dim};
    cache_ = *KvCache::create(std::span(&spec, 1), type, capacity, sequences);
    scratch_ = *CpuScratch::create(cpu, {4096, 16, shape.head_dim, shape.heads, capacity});
  }

  std::vector<float> attend(std::span<const Part> parts) {
    const std::size_t q_width = std::size_t{shape_.heads} * shape_.head_dim,
                      kv_width = std::size_t{shape_.kv_heads} * shape_.head_dim;
    std::vector<std::int32_t> positions;
    std::vector<SequenceRows> rows;
    std::vector<float> q, k, v;
    for (std::size_t s = 0; s < parts.size(); ++s) {
      const Part& part = parts[s];
      rows.push_back({static_cast<std::uint32_t>(positions.size()), static_cast<std::uint32_t>(part.count), cache_.blocks(s)});
      const auto cut = [&](const std::vector<float>& from, std::size_t width, std::vector<float>& to) {
        to.insert(to.end(), from.begin() + static_cast<std::ptrdiff_t>(part.first * width),
                  from.begin() + static_cast<std::ptrdiff_t>((part.first + part.count) * width));
      };
      cut(part.sequence->q, q_width, q), cut(part.sequence->k, kv_width, k), cut(part.sequence->v, kv_width, v);
      for (std::size_t i = 0; i < part.count; ++i) positions.push_back(static_cast<std::int32_t>(part.first + i));
    }
    const BatchView batch{positions, rows};
    const std::size_t n = positions.size();
    Ops<Cpu>::append(cpu_, cache_.layout(0), cache_.data(0), batch, MatrixView<const float>(k.data(), n, kv_width),
                     MatrixView<const float>(v.data(), n, kv_width));
    std::vector<float> out(n * q_width, NAN);
    Ops<Cpu>::attention(cpu_, scratch_, shape_, cache_.layout(0), cache_.data(0), batch,
                        MatrixView<const float>(q.data(), n, q_width), MatrixView<float>(out.data(), n, q_width));
    return out;
  }
  std::vector<float> attend(const Sequence& sequence, std::size_t first, std::size_t count) {
    const Part part{&sequence, first, count};
    return attend(std::span(&part, 1));
  }

  /// By the plain definition, from what the cache holds.
  std::vector<float> reference(const Sequence& sequence) {
    const std::size_t width = std::size_t{shape_.heads} * shape_.head_dim;
    std::vector<float> out(sequence.length * width);
    const KvView kv{cache_.layout(0), cache_.data(0), cache_.blocks(0)};
    for (std::size_t p = 0; p < sequence.length; ++p)
      nihao::reference::attention(shape_, kv, static_cast<std::int64_t>(p), std::span(sequence.q).subspan(p * width, width),
                                  std::span(out).subspan(p * width, width));
    return out;
  }
  KvView view() { return {cache_.layout(0), cache_.data(0), cache_.blocks(0)}; }

 private:
  Cpu cpu_;
  AttentionShape shape_;
  KvCache cache_;
  CpuScratch scratch_;
};

Cpu cpu(int threads, Isa isa = best_isa()) { return *Cpu::create({.threads = threads, .isa = isa}); }

double most_apart(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double apart = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    most = std::isnan(apart) ? static_cast<double>(INFINITY) : std::max(most, apart);
  }
  return most;
}

/// Rows in pieces of 1, 2, ... rows.
std::vector<float> in_pieces(Layer& layer, const Sequence& sequence, std::size_t largest) {
  std::vector<float> all;
  for (std::size_t done = 0, piece = 1; done < sequence.length; piece = piece % largest + 1) {
    const std::size_t count = std::min(piece, sequence.length - done);
    const auto part = layer.attend(sequence, done, count);
    all.insert(all.end(), part.begin(), part.end());
    done += count;
  }
  return all;
}

}  // namespace

TEST_CASE("the reference attention is softmax(q k^T scale) v under its mask, as Eigen computes it") {
  for (const std::uint32_t window : {0u, 1u, 7u}) {
    const AttentionShape shape = shape_of(6, 2, 10, window);
    const Sequence s(shape, 40, 1);
    Layer layer(cpu(1), shape, KvType::f32, 40);
    (void)layer.attend(s, 0, 40);
    const auto result = layer.reference(s);
    using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    const Eigen::MatrixXd q = Eigen::Map<const Rows>(s.q.data(), 40, 60).cast<double>(),
                          k = Eigen::Map<const Rows>(s.k.data(), 40, 20).cast<double>(),
                          v = Eigen::Map<const Rows>(s.v.data(), 40, 20).cast<double>();
    for (Eigen::Index head = 0; head < 6; ++head) {
      Eigen::MatrixXd p =
          (q.middleCols(head * 10, 10) * k.middleCols(head / 3 * 10, 10).transpose() * static_cast<double>(shape.scale))
              .array()
              .exp();
      for (Eigen::Index i = 0; i < 40; ++i)
        for (Eigen::Index j = 0; j < 40; ++j)
          if (j > i || (window > 0 && j <= i - static_cast<Eigen::Index>(window))) p(i, j) = 0;
      const Eigen::MatrixXd probabilities = p.array().colwise() / p.rowwise().sum().array();
      const Eigen::MatrixXd expected = probabilities * v.middleCols(head / 3 * 10, 10);
      for (Eigen::Index i = 0; i < 40; ++i)
        for (Eigen::Index d = 0; d < 10; ++d)
          CHECK(static_cast<double>(result[static_cast<std::size_t>(i * 60 + head * 10 + d)]) ==
                doctest::Approx(expected(i, d)).epsilon(1e-6));
    }
  }
}

TEST_CASE("keys and values are stored as their type rounds them") {
  const AttentionShape shape = shape_of(2, 2, 40);
  const Sequence s(shape, 20, 5);
  for (const KvType type : kv_types) {
    Layer layer(cpu(1), shape, type, 20);
    (void)layer.attend(s, 0, 20);
    std::vector<float> row(40);
    for (std::size_t p = 0; p < 20; ++p)
      for (std::size_t head = 0; head < 2; ++head)
        for (const bool key : {true, false}) {
          const auto given = std::span(key ? s.k : s.v).subspan(p * 80 + head * 40, 40);
          if (key) read_key(layer.view(), head, static_cast<std::int64_t>(p), row);
          else read_value(layer.view(), head, static_cast<std::int64_t>(p), row);
          for (std::size_t i = 0; i < 40; ++i) {
            const std::size_t from = i / 32 * 32;
            float most = 0;  // of the 32 that share a scale
            for (std::size_t j = from; j < std::min<std::size_t>(from + 32, 40); ++j) most = std::max(most, std::fabs(given[j]));
            const float expected = type == KvType::f16    ? to_float(to_f16(given[i]))
                                   : type == KvType::bf16 ? to_float(to_bf16(given[i]))
                                                          : given[i];
            if (type == KvType::q8_0) CHECK(std::fabs(row[i] - expected) <= most / 127 * 0.5f * 1.001f + most * 0.0005f);
            else CHECK(row[i] == expected);
          }
        }
  }
}

TEST_CASE(
    "the kernel is the reference for every type of keys and values, width, grouping and window, with equal bits on every set") {
  struct Case {
    std::uint32_t heads, kv_heads, head_dim, window;
    std::size_t length;
  };
  const Case cases[] = {{4, 2, 16, 0, 150},  {9, 3, 64, 0, 90},     {8, 1, 32, 7, 150},  {2, 2, 20, 0, 70},  {5, 1, 2, 64, 150},
                        {4, 1, 256, 0, 40},  {14, 2, 64, 65, 90},   {3, 3, 80, 1, 70},   {1, 1, 128, 0, 33}, {70, 1, 8, 0, 20},
                        {2, 1, 24, 0, 1100}, {2, 1, 16, 513, 1100}, {2, 2, 16, 40, 1100}};
  double apart = 0;
  for (const Case& c : cases) {
    const AttentionShape shape = shape_of(c.heads, c.kv_heads, c.head_dim, c.window);
    const Sequence s(shape, c.length, c.heads);
    for (const KvType type : kv_types) {
      if (c.length > 1000 && (type == KvType::bf16 || type == KvType::f32)) continue;  // enough of a slow thing
      const std::string what = concat(c.heads, " heads of ", c.head_dim, ", window ", c.window, ", ", to_string(type));
      CAPTURE(what);
      std::vector<float> first;
      for (const Isa isa : all_isas) {
        if (!cpu_supports(isa) || (test::sanitized && c.length > 1000 && isa != best_isa())) continue;
        Layer layer(cpu(2, isa), shape, type, c.length);
        const auto out = layer.attend(s, 0, c.length);
        if (first.empty()) {
          first = out;
          apart = std::max(apart, most_apart(out, layer.reference(s)));
        }
        CHECK_MESSAGE(out == first, to_string(isa));
      }
    }
  }
  CHECK(apart < 1e-5);  // observed: 4.8e-6, of values up to 2
}

TEST_CASE("a row's bits are the same alone, in pieces, and with the whole prompt, on one thread and on four") {
  for (const std::uint32_t window : {0u, 600u, 30u}) {
    const AttentionShape shape = shape_of(3, 1, 20, window);
    const Sequence s(shape, 1200, 9);
    for (const KvType type : {KvType::f16, KvType::q8_0}) {
      const std::string what = concat("window ", window, ", ", to_string(type));
      CAPTURE(what);
      Layer whole(cpu(1), shape, type, 1200), pieces(cpu(1), shape, type, 1200), ones(cpu(4), shape, type, 1200),
          many(cpu(4), shape, type, 1200);
      const auto expected = whole.attend(s, 0, 1200);
      CHECK(in_pieces(pieces, s, 40) == expected);
      CHECK(in_pieces(ones, s, 1) == expected);
      CHECK(in_pieces(many, s, 17) == expected);
    }
  }
}

TEST_CASE("sequences of a ragged batch do not see each other") {
  const AttentionShape shape = shape_of(4, 2, 32, 0);
  std::vector<Sequence> all;
  std::vector<Part> parts;
  for (const std::size_t length : {1u, 70u, 16u, 33u, 530u}) all.emplace_back(shape, length, static_cast<unsigned>(length));
  for (const Sequence& s : all) parts.push_back({&s, 0, s.length});
  Layer together(cpu(3), shape, KvType::f16, 600, 5);
  const auto out = together.attend(parts);
  std::size_t at = 0;
  for (const Sequence& s : all) {
    Layer alone(cpu(1), shape, KvType::f16, 600);
    const auto expected = alone.attend(s, 0, s.length);
    CHECK(std::equal(expected.begin(), expected.end(), out.begin() + static_cast<std::ptrdiff_t>(at)));
    at += expected.size();
  }
  CHECK(at == out.size());
}

TEST_CASE("a value that is not finite reaches the rows that see it, and no other in the same step") {
  for (const KvType type : kv_types)
    for (const std::uint32_t window : {0u, 5u})
      for (const float bad : {INFINITY, NAN}) {
        const std::string what = concat("window ", window, ", ", to_string(type), ", ", bad);
        CAPTURE(what);
        const AttentionShape shape = shape_of(2, 1, 16, window);
        Sequence s(shape, 90, 3);
        Layer clean(cpu(1), shape, type, 90), bad_value(cpu(1), shape, type, 90), bad_key(cpu(1), shape, type, 90);
        const auto expected = clean.attend(s, 0, 90);
        const auto check = [&](Layer& layer) {
          const auto out = layer.attend(s, 0, 90);
          for (std::size_t p = 0; p < 90; ++p)
            for (const std::size_t i : {p * 32 + 3, p * 32 + 19}) {
              CAPTURE(p);
              const bool sees = p >= 50 && (window == 0 || p < 50 + window);
              if (sees) CHECK_FALSE(std::isfinite(out[i]));
              else CHECK(out[i] == expected[i]);
            }
        };
        Sequence damaged = s;
        s.v[50 * 16 + 3] = bad;
        check(bad_value);
        s = damaged;
        if (std::isnan(bad)) {
          s.k[50 * 16 + 3] = bad;
          check(bad_key);
        }
      }
}

TEST_CASE(
    "the tiles of a row are the kernel's online softmax: its maxima, denominators and corrections, with equal bits on every "
    "set") {
  struct Case {
    std::uint32_t heads, kv_heads, head_dim, window;
    std::size_t length;
  };
  for (const Case& c :
       {Case{4, 2, 16, 0, 150}, {3, 1, 20, 40, 200}, {2, 1, 24, 0, 1100}, {2, 1, 16, 513, 1100}, {70, 1, 8, 0, 65}}) {
    const AttentionShape shape = shape_of(c.heads, c.kv_heads, c.head_dim, c.window);
    const Sequence s(shape, c.length, c.heads);
    Layer layer(cpu(1), shape, KvType::f16, c.length);
    const auto out = layer.attend(s, 0, c.length);
    const std::size_t group = c.heads / c.kv_heads, d = c.head_dim, width = c.heads * d;
    for (const std::size_t p : {std::size_t{0}, std::size_t{63}, std::size_t{64}, c.length - 1}) {
      CAPTURE(p);
      const auto q = std::span<const float>(s.q).subspan(p * width, width);
      const std::size_t count = p / attention_tile + 1;
      std::vector<AttentionTile> tiles(c.heads * count);
      attention_tiles(best_isa(), shape, layer.view(), static_cast<std::int32_t>(p), q, tiles);
      const auto equal = [](const AttentionTile& a, const AttentionTile& b) {
        return a.most == b.most && a.total == b.total && a.correction == b.correction;
      };
      for (const Isa isa : all_isas) {
        if (!cpu_supports(isa)) continue;
        std::vector<AttentionTile> others(tiles.size());
        attention_tiles(isa, shape, layer.view(), static_cast<std::int32_t>(p), q, others);
        CHECK_MESSAGE(std::equal(tiles.begin(), tiles.end(), others.begin(), equal), to_string(isa));
      }
      std::vector<float> key(d);
      for (std::size_t h = 0; h < c.heads; ++h) {
        double most = -INFINITY, total = 0;
        for (std::size_t t = 0; t < count; ++t) {
          if (t % (attention_split / attention_tile) == 0) most = -INFINITY, total = 0;  // a split starts anew
          const double before = most;
          std::vector<double> scores;
          for (std::size_t at = t * attention_tile; at < std::min((t + 1) * attention_tile, p + 1); ++at) {
            if (static_cast<std::int64_t>(at) < shape.first_visible(static_cast<std::int64_t>(p))) continue;
            read_key(layer.view(), h / group, static_cast<std::int64_t>(at), key);
            double score = 0;
            for (std::size_t i = 0; i < d; ++i) score += static_cast<double>(q[h * d + i]) * static_cast<double>(key[i]);
            scores.push_back(score * static_cast<double>(shape.scale));
            most = std::max(most, scores.back());
          }
          const AttentionTile& tile = tiles[h * count + t];
          if (scores.empty()) {
            CHECK(equal(tile, AttentionTile{}));
            continue;
          }
          total *= std::exp(before - most);
          for (const double score : scores) total += std::exp(score - most);
          CHECK(static_cast<double>(tile.most) == doctest::Approx(most).epsilon(1e-5));
          CHECK(static_cast<double>(tile.total) == doctest::Approx(total).epsilon(1e-5));
          CHECK(static_cast<double>(tile.correction) == doctest::Approx(std::exp(before - most)).epsilon(1e-5));
        }
        // Merged over the splits, denominators and maxima are those of the softmax whose output the kernel gave.
        if (p >= attention_split) continue;
        const AttentionTile& last = tiles[h * count + count - 1];
        std::vector<double> sum(d, 0.0);
        std::vector<float> value(d);
        for (std::size_t at = static_cast<std::size_t>(shape.first_visible(static_cast<std::int64_t>(p))); at <= p; ++at) {
          read_key(layer.view(), h / group, static_cast<std::int64_t>(at), key);
          read_value(layer.view(), h / group, static_cast<std::int64_t>(at), value);
          double score = 0;
          for (std::size_t i = 0; i < d; ++i) score += static_cast<double>(q[h * d + i]) * static_cast<double>(key[i]);
          const double share = std::exp(score * static_cast<double>(shape.scale) - static_cast<double>(last.most)) /
                               static_cast<double>(last.total);
          for (std::size_t i = 0; i < d; ++i) sum[i] += share * static_cast<double>(value[i]);
        }
        for (std::size_t i = 0; i < d; ++i)
          CHECK(static_cast<double>(out[p * width + h * d + i]) == doctest::Approx(sum[i]).epsilon(1e-4));
      }
    }
  }
}
