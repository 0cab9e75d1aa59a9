#include "nihao/engine/session_file.hpp"

#include <doctest/doctest.h>

#include "engine/generate.hpp"
#include "engine/models.hpp"
#include "nihao/files/gguf_writer.hpp"
#include "nihao/models/gguf_config.hpp"
#include "support/temp_folder.hpp"

#include <fstream>

using namespace nihao;
using test::all_of, test::greedy;

namespace {

SessionOptions chat_options(KvType kv = KvType::f16, std::size_t positions = 400) {
  SessionOptions options{.context = {.positions = positions, .chunk = 32, .kv = kv}};
  options.chat_template = *ChatTemplate::parse("{% for m in messages %}[{{ m.role }}]{{ m.content }}\n{% endfor %}[assistant]");
  return options;
}

void write(const std::string& path, std::string_view text) { std::ofstream(path, std::ios::binary) << text; }

}  // namespace

TEST_CASE("a session that was saved and loaded goes on as if it had not been, and reads nothing again") {
  const auto model = test::tiny_model();
  if (!model) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const test::TempFolder folder;
  for (const KvType kv : {KvType::f32, KvType::f16, KvType::bf16, KvType::q8_0}) {
    CAPTURE(to_string(kv));
    Session session(*model, chat_options(kv)), loaded(*model, chat_options(kv));
    all_of(session.generate("hello", greedy(10)));
    REQUIRE(save_session(session, folder.path("s")).has_value());
    CHECK_FALSE(std::filesystem::exists(folder.path("s.part")));
    const auto result = load_session(loaded, folder.path("s"));
    REQUIRE_MESSAGE(result.has_value(), (result ? "" : result.error().message()));
    CHECK(std::ranges::equal(loaded.cached(), session.cached()));
    REQUIRE(loaded.messages().size() == 2);
    CHECK(loaded.messages()[1].content == session.messages()[1].content);
    CHECK(all_of(loaded.generate("and then?", greedy(10))) == all_of(session.generate("and then?", greedy(10))));
    CHECK(loaded.result()->ids == session.result()->ids);
    CHECK(loaded.result()->reused_tokens == session.result()->reused_tokens);
    CHECK(loaded.result()->reused_tokens > 20);
  }
}

TEST_CASE("an answer that was left before its end is saved as it stands, and does not come into what is loaded") {
  const auto model = test::tiny_model();
  if (!model) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const test::TempFolder folder;
  Session session(*model, chat_options(KvType::f16, 2000));
  const auto leave_one = [&] {
    for (const std::string_view piece : session.generate("left", greedy(30)))
      if (!piece.empty()) break;
  };
  all_of(session.generate("hello", greedy(5)));
  leave_one();
  REQUIRE(save_session(session, folder.path("s")).has_value());
  REQUIRE(session.messages().size() == 4);
  CHECK(session.messages()[3].role == "assistant");
  leave_one();
  REQUIRE(load_session(session, folder.path("s")).has_value());
  CHECK(session.messages().size() == 4);
  all_of(session.generate("and then?", greedy(5)));
  REQUIRE(session.messages().size() == 6);
  CHECK(session.messages()[4].content == "and then?");
  // A file that cannot be read leaves the answer under way alone.
  session.set_messages({});
  std::size_t pieces = 0;
  for ([[maybe_unused]] const auto piece : session.generate("on", greedy(10)))
    if (++pieces == 1) CHECK_FALSE(load_session(session, folder.path("none")).has_value());
  CHECK(pieces > 1);
}

TEST_CASE("a session that has done nothing can be saved and loaded") {
  const auto model = test::tiny_model();
  if (!model) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const test::TempFolder folder;
  Session session(*model, chat_options()), used(*model, chat_options());
  REQUIRE(save_session(session, folder.path("s")).has_value());
  all_of(used.generate("hello", greedy(3)));
  REQUIRE(load_session(used, folder.path("s")).has_value());
  CHECK(used.messages().empty());
  CHECK(used.cached().empty());
}

TEST_CASE("a session file that does not fit is an error that says why, and the session stays as it was") {
  const auto model = test::tiny_model(), other = test::tiny_model(1, false, "Q8_0"), exact = test::tiny_model(1, true);
  if (!model || !other) NIHAO_SKIP("golden/quant/gguf");
  const test::TempFolder folder;
  Session session(*model, chat_options());
  all_of(session.generate("hello", greedy(10)));
  REQUIRE(save_session(session, folder.path("s")).has_value());
  const auto error_of = [&](Session into) {
    all_of(into.generate("mine", greedy(3)));
    const std::string before(into.messages()[1].content);
    const std::vector<TokenId> cached(into.cached().begin(), into.cached().end());
    const auto result = load_session(into, folder.path("s"));
    REQUIRE_FALSE(result.has_value());
    CHECK(result.error().where.find(folder.path("s")) == 0);
    CHECK(into.messages()[1].content == before);
    CHECK(std::ranges::equal(into.cached(), cached));
    return result.error();
  };
  CHECK(error_of(Session(*other, chat_options())).what == "the session is of a model of the same sizes with other weights");
  CHECK(error_of(Session(*exact, chat_options())).what == "the session was computed in fast mode");
  CHECK(error_of(Session(*model, chat_options(KvType::q8_0))).what == "its keys and values are f16, and this context's are q8_0");
  const auto full = error_of(Session(*model, chat_options(KvType::f16, 32)));
  CHECK(full.code == ErrorCode::context_full);
  CHECK(load_session(session, folder.path("none")).error().code == ErrorCode::io);
  CHECK(save_session(session, folder.path("no/such/folder")).error().code == ErrorCode::io);
}

TEST_CASE("a session of a model whose keys turn otherwise in longer contexts is loaded in contexts of its own kind alone") {
  const auto path = test::data("golden/quant/gguf/F32.gguf");
  if (!path) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const test::TempFolder folder;
  {  // the tiny model with longrope beyond 300 positions
    const auto tiny = Gguf::open(path->string());
    REQUIRE(tiny.has_value());
    const auto config = config_from_gguf(*tiny);
    REQUIRE(config.has_value());
    GgufWriter writer;
    for (const GgufEntry& entry : tiny->metadata()) writer.add(entry);
    writer.add("llama.rope.scaling.original_context_length", std::uint32_t{300});
    for (const TensorInfo& t : tiny->tensors().tensors())
      REQUIRE(writer.add_tensor(t.name, t.format, std::span(t.shape).first(t.rank), t.bytes).has_value());
    const std::vector<float> near(config->head_dim / 2, 1.0f), far(config->head_dim / 2, 2.0f);
    const std::uint64_t pairs = near.size();
    for (const auto& [name, factors] :
         {std::pair("rope_factors_short.weight", &near), std::pair("rope_factors_long.weight", &far)})
      REQUIRE(writer.add_tensor(name, FormatId::F32, std::span(&pairs, 1), std::as_bytes(std::span(*factors))).has_value());
    REQUIRE(writer.write(folder.path("m")).has_value());
  }
  const auto model = load(folder.path("m"), {.cpu = {.threads = 1}});
  REQUIRE_MESSAGE(model.has_value(), (model ? "" : model.error().message()));
  const auto within = [&](std::size_t positions) { return Session(*model, chat_options(KvType::f16, positions)); };
  Session session = within(200), alike = within(300), longer = within(301);
  const std::string near_answer = all_of(session.generate("hello", greedy(10)));
  CHECK(all_of(longer.generate("hello", greedy(10))) != near_answer);
  REQUIRE(save_session(session, folder.path("s")).has_value());
  CHECK(load_session(alike, folder.path("s")).has_value());
  const auto refused = load_session(longer, folder.path("s"));
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::mismatch);
  CHECK(refused.error().what == "its keys are turned as in a context of another length than 301 positions");
}

TEST_CASE("a session file that is cut off, damaged or foreign is an error wherever it is hurt") {
  const auto model = test::tiny_model();
  if (!model) NIHAO_SKIP("golden/quant/gguf/F32.gguf");
  const test::TempFolder folder;
  Session session(*model, chat_options());
  all_of(session.generate("hello", greedy(10)));
  REQUIRE(save_session(session, folder.path("s")).has_value());
  const std::string good = test::read_text(folder.path("s"));
  Session into(*model, chat_options());
  std::size_t truncated = 0;
  for (std::size_t size = 1; size < good.size(); size += size < 400 ? 1 : 997) {
    write(folder.path("bad"), good.substr(0, size));
    const auto result = load_session(into, folder.path("bad"));
    REQUIRE_FALSE(result.has_value());
    truncated += result.error().code == ErrorCode::truncated;
  }
  CHECK(truncated > 400);
  for (std::size_t at = 0; at < good.size(); at += at < 400 ? 1 : 997) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x20);
    write(folder.path("bad"), bad);
    CAPTURE(at);
    CHECK_FALSE(load_session(into, folder.path("bad")).has_value());
  }
  write(folder.path("bad"), good + "x");
  CHECK(load_session(into, folder.path("bad")).error().what == "1 bytes follow the end");
  write(folder.path("bad"), "GGUF" + good);
  CHECK(load_session(into, folder.path("bad")).error().what == "not a nihao session file");
  // A count beyond all bytes allocates nothing.
  for (std::size_t at = 0; at + 8 <= 400; ++at) {
    std::string bad = good;
    bad.replace(at, 8, std::string(8, '\x7f'));
    write(folder.path("bad"), bad);
    CHECK_FALSE(load_session(into, folder.path("bad")).has_value());
  }
  CHECK(into.messages().empty());
  REQUIRE(load_session(into, folder.path("s")).has_value());
}
