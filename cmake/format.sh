#!/usr/bin/env bash
# Formats the project's C++ with the checked-in .clang-format: cmake/format.sh [--check] [file...]
# --check changes nothing and leaves with 1 if a file would change.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tool=$(command -v clang-format-19 || true)
if [ -z "$tool" ]; then
  echo "clang-format 19 is needed (Debian: clang-format-19)" >&2
  exit 1
fi
mode=(-i)
if [ "${1:-}" = --check ]; then
  mode=(--dry-run -Werror)
  shift
fi
if [ $# -eq 0 ]; then
  mapfile -t files < <(git ls-files '*.hpp' '*.cpp' '*.inl' '*.cuh' '*.cu')
  set -- "${files[@]}"
fi
"$tool" "${mode[@]}" "$@"
