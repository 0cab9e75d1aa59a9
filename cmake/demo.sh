#!/usr/bin/env bash
# From a fresh Debian 12 to a model's answer: bash cmake/demo.sh ["prompt"]
# Installs the Debian packages that are missing (root is asked for only then), builds the program, fetches SmolLM2-135M-Instruct
# into the user's cache, and streams its answer. The second run starts at once, and needs no network.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

prompt=${1:-"What is a llama? Answer in two sentences."}
need_packages "${nihao_build_packages[@]}"
fetch_model

build=$nihao_root/build/release
log=$build/demo.log
program=$build/bin/nihao
mkdir -p "$build"
if [ ! -x "$program" ]; then say "building (a few minutes the first time)"; fi
if [ ! -f "$build/build.ninja" ]; then
  configure_preset release > "$log" 2>&1 || { cat "$log" >&2; die "cmake could not configure the build"; }
fi
if [ -t 2 ] && [ ! -x "$program" ]; then
  build_preset release --target nihao_program >&2 || die "the build failed"
else
  build_preset release --target nihao_program >> "$log" 2>&1 || { cat "$log" >&2; die "the build failed"; }
fi
[ -x "$program" ] || die "the build made no $program"

exec "$program" run --chat --model "$nihao_model" -n 256 -- "$prompt"
