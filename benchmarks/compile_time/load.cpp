// Any model, loaded and talked with.
#include <nihao/nihao.hpp>
std::size_t unit(const char* path) {
  auto model = nihao::load(path);
  if (!model) return 0;
  nihao::Session session{*std::move(model)};
  std::size_t bytes = 0;
  for (const std::string_view piece : session.generate("你好,llama", {.max_tokens = 64})) bytes += piece.size();
  return bytes;
}
