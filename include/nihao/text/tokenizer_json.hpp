// Reading a tokenizer from Hugging Face's files. `tokenizer.json` is a pipeline stated step by step (normalizer, pre_tokenizer,
// model, post_processor); what it says is matched against what the library has, and a step that is not known is an error with its
// path, never passed over. Link nihao::json.
#pragma once

#include "../files/json.hpp"
#include "tokenizer.hpp"

#include <string>

namespace nihao {

/// From the contents of `tokenizer.json`; of `tokenizer_config.json` (which tokens are BOS and EOS, and what decoding does with
/// spaces) and `generation_config.json` (which others end a generation), either null where there is none.
/// Errors: missing, mismatch, malformed, unsupported, each with the path of the key.
[[nodiscard]] Expected<Tokenizer> tokenizer_from_json(const Json& tokenizer, const Json& config = {},
                                                      const Json& generation = {});

/// From a folder: `tokenizer.json` with the two others beside it. Errors: the same, and io, limit (a file of more than 256 MiB).
[[nodiscard]] Expected<Tokenizer> tokenizer_from_folder(const std::string& folder);

}  // namespace nihao

#if !NIHAO_COMPILED_JSON
#include "tokenizer_json_impl.hpp"
#endif
