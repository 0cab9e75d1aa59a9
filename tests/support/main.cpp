#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "support/data.hpp"

const char* const nihao::test::source_dir = NIHAO_SOURCE_DIR;
