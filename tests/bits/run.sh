#!/usr/bin/env bash
# The kernels' bits must not depend on the compiler, the optimisation level, -ffp-contract or the including unit's -m flags:
# bash tests/bits/run.sh [folder for the programs]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
out=${1:-build/bits}
mkdir -p "$out"
expected="" failed=0
check() { # name compiler flag...
  local name=$1 got
  shift
  "$@" -std=c++20 -Iinclude tests/bits/bits.cpp -o "$out/$name" -pthread
  got=$("$out/$name" | sort -u)
  if [ -z "$expected" ]; then expected=$got; fi
  if [ "$got" = "$expected" ] && [ "$(wc -l <<< "$got")" = 1 ]; then echo "ok $name $got"; else echo "FAILED $name" $got "instead of" $expected; failed=1; fi
}
check gcc-O3-native-fast g++ -O3 -march=native -ffp-contract=fast
check gcc-O2-baseline-off g++ -O2 -ffp-contract=off
check gcc-O0 g++ -O0
check clang-O3-native-fast clang++-14 -O3 -march=native -ffp-contract=fast
check clang-O1-v3-off clang++-14 -O1 -march=x86-64-v3 -ffp-contract=off
exit $failed
