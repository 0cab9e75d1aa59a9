// The front door, opened and nothing called.
#include <nihao/nihao.hpp>
