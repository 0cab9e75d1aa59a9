// nihao inspect --preset and --families: well-known models by their shape, without files.
#pragma once

#include "common.hpp"

namespace nihao::program {

/// The kinds of families that --families takes.
[[nodiscard]] std::vector<std::string> family_kinds();

/// The shape of one preset. Throws UsageError, with the presets' names, if there is none of that name.
[[nodiscard]] int inspect_preset(std::string_view name, KvType kv, bool json);

/// A comparison of the presets of a kind: "moe", "dense", "mla" or "all".
[[nodiscard]] int inspect_families(std::string_view kind, KvType kv, bool json);

}  // namespace nihao::program
