#define NIHAO_COMPILING
#include "nihao/trace/recorder_impl.hpp"
