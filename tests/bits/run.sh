#!/usr/bin/env bash
# The kernels' bits must not depend on the compiler, the optimisation level, -ffp-contract, the including unit's -m flags or the
# architecture: bash tests/bits/run.sh [folder for the programs]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
out=${1:-build/bits}
mkdir -p "$out"
jobs=$(nproc) names=()
build() { # name compiler flag...
  local name=$1
  shift
  names+=("$name")
  rm -f "$out/$name"
  while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n || true; done  # what is not there below has failed
  "$@" -std=c++20 -Iinclude tests/bits/bits.cpp -o "$out/$name" -pthread &
}
build gcc-O3-native-fast g++ -O3 -march=native -ffp-contract=fast
build gcc-O2-baseline-off g++ -O2 -ffp-contract=off
build gcc-O0 g++ -O0
build clang-O3-native-fast clang++-14 -O3 -march=native -ffp-contract=fast
build clang-O1-v3-off clang++-14 -O1 -march=x86-64-v3 -ffp-contract=off
if command -v aarch64-linux-gnu-g++ >/dev/null && command -v qemu-aarch64 >/dev/null; then
  build arm-gcc-O3-fast aarch64-linux-gnu-g++ -O3 -ffp-contract=fast
  build arm-gcc-O1-v9-off aarch64-linux-gnu-g++ -O1 -march=armv9-a -ffp-contract=off
  build arm-clang-O2-fast clang++-14 --target=aarch64-linux-gnu -O2 -ffp-contract=fast
else
  echo "no cross compiler or no qemu-user: the bits on Arm are not compared"
fi
wait

expected="" failed=0
for name in "${names[@]}"; do
  emulator=()
  if [[ $name == arm-* ]]; then emulator=(qemu-aarch64 -L /usr/aarch64-linux-gnu); fi
  got=$("${emulator[@]}" "$out/$name" | sort -u) || got="did not run"
  if [ -z "$expected" ]; then expected=$got; fi
  if [ "$got" = "$expected" ] && [[ $got != "did not run" ]] && [ "$(wc -l <<< "$got")" = 1 ]; then echo "ok $name $got"
  else
    echo "FAILED $name" $got "instead of" $expected
    failed=1
  fi
done
exit $failed
