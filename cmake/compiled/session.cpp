#define NIHAO_COMPILING
#include "nihao/engine/session_impl.hpp"
