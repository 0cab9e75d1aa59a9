// How well a model predicts a text, and how far one way of computing it is from another.
#pragma once

#include "../base/hooks.hpp"
#include "../models/context.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

namespace nihao {

struct PerplexityOptions {
  std::size_t window = 512;           ///< tokens read together; their second half is scored
  std::optional<TokenId> begin = {};  ///< stands in for the first token of every window: the model's BOS, if it wants one
  Hooks hooks = {};
};

/// How far one distribution is from another, over the scored positions. KL(reference || other), in nats.
struct Divergence {
  std::size_t positions = 0;
  double kl_mean = 0, kl_p99 = 0, kl_max = 0;
  double top1_agreement = 0;  ///< share of positions with the same likeliest token
};

struct PerplexityResult {
  double perplexity = 0;   ///< exp of the mean of token_nll
  std::size_t tokens = 0;  ///< scored
  std::size_t windows = 0;
  std::vector<double> token_nll;              ///< [tokens] -ln p of each, window by window
  std::optional<Divergence> divergence = {};  ///< if there was a reference
};

namespace detail {

/// ln of the sum of exp of a row, in double. NaN if the row is not numbers.
[[nodiscard]] inline double log_sum_exp(std::span<const float> row) noexcept {
  const double largest = static_cast<double>(*std::max_element(row.begin(), row.end()));
  double sum = 0;
  for (const float x : row) sum += std::exp(static_cast<double>(x) - largest);
  return largest + std::log(sum);
}

/// KL(a || b) of the distributions that two rows of logits stand for.
[[nodiscard]] inline double kl_divergence(std::span<const float> a, std::span<const float> b) noexcept {
  const double largest_a = static_cast<double>(*std::max_element(a.begin(), a.end()));
  const double largest_b = static_cast<double>(*std::max_element(b.begin(), b.end()));
  double sum_a = 0, sum_b = 0, product = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = static_cast<double>(a[i]) - largest_a, y = static_cast<double>(b[i]) - largest_b, p = std::exp(x);
    sum_a += p;
    sum_b += std::exp(y);
    if (p > 0) product += p * (x - y);  // 0 ln 0 = 0, also where a logit is -inf
  }
  return std::max(0.0, product / sum_a - std::log(sum_a) + std::log(sum_b));
}

}  // namespace detail

/// Scores `tokens` as llama.cpp's perplexity tool does: windows one after the other, each read from an empty cache; what is
/// left at the end is dropped. In a window of n tokens those at n/2 + 1 to n - 1 are scored, each given all before it. With a
/// `reference` (another context of the same vocabulary) its distributions at n/2 to n - 1 are compared too. Both contexts'
/// sequence 0 is overwritten. Errors: invalid_argument (a window below 4 tokens, or longer than the text), context_full,
/// mismatch (two vocabularies), numeric (a logit that is no number), cancelled.
[[nodiscard]] inline Expected<PerplexityResult> perplexity(ModelContext& context, std::span<const TokenId> tokens,
                                                           const PerplexityOptions& options = {},
                                                           ModelContext* reference = nullptr) {
  const std::size_t n = options.window, half = n / 2;
  if (n < 4) return Error{ErrorCode::invalid_argument, concat("a window of ", n, " tokens: at least 4 are needed")};
  if (tokens.size() < n)
    return Error{ErrorCode::invalid_argument, concat("the text has ", tokens.size(), " tokens, and a window takes ", n)};
  PerplexityResult result;
  result.windows = tokens.size() / n;
  std::vector<TokenId> window;
  std::vector<double> kl;
  std::size_t agree = 0;
  // Logits are wanted of so few rows at a time that their memory does not matter.
  const std::size_t rows = std::min<std::size_t>(64, std::min(context.chunk(), reference ? reference->chunk() : context.chunk()));
  const auto step = [&](ModelContext& c, std::size_t first, std::size_t count) {
    const SequenceTokens part{0, std::span(window).subspan(first, count), Wanted::all};
    return c.step(std::span(&part, 1));
  };
  for (std::size_t w = 0; w < result.windows; ++w) {
    window.assign(tokens.begin() + static_cast<std::ptrdiff_t>(w * n), tokens.begin() + static_cast<std::ptrdiff_t>((w + 1) * n));
    if (options.begin) window.front() = *options.begin;
    for (ModelContext* c : {&context, reference}) {
      if (c == nullptr) continue;
      c->cache().truncate(0, 0);
      Hooks stop;
      stop.stop = options.hooks.stop;
      NIHAO_CHECK(c->prefill(0, std::span(window).first(half), stop));
    }
    for (std::size_t first = half; first < n; first += rows) {
      if (options.hooks.stop.stop_requested()) return Error{ErrorCode::cancelled, "stopped while scoring"};
      const std::size_t count = std::min(rows, n - first);
      NIHAO_TRY(const MatrixView<const float> logits, step(context, first, count));
      for (std::size_t i = 0; i < count && first + i + 1 < n; ++i) {
        const auto row = logits.row(i);
        const auto next = static_cast<std::size_t>(window[first + i + 1]);
        if (next >= row.size())
          return Error{ErrorCode::invalid_argument, concat("token id ", window[first + i + 1], " is not of the vocabulary")};
        const double nll = detail::log_sum_exp(row) - static_cast<double>(row[next]);
        if (!std::isfinite(nll))
          return Error{ErrorCode::numeric, concat("the logits of token ", w * n + first + i, " are no numbers")};
        result.token_nll.push_back(nll);
      }
      if (reference != nullptr) {
        NIHAO_TRY(const MatrixView<const float> expected, step(*reference, first, count));
        if (expected.cols() != logits.cols())
          return Error{ErrorCode::mismatch, concat("the vocabularies have ", logits.cols(), " and ", expected.cols(), " tokens")};
        for (std::size_t i = 0; i < count; ++i) {
          const auto a = expected.row(i), b = logits.row(i);
          kl.push_back(detail::kl_divergence(a, b));
          if (!std::isfinite(kl.back()))
            return Error{ErrorCode::numeric, concat("the logits of token ", w * n + first + i, " are no numbers")};
          agree += std::max_element(a.begin(), a.end()) - a.begin() == std::max_element(b.begin(), b.end()) - b.begin();
        }
      }
      options.hooks.report("scoring", w * n + first + count, result.windows * n);
    }
  }
  double sum = 0;
  for (const double nll : result.token_nll) sum += nll;
  result.tokens = result.token_nll.size();
  result.perplexity = std::exp(sum / static_cast<double>(result.tokens));
  if (reference != nullptr) {
    Divergence& d = result.divergence.emplace();
    d.positions = kl.size();
    for (const double x : kl) d.kl_mean += x / static_cast<double>(kl.size());
    std::sort(kl.begin(), kl.end());
    const double at = 0.99 * static_cast<double>(kl.size() - 1);  // between two neighbours, in proportion
    const auto below = static_cast<std::size_t>(at);
    const std::size_t above = std::min(below + 1, kl.size() - 1);
    d.kl_p99 = kl[below] + (at - static_cast<double>(below)) * (kl[above] - kl[below]);
    d.kl_max = kl.back();
    d.top1_agreement = static_cast<double>(agree) / static_cast<double>(d.positions);
  }
  return result;
}

}  // namespace nihao
