// nihao tokenize, nihao detokenize: text to ids and back. The weights are not loaded.
#include "commands.hpp"
#include "model.hpp"

#include <fmt/core.h>

namespace nihao::program {

void add_tokenize(Commands& commands) {
  struct Flags {
    ModelFlags model;
    TextFlags text;
    bool no_special = false, no_bos = false, json = false;
  };
  const auto flags = std::make_shared<Flags>();
  CLI::App& app = commands.add("tokenize", "Text to token ids", [flags]() -> Expected<int> {
    NIHAO_TRY(const std::string text, flags->text.read());
    NIHAO_TRY(const Tokenizer tokenizer, load_tokenizer(flags->model.path));
    NIHAO_TRY(const auto ids, tokenizer.encode(text, {.add_special = !flags->no_bos, .parse_special = !flags->no_special}));
    if (flags->json) {
      Json pieces(Json::value_t::array);
      for (const TokenId id : ids) pieces.push_back(json_text(tokenizer.piece(id)));
      print_json({{"ids", ids}, {"pieces", pieces}});
    } else {
      for (const TokenId id : ids) fmt::print("{:>7}  {}\n", id, json_text(tokenizer.piece(id)).dump());
    }
    return 0;
  });
  flags->model.add_path(app);
  flags->text.add(app, "the text");
  app.add_flag("--no-special", flags->no_special, "\"<|im_end|>\" in the text is text, not that token");
  app.add_flag("--no-bos", flags->no_bos, "put no BOS in front and no EOS behind, also where the model wants them");
  app.add_flag("--json", flags->json, "print one JSON document");
}

void add_detokenize(Commands& commands) {
  struct Flags {
    ModelFlags model;
    std::vector<TokenId> ids;
    bool json = false;
  };
  const auto flags = std::make_shared<Flags>();
  CLI::App& app = commands.add("detokenize", "Token ids to text", [flags]() -> Expected<int> {
    NIHAO_TRY(const Tokenizer tokenizer, load_tokenizer(flags->model.path));
    for (const TokenId id : flags->ids)
      if (!tokenizer.vocabulary().contains(id))
        return Error{ErrorCode::invalid_argument,
                     concat("token id ", id, " is outside the vocabulary of ", tokenizer.vocabulary_size())};
    const std::string bytes = tokenizer.decode(flags->ids);
    if (flags->json) print_json({{"text", json_text(bytes)}, {"bytes_base64", base64(bytes)}});
    else fmt::print("{}\n", bytes);
    return 0;
  });
  flags->model.add_path(app);
  app.add_option("ID", flags->ids, "the ids")->type_name("")->required()->transform(within(0, INT32_MAX));
  app.add_flag("--json", flags->json, "print one JSON document");
}

}  // namespace nihao::program
