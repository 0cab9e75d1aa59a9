// All weight formats.
#include <nihao/format/registry.hpp>
