// The one name that tokenizers, samplers and models share.
#pragma once

#include <cstdint>

namespace nihao {

/// An index into a model's vocabulary. Signed, as the files store it; a negative value is never a token.
using TokenId = std::int32_t;

}  // namespace nihao
