#define NIHAO_COMPILING
#include "nihao/files/safetensors_impl.hpp"
