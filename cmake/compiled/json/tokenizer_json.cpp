#define NIHAO_COMPILING
#include "nihao/text/tokenizer_json_impl.hpp"
