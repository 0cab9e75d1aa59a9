#define NIHAO_COMPILING
#include "nihao/models/load_hf_impl.hpp"
