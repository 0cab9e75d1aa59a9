// One kernel without the rest: its contract and reference.
#include <nihao/kernels/rms_norm.hpp>
