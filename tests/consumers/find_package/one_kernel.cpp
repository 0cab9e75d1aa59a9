#include <nihao/base/floats.hpp>

// 1 + 2^-10 is the float16 after 1.
int main() { return nihao::to_f16(1.0009765625f).bits == nihao::to_f16(1.0f).bits + 1 ? 0 : 1; }
