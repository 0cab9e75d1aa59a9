// The layers' types, none of them compiled.
#include <nihao/layers/block.hpp>
