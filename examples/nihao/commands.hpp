// One function a command: it adds the command's parser and says what the command does.
#pragma once

#include "common.hpp"

namespace nihao::program {

void add_inspect(Commands& commands);
void add_tokenize(Commands& commands);
void add_detokenize(Commands& commands);
void add_render(Commands& commands);
void add_logits(Commands& commands);
void add_run(Commands& commands);
void add_chat(Commands& commands);
void add_perplexity(Commands& commands);
void add_bench(Commands& commands);
void add_sample(Commands& commands);
void add_quantize(Commands& commands);
void add_imatrix(Commands& commands);

}  // namespace nihao::program
