// The same, with the families from nihao::compiled.
#include "load.cpp"
