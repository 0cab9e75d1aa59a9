// A host that loads a model and shows its answer: consumer [model.gguf]. Exits 0 if the library did what it says.
#include <nihao/nihao.hpp>

#include <cstdio>

int main(int argc, char** argv) {
  const auto none = nihao::load("no-such-file.gguf");
  if (none || none.error().code != nihao::ErrorCode::io) return 1;
  std::puts(none.error().message().c_str());
  if (argc < 2) return 0;

  auto model = nihao::load(argv[1]);
  if (!model) return std::puts(model.error().message().c_str()), 2;
  nihao::Session session{*std::move(model)};
  std::size_t bytes = 0;
  for (const std::string_view piece : session.generate("What is a llama?", {.max_tokens = 8, .sampling = {.temperature = 0}}))
    bytes += std::fwrite(piece.data(), 1, piece.size(), stdout);
  const auto& result = session.result();
  if (!result) return std::puts(result.error().message().c_str()), 3;
  return result->ids.size() == 8 && bytes == result->text.size() && bytes > 0 ? 0 : 4;
}
