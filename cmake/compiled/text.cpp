#define NIHAO_COMPILING
#include "nihao/text/chat_template_impl.hpp"
#include "nihao/text/tokenizer_impl.hpp"
