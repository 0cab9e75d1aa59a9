#include "models/golden_models.hpp"
#include "nihao/models/llama.hpp"
#include "nihao/models/load.hpp"
#include "nihao/quantize/quantize_model.hpp"

using namespace nihao;
using namespace nihao::test;

namespace {

using Small = Quant<Q4_K_M>;
static_assert(Small::admits(Role::v, FormatId::Q6_K) && Small::admits(Role::v, FormatId::Q4_K));
static_assert(Small::admits(Role::q, FormatId::Q4_K) && !Small::admits(Role::q, FormatId::Q6_K));
static_assert(Small::admits(Role::head, FormatId::Q6_K) && !Small::admits(Role::head, FormatId::Q4_K));
static_assert(Small::admits(FormatId::Q6_K) && !Small::admits(FormatId::Q8_0));
static_assert(AdmitsByRole<Small> && !AdmitsByRole<Quant<Any>> && !AdmitsByRole<Quant<Q4_K>>);

void write_as(const char* target, const std::string& from, const std::string& to) {
  const Gguf file = require(Gguf::open(from));
  require(quantize_model(require(tensors_of_gguf(file)), *recipe_from_name(target), to, require(Cpu::create({.threads = 2}))));
}

}  // namespace

TEST_CASE("a model type that states a mix takes files of that mix, and names the first tensor of another") {
  const auto path = data("golden/quant/gguf/F32.gguf");
  if (!path) NIHAO_SKIP("golden/quant/gguf");
  const TempFolder folder;
  using Model = Llama<Sizes{.d_model = 256}, Quant<Q4_K_M>>;
  write_as("Q4_K_M", path->string(), folder.path("m"));
  CHECK(require(load<Model>(folder.path("m"))).config().d_model == 256);
  write_as("Q6_K", path->string(), folder.path("m"));
  const auto refused = load<Model>(folder.path("m"));
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::mismatch);
  CHECK(refused.error().message().find(
            "blk.0.attn_q.weight: it is stored as Q6_K, which this model type does not admit for its role") != std::string::npos);
  CHECK_FALSE(load<Model>(path->string()).has_value());
}
