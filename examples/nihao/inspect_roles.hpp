// nihao inspect --roles: which format the tensors of each role have, layer by layer, and which a mix keeps higher.
#pragma once

#include "common.hpp"

#include <nihao/files/gguf.hpp>

namespace nihao::program {

/// Prints what the file has or, with the name of a mix, what quantizing to it would give.
[[nodiscard]] Expected<int> inspect_roles(const Gguf& file, const std::string& mix_name, bool json);

/// "Q8_0, Q4_0, ...": the names that mix_name may be.
[[nodiscard]] std::string mix_names();

}  // namespace nihao::program
