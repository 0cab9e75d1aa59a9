#!/usr/bin/env bash
# From a fresh Debian 12 to a tested build: bash cmake/test.sh [ctest option...]
# Installs the Debian packages that are missing (root is asked for only then), builds everything, runs the tests. Tests of the real
# model run if cmake/demo.sh has fetched it; the last line says how many cases were skipped for missing data.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

need_packages "${nihao_build_packages[@]}" python3
configure_preset release
build_preset release
result=0
(cd "$nihao_root" && ctest --preset release "$@") || result=$?
skipped=$(grep -c '^SKIPPED: ' "$nihao_root/build/release/Testing/Temporary/LastTest.log" || true)
if [ "$skipped" -gt 0 ]; then
  grep '^SKIPPED: ' "$nihao_root/build/release/Testing/Temporary/LastTest.log" | sort | uniq -c >&2
fi
say "$skipped test cases skipped for missing data"
exit "$result"
