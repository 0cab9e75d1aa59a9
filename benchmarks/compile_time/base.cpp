// All of base/.
#include <nihao/base/bytes.hpp>
#include <nihao/base/error.hpp>
#include <nihao/base/extents.hpp>
#include <nihao/base/floats.hpp>
#include <nihao/base/hooks.hpp>
#include <nihao/base/platform.hpp>
#include <nihao/base/tensor.hpp>
