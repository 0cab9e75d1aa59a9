// Two models of different families in one process, each in a thread of the host's: nothing that one does is the other's business.
// Runs under ThreadSanitizer too.
#include "models/golden_models.hpp"
#include "nihao/models/load_hf.hpp"

#include <barrier>
#include <thread>

using namespace nihao;
using namespace nihao::test;

namespace {

/// Loads a checkpoint and runs it over a prompt in several steps: the logits of all positions. Checks nothing, as it may run in a
/// thread.
Expected<std::vector<float>> load_and_run(const std::string& folder) {
  NIHAO_TRY(const AnyModel model, load_hf(folder, {.cpu = {.threads = 2}}));
  NIHAO_TRY(const auto context, model.context({.positions = 64}));
  std::vector<TokenId> ids;
  for (std::size_t i = 0; i < 40; ++i) ids.push_back(static_cast<TokenId>((37 * i * i + 3) % model.config().vocab));
  std::vector<float> all;
  for (std::size_t done = 0; done < ids.size();) {
    const SequenceTokens part{0, std::span(ids).subspan(done, std::min<std::size_t>(done == 0 ? 20 : 1, ids.size() - done)),
                              Wanted::all};
    NIHAO_TRY(const auto logits, context->step(std::span(&part, 1)));
    const auto rows = copy(logits);
    all.insert(all.end(), rows.begin(), rows.end());
    done += part.tokens.size();
  }
  return all;
}

}  // namespace

TEST_CASE("two models of different families, loaded and run in two threads at once, have the bits that each has alone") {
  const auto models = data("golden/models");
  if (!models) NIHAO_SKIP("golden/models");
  const std::string folders[] = {(*models / "qwen2").string(), (*models / "gemma3_text").string()};
  std::vector<std::vector<float>> alone;
  for (const std::string& folder : folders) alone.push_back(require(load_and_run(folder)));
  CHECK(alone[0] != alone[1]);
  for (int round = 0; round < 3; ++round) {
    std::barrier start(2);
    std::vector<Expected<std::vector<float>>> together(2, Error{ErrorCode::missing, "not run"});
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < 2; ++i)
      threads.emplace_back([&, i] {
        start.arrive_and_wait();
        together[i] = load_and_run(folders[i]);
      });
    for (std::thread& thread : threads) thread.join();
    for (std::size_t i = 0; i < 2; ++i) CHECK_MESSAGE(require(together[i]) == alone[i], folders[i]);
  }
}
